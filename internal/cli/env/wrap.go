package env

import "strings"

// leastWrapped is the width from which on lines are broken between words.
const leastWrapped = 30

// Wrap breaks the lines of text that are longer than a terminal's between words, never within one; a
// command in backticks is one word. Further lines are indented as the first one, and below the text of an
// item. For other streams it returns the text unchanged.
func (s *Stream) Wrap(text string) string { return s.WrapBelow(text, 0) }

// WrapBelow does what Wrap does, with further lines indented by at least so many cells.
func (s *Stream) WrapBelow(text string, indent int) string {
	if !s.Terminal || s.Width < leastWrapped {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		content, ending := strings.TrimSuffix(line, "\n"), ""
		if len(content) < len(line) {
			ending = "\n"
		}
		b.WriteString(wrapLine(content, s.Width, indent) + ending)
	}
	return b.String()
}

func wrapLine(line string, width, indent int) string {
	if Width(line) <= width {
		return line
	}
	body := strings.TrimLeft(line, " ")
	first := len(line) - len(body)
	indent = max(indent, first)
	if strings.HasPrefix(body, "- ") {
		indent = max(indent, first+len("- "))
	}
	if indent > width/2 {
		indent = 0
	}
	var b strings.Builder
	b.WriteString(line[:first])
	used := first
	for i, word := range words(body) {
		cells := Width(word)
		switch {
		case i == 0:
		case used+1+cells > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += cells
	}
	return b.String()
}

// words splits a line at spaces outside of backticks. Further spaces stay with the word after them.
func words(line string) (list []string) {
	quoted, from := false, 0
	for i := range len(line) {
		switch {
		case line[i] == '`':
			quoted = !quoted
		case line[i] == ' ' && !quoted && i > from && line[i-1] != ' ':
			list = append(list, line[from:i])
			from = i + 1
		}
	}
	return append(list, line[from:])
}
