package boundary

import (
	"bytes"
	"slices"
)

// codeScanner finds declarations and their members. Comments and decorators stay with the
// code after them.
type codeScanner struct {
	lang *language
	out  *marks
	lex  *lexer
	// first has the flags of lines by their first byte.
	first [256]uint8
	// blank is set after a blank line.
	blank bool
	// margin is the indentation of the members of the last thing at the top level, in an
	// indented language; 0 while it is not known.
	margin int
	// directive is set in a directive that continues in the next line.
	directive bool
	// held are comments and decorators that belong to the next line of code, or to none.
	held []held
}

// held is a group of comments or decorators.
type held struct {
	off   int64
	depth int
	// blank is set after a blank line. sticky is set for decorators, which belong to their
	// declaration also across a blank line. apart is set for comments before a blank line.
	blank, sticky, apart bool
}

// Flags of lines by their first byte.
const (
	firstDeclares uint8 = 1 << iota
	firstDecorates
	firstCloses
	firstDirects
)

func newCodeScanner(l *language, out *marks) *codeScanner {
	s := &codeScanner{lang: l, out: out, lex: newLexer(l)}
	for flag, words := range map[uint8][]string{firstDeclares: l.declarations, firstDecorates: l.decorators,
		firstCloses: l.closers} {
		for _, w := range words {
			s.first[w[0]] |= flag
		}
	}
	if l.directive != 0 {
		s.first[l.directive] |= firstDirects
	}
	return s
}

func (s *codeScanner) declares(body []byte) bool {
	return s.first[body[0]]&firstDeclares != 0 && hasPrefix(body, s.lang.declarations)
}

func (s *codeScanner) decorates(body []byte) bool {
	return s.first[body[0]]&firstDecorates != 0 && hasPrefix(body, s.lang.decorators)
}

func (s *codeScanner) directs(body []byte) bool { return s.first[body[0]]&firstDirects != 0 }

// buried reports whether a line is nested so deeply that it begins nothing.
func (s *codeScanner) buried(body []byte, col int) bool {
	return s.lex.depth > 2 && !s.blank && col > 0 && !s.lang.indented && len(s.held) == 0 && !s.directive &&
		!s.directs(body)
}

func (s *codeScanner) more(text []byte) { s.lex.walk(text) }

func (s *codeScanner) settled(off int64) int64 {
	if len(s.held) > 0 {
		return s.held[0].off
	}
	return off
}

func (s *codeScanner) end() { s.release(0) }

func (s *codeScanner) line(off int64, text []byte) {
	if s.lex.inside() {
		s.lex.walk(text)
		s.blank = false
		return
	}
	col, first := indent(text)
	if first == 0 {
		s.blankLine()
		return
	}
	if len(s.held) > 0 && off-s.held[0].off > holdBytes {
		s.release(0)
	}
	s.code(off, text, text[col:], col)
	s.blank = false
}

func (s *codeScanner) blankLine() {
	s.blank = true
	if n := len(s.held); n > 0 && !s.held[n-1].sticky {
		s.held[n-1].apart = true
	}
	if s.directive {
		s.directive, s.lex.last = false, ';'
	}
}

// code reads a line that is not blank and begins outside of strings and comments. body is
// the line from column col on.
func (s *codeScanner) code(off int64, text, body []byte, col int) {
	if s.buried(body, col) {
		s.lex.walk(text)
		return
	}
	declares := s.declares(body)
	if declares && col == 0 && !s.lang.indented && !s.directive {
		s.lex.depth = 0 // also if brackets were misread before
	}
	depth := s.depth(col)
	switch {
	case s.comment(body):
		s.hold(off, depth, false)
		s.lex.walk(text)
		return
	case !declares && s.decorates(body) && (s.begins(body, depth) || s.decorated()):
		s.hold(off, depth, true)
		open := s.lex.depth
		s.lex.walk(text)
		if s.lex.last == '{' && s.lex.depth == open+1 || s.lex.last == ';' { // it declares, too
			s.mark(off, depth, s.rank(depth, true, s.blank))
		}
		return
	}
	if s.decorated() && (s.lang.indented && s.lex.depth > 0 || !s.lang.indented && depth > s.held[len(s.held)-1].depth) {
		s.lex.walk(text) // the arguments of a decorator
		return
	}
	switch {
	case s.decorated() || s.begins(body, depth):
		s.mark(off, depth, s.rank(depth, declares, s.blank))
	default:
		if s.lang.indented {
			s.held = s.held[:0] // they are inside of a statement
		}
		s.release(depth)
		if s.blank {
			s.out.add(off, Paragraph)
		}
	}
	s.walk(text, body, col)
}

// walk reads a line of code and records how it affects the next one.
func (s *codeScanner) walk(text, body []byte, col int) {
	directive := s.directive || s.directs(body)
	if col == 0 && body[0] == '}' && !s.lang.indented {
		s.lex.depth = 1 // also if brackets were misread before
	}
	s.lex.walk(text)
	if directive {
		if s.directive = bytes.HasSuffix(bytes.TrimSpace(body), []byte{'\\'}); !s.directive {
			s.lex.last = ';'
		}
	}
	if col == 0 {
		s.margin = 0
	}
}

// depth returns the nesting of a line: 0 at the top level, 1 for its members, 2 deeper.
func (s *codeScanner) depth(col int) int {
	if !s.lang.indented {
		return s.lex.depth
	}
	if col == 0 {
		return 0
	}
	if s.margin == 0 && s.lex.depth == 0 {
		s.margin = col
	}
	if col <= s.margin {
		return 1
	}
	return 2
}

// begins reports whether a line begins a unit, and does not continue one.
func (s *codeScanner) begins(body []byte, depth int) bool {
	if s.directive || s.first[body[0]]&firstCloses != 0 && closes(body, s.lang.closers) {
		return false
	}
	if s.lang.indented {
		return s.lex.depth == 0 && s.lex.last != '\\' && s.margins(depth, body)
	}
	if body[0] == '{' && s.lex.last != ',' && s.lex.last != '[' {
		return false // the body of the code before it
	}
	if bytes.IndexByte([]byte(")]},;"), body[0]) >= 0 || s.lang.newline &&
		bytes.IndexByte([]byte(".?:&|+=%*>"), body[0]) >= 0 {
		return false
	}
	if s.directs(body) {
		return true
	}
	return s.ended() || depth == 0 && s.blank && (!s.lang.newline || s.lex.last != ',')
}

// margins reports whether a line of an indented language begins a unit.
func (s *codeScanner) margins(depth int, body []byte) bool {
	switch {
	case depth > 1:
		return s.declares(body) || s.decorates(body)
	case depth == 0 && s.lang.semicolon:
		return s.lex.last == 0 || s.lex.last == ';' || s.blank && s.declares(body)
	}
	return true
}

// ended reports whether the code before a line is complete.
func (s *codeScanner) ended() bool {
	switch s.lex.last {
	case 0, ';', '{', '}', '[':
		return true
	case '(':
		return false
	case ',':
		return s.lex.depth > 0
	}
	if !s.lang.newline {
		return s.lex.last == ':' && s.lex.depth > 0
	}
	return bytes.IndexByte([]byte("=+-*/%&|^<>?:.!~\\"), s.lex.last) < 0
}

// rank returns the rank of a unit that begins.
func (s *codeScanner) rank(depth int, declares, blank bool) Rank {
	switch {
	case depth == 0 && declares:
		return Declaration
	case depth == 0 && blank:
		return Block
	case depth == 0:
		return Statement
	case depth == 1 && (declares || !s.lang.indented):
		return Member
	case depth <= 2 && (depth == 1 || declares || !s.lang.indented):
		return Inner
	case blank:
		return Paragraph
	}
	return Line
}

// hold keeps a comment or a decorator until the code after it is read.
func (s *codeScanner) hold(off int64, depth int, sticky bool) {
	if n := len(s.held); n > 0 && !s.held[n-1].apart {
		s.held[n-1].sticky = s.held[n-1].sticky || sticky
		return
	}
	if s.lang.indented && s.lex.depth > 0 || s.directive {
		return // among arguments
	}
	if !s.lang.indented && !s.ended() && (depth != 0 || !s.blank) {
		return // inside of a statement
	}
	s.held = append(s.held, held{off: off, depth: depth, blank: s.blank, sticky: sticky})
}

// decorated reports whether there are decorators before the next line.
func (s *codeScanner) decorated() bool { return len(s.held) > 0 && s.held[len(s.held)-1].sticky }

// mark adds the mark of a unit that begins at off, or before it with its comments.
func (s *codeScanner) mark(off int64, depth int, r Rank) {
	at := off
	if n := len(s.held); n > 0 && !s.held[n-1].apart {
		at = s.held[n-1].off
		if s.held[n-1].blank && r == Statement {
			r = Block
		}
		s.held = s.held[:n-1]
	}
	s.release(depth)
	if r > Line {
		s.out.add(at, r)
	}
	if r > Paragraph && at < off { // for a unit that does not fit with its comments
		s.out.add(off, r-1)
	}
}

// release marks the held comments, which belong to no code. In an indented language they
// are nested at least as deeply as the line after them.
func (s *codeScanner) release(depth int) {
	for _, h := range s.held {
		if s.lang.indented {
			h.depth = max(h.depth, depth)
		}
		if r := s.rank(h.depth, false, h.blank); r > Line {
			s.out.add(h.off, r)
		}
	}
	s.held = s.held[:0]
}

// comment reports whether a line is only a comment, or the beginning of one.
func (s *codeScanner) comment(body []byte) bool {
	forms := s.lex.forms[body[0]]
	for i := range forms {
		f := &forms[i]
		if !f.comment || !bytes.HasPrefix(body, []byte(f.open)) {
			continue
		}
		if f.close == "" {
			return !s.decorates(body)
		}
		end := f.end(body, len(f.open))
		return end < 0 || len(bytes.TrimSpace(body[end:])) == 0
	}
	return false
}

func hasPrefix(text []byte, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(text, []byte(p)) })
}

// closes reports whether a text begins with one of the words, or of the signs.
func closes(text []byte, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		rest, ok := bytes.CutPrefix(text, []byte(w))
		return ok && (len(rest) == 0 || !wordByte(w[0]) || !wordByte(rest[0]))
	})
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
