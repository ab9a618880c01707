package extract

import "strings"

// The kinds of lines.
const (
	blankLine = iota
	plainLine
	commentLine
	importLine
	declLine
	headingLine
)

// How strongly a line asks to begin a passage.
const (
	stay  = iota
	pause // behind a blank line, inside something larger
	begin // a declaration or paragraph of its own
)

// line is one line of a document.
type line struct {
	// start and end are offsets into the text, without the newline.
	start, end int
	kind       uint8
	begins     uint8
	// indent is the number of blanks before the line, at most 255; of a
	// heading, its level.
	indent uint8
	// name is the range, from start, of what a declaration declares.
	name [2]uint16
}

// reader cuts documents into lines and passages. It serves one goroutine and
// keeps its buffer from document to document.
type reader struct {
	lines []line
	lang  language
	text  string

	inComment string // what ends the comment that is open
	inImport  bool
	inFence   bool
}

// read classifies the lines of a text.
func (r *reader) read(text string, lang language) {
	r.lines, r.text, r.lang = r.lines[:0], text, lang
	r.inComment, r.inImport, r.inFence = "", false, false
	for start := 0; start < len(text); {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += start
		}
		r.add(start, end)
		start = end + 1
	}
}

func (r *reader) add(start, end int) {
	l := line{start: start, end: end}
	i := start
	for i < end && (r.text[i] == ' ' || r.text[i] == '\t' || r.text[i] == '\r') {
		i++
	}
	l.indent = uint8(min(i-start, 255)) //nolint:gosec // from 0 to 255
	s := strings.TrimSuffix(r.text[i:end], "\r")
	switch {
	case s == "":
		l.kind = blankLine
	case r.lang.data:
		l.kind = plainLine
	case r.lang.source:
		r.source(&l, s)
	default:
		r.prose(&l, s)
	}
	if n := len(r.lines); n > 0 && r.lines[n-1].kind == blankLine && l.kind != blankLine {
		l.begins = max(l.begins, r.afterBlank(l, s))
	}
	r.lines = append(r.lines, l)
	if l.kind == declLine {
		r.withComment(len(r.lines) - 1)
	}
}

// afterBlank returns how a line after a blank line begins.
func (r *reader) afterBlank(l line, s string) uint8 {
	if r.inFence || closes(s) {
		return stay
	}
	if r.lang.source && l.indent > 0 {
		return pause
	}
	return begin
}

func closes(s string) bool { return s[0] == '}' || s[0] == ')' || s[0] == ']' }

// source classifies a line of program text, s without its indentation.
func (r *reader) source(l *line, s string) {
	switch {
	case r.comment(s):
		l.kind = commentLine
	case r.imports(s):
		l.kind = importLine
	default:
		l.kind = plainLine
		from, to, ok := declaration(s, r.lang, int(l.indent))
		if !ok || l.indent == 255 || to+int(l.indent) > 1<<16-1 {
			return
		}
		l.kind = declLine
		l.name = [2]uint16{uint16(from) + uint16(l.indent), uint16(to) + uint16(l.indent)} //nolint:gosec // looked at above
	}
}

// comment reports whether a line is a comment, or inside one.
func (r *reader) comment(s string) bool {
	if r.inComment != "" {
		if strings.Contains(s, r.inComment) {
			r.inComment = ""
		}
		return true
	}
	switch s[0] {
	case '/':
		if r.lang.slash && strings.HasPrefix(s, "/*") {
			if !strings.Contains(s[2:], "*/") {
				r.inComment = "*/"
			}
			return true
		}
		return r.lang.slash && strings.HasPrefix(s, "//")
	case '#':
		return r.lang.hash
	case '-':
		return r.lang.dash && strings.HasPrefix(s, "--")
	case ';':
		return r.lang.semicolon
	case '"', '\'':
		if r.lang.hash && (strings.HasPrefix(s, `"""`) || strings.HasPrefix(s, `'''`)) {
			if !strings.Contains(s[3:], s[:3]) {
				r.inComment = s[:3]
			}
			return true
		}
	}
	return false
}

// imports reports whether a line only names other packages.
func (r *reader) imports(s string) bool {
	if r.inImport {
		r.inImport = s[0] != ')'
		return true
	}
	switch s[0] {
	case 'i':
		if s == "import (" {
			r.inImport = true
		}
		return strings.HasPrefix(s, "import ") || strings.HasPrefix(s, "import\t")
	case '#':
		return strings.HasPrefix(s, "#include")
	case 'u':
		return strings.HasPrefix(s, "use ") || strings.HasPrefix(s, "using ")
	case 'f':
		return strings.HasPrefix(s, "from ") && strings.Contains(s, " import ")
	}
	return false
}

// withComment lets the comment directly before a declaration begin the
// passage.
func (r *reader) withComment(decl int) {
	first := decl
	for first > 0 && (r.lines[first-1].kind == commentLine || r.attribute(r.lines[first-1])) {
		first--
	}
	if first == 0 {
		return
	}
	before := r.lines[first-1]
	if before.kind == blankLine || before.kind == declLine && before.indent == r.lines[decl].indent ||
		before.kind == plainLine && before.end > before.start && strings.IndexByte("})];", r.text[before.end-1]) >= 0 {
		r.lines[first].begins = begin
	}
}

// attribute reports whether a line decorates the declaration below it.
func (r *reader) attribute(l line) bool {
	if l.kind != plainLine {
		return false
	}
	s := r.text[l.start+int(l.indent) : l.end]
	return s != "" && (s[0] == '@' || strings.HasPrefix(s, "#[") || strings.HasPrefix(s, "template"))
}

// prose classifies a line of text for people.
func (r *reader) prose(l *line, s string) {
	l.kind = plainLine
	if strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~") {
		r.inFence = !r.inFence
		return
	}
	if r.inFence {
		return
	}
	level := strings.IndexFunc(s, func(c rune) bool { return c != '#' && c != '=' })
	if level > 0 && level <= 6 && s[level] == ' ' {
		l.kind, l.begins, l.indent = headingLine, begin, uint8(level)
		return
	}
	// A heading underlined with = or -.
	if n := len(r.lines); n > 0 && underlines(s) && r.lines[n-1].kind == plainLine && r.lines[n-1].begins == begin {
		r.lines[n-1].kind, r.lines[n-1].indent = headingLine, 1
		if s[0] == '-' {
			r.lines[n-1].indent = 2
		}
	}
}

// underlines reports whether a line consists of a rule.
func underlines(s string) bool {
	return len(s) >= 3 && (s[0] == '=' || s[0] == '-') && strings.Trim(s, s[:1]) == ""
}
