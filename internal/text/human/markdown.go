package human

import (
	"fmt"
	"strings"
)

// Markdown escapes text from outside for a line of Markdown: every character with a
// meaning there, and whatever would become a link by itself.
func Markdown(s string) string {
	var b strings.Builder
	for _, r := range OneLine(s) {
		switch {
		case strings.ContainsRune("<>&@", r):
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_{}[]#|~!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.NewReplacer("://", ":&#47;&#47;", "www.", "www&#46;", "WWW.", "WWW&#46;").Replace(b.String())
}

// MarkdownText is a Markdown document that is being written.
type MarkdownText struct{ b strings.Builder }

// String returns what was written.
func (m *MarkdownText) String() string { return m.b.String() }

// Line writes a line.
func (m *MarkdownText) Line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

// Section writes a heading.
func (m *MarkdownText) Section(title string) { m.Line("\n## %s\n", title) }

// Block writes a text in a fence that is longer than any in it, indented as part of a
// list if indent is not empty.
func (m *MarkdownText) Block(indent, s string) { m.fenced(indent, "text", s) }

// Code writes source code in a language, as Block writes a text.
func (m *MarkdownText) Code(language, s string) { m.fenced("", language, s) }

func (m *MarkdownText) fenced(indent, language, s string) {
	s = strings.TrimRight(Visible(s), "\n")
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	m.Line("%s%s", indent, fence+language)
	for line := range strings.SplitSeq(s, "\n") {
		m.Line("%s%s", indent, line)
	}
	m.Line("%s%s", indent, fence)
}

// MarkdownTable writes a table with a row for each entry of a list; align has l or r for
// each column. Cells must be Markdown already.
func MarkdownTable[T any](m *MarkdownText, titles []string, align string, list []T, cells func(entry *T) []string) {
	m.Line("| %s |", strings.Join(titles, " | "))
	rules := make([]string, len(titles))
	for i := range titles {
		rules[i] = "---"
		if i < len(align) && align[i] == 'r' {
			rules[i] = "---:"
		}
	}
	m.Line("|%s|", strings.Join(rules, "|"))
	for i := range list {
		m.Line("| %s |", strings.Join(cells(&list[i]), " | "))
	}
}
