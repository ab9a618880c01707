package boundary

import "bytes"

// heading is a line that begins a section, by how it begins.
type heading struct {
	prefix string
	rank   Rank
}

// prose describes how the sections of a text for people begin.
type prose struct {
	extensions []string
	// signs, repeated, begin headings: "##" is the second level.
	signs string
	// headings are other beginnings of headings.
	headings []heading
	// fences is set if code is between fences, and lists have items.
	fences bool
	// underlined is set if a line of "=" or "-" makes a heading of the line before it.
	underlined bool
	// plain is set if headings come only after blank lines, and chapters are headings.
	plain bool
}

func proseTable() []prose {
	return []prose{
		{extensions: []string{".md", ".markdown", ".mdx", ".qmd", ".rmd", ".mkd"}, signs: "#", fences: true,
			underlined: true},
		{extensions: []string{".txt", ".text"}, signs: "#", plain: true, underlined: true},
		{extensions: []string{".rst", ".rest"}, plain: true, underlined: true},
		{extensions: []string{".adoc", ".asciidoc", ".wiki", ".mediawiki", ".typ"}, signs: "="},
		{extensions: []string{".org"}, signs: "*"},
		{extensions: []string{".tex", ".ltx", ".sty"}, headings: []heading{
			{`\part`, Section1}, {`\chapter`, Section2}, {`\section`, Section3}, {`\subsection`, Section4},
			{`\subsubsection`, Section5}, {`\begin{document}`, Section1},
		}},
		{extensions: []string{".diff", ".patch"}, headings: []heading{
			{"commit ", Section1}, {"From ", Section1}, {"diff ", Section2}, {"Index: ", Section2}, {"@@ ", Section4},
		}},
		{extensions: []string{".mbox", ".eml"}, headings: []heading{{"From ", Section1}}},
		{extensions: []string{".srt", ".vtt"}},
	}
}

// proseScanner finds headings, paragraphs, list items and fenced code.
type proseScanner struct {
	stateless

	prose *prose
	out   *marks
	// fence and fenceLen are the character and the length of the open fence; 0 outside.
	fence    byte
	fenceLen int
	// front is set in the metadata before a text.
	front bool
	// started is set after the first line, blank after a blank one.
	started, blank bool
	// glued is set after a line that ends in a colon: the next block belongs to it.
	glued bool
	// first is the beginning of the paragraph whose first line was the last line read; -1
	// if that was another line.
	first int64
}

func newProseScanner(p *prose, out *marks) *proseScanner {
	return &proseScanner{prose: p, out: out, blank: true, first: -1}
}

func (s *proseScanner) more([]byte) { s.first = -1 }

func (s *proseScanner) settled(off int64) int64 {
	if s.first >= 0 {
		return s.first
	}
	return off
}

func (s *proseScanner) line(off int64, text []byte) {
	col, c := indent(text)
	body := bytes.TrimRight(text[col:], " \t\r")
	first := !s.started
	s.started = true
	switch {
	case s.front || first && s.prose.fences && string(body) == "---":
		s.front = off < holdBytes && (first || string(body) != "---" && string(body) != "...")
		s.blank = !s.front
	case s.fence != 0:
		s.fenced(off, body)
	case c == 0:
		s.blank, s.first = true, -1
	default:
		s.text(off, body, col)
		s.blank = false
	}
}

// text reads a line that is neither blank nor in fenced code.
func (s *proseScanner) text(off int64, body []byte, col int) {
	before := s.first
	s.first = -1
	if r := s.heading(body, col); r > Line {
		s.out.add(off, r)
		s.glued = false
		return
	}
	if r := s.underline(body); r > Line && before >= 0 {
		s.out.add(before, r)
		s.glued = false
		return
	}
	switch {
	case s.prose.fences && (s.fenceOpens(body) || listItem(body)):
		s.out.add(off, s.block(col, Inner))
	case s.blank:
		s.first = off
		s.out.add(off, s.block(col, Paragraph))
	}
	s.glued = body[len(body)-1] == ':'
}

// block returns the rank of a block that begins here: that of a paragraph, unless it
// belongs to the text before it.
func (s *proseScanner) block(col int, otherwise Rank) Rank {
	switch {
	case s.prose.fences && col > 0 && otherwise == Inner && !s.blank:
		return Paragraph // an item of an item
	case !s.blank:
		return otherwise
	case s.glued:
		return Inner
	case col > 0 && s.prose.fences:
		return Paragraph // it continues a list item
	}
	return Member
}

// heading returns the rank of a line as a heading; Line if it is none.
func (s *proseScanner) heading(body []byte, col int) Rank {
	if s.prose.plain && !s.blank || col > 3 {
		return Line
	}
	if s.prose.signs != "" && body[0] == s.prose.signs[0] {
		level := run(body)
		if level <= 6 && (level == len(body) || body[level] == ' ' || body[level] == '\t') {
			return Section1 - Rank(level-1)
		}
	}
	for _, h := range s.prose.headings {
		if col == 0 && bytes.HasPrefix(body, []byte(h.prefix)) {
			return h.rank
		}
	}
	if s.prose.plain {
		return chapter(body)
	}
	return Line
}

// chapter returns the rank of a line like "CHAPTER IV. The Shed" or "Book 2".
func chapter(body []byte) Rank {
	const longest = 100
	word, rest, ok := bytes.Cut(body, []byte{' '})
	if !ok || len(body) > longest || len(rest) == 0 {
		return Line
	}
	number, _, _ := bytes.Cut(rest, []byte{' '})
	number = bytes.Trim(number, ".:-—")
	if len(number) == 0 || len(bytes.Trim(number, "IVXLCDM0123456789")) != 0 {
		return Line
	}
	switch string(bytes.ToUpper(word)) {
	case "BOOK", "PART", "VOLUME", "ACT":
		return Section1
	case "CHAPTER", "LETTER", "STAVE", "CANTO", "SECTION", "ARTICLE":
		return Section2
	case "SCENE":
		return Section3
	}
	return Line
}

// underline returns the rank of the previous line if this one underlines it.
func (s *proseScanner) underline(body []byte) Rank {
	if !s.prose.underlined || len(body) < 3 || len(bytes.Trim(body, string(body[:1]))) != 0 {
		return Line
	}
	switch body[0] {
	case '=':
		return Section1
	case '-':
		return Section2
	case '~', '^', '"', '*', '+':
		if !s.prose.fences {
			return Section3
		}
	}
	return Line
}

// fenceOpens reports whether a line begins fenced code.
func (s *proseScanner) fenceOpens(body []byte) bool {
	c := body[0]
	if c != '`' && c != '~' {
		return false
	}
	n := run(body)
	if n < 3 || c == '`' && bytes.IndexByte(body[n:], '`') >= 0 {
		return false
	}
	s.fence, s.fenceLen = c, n
	return true
}

// fenced reads a line of fenced code. A new block begins after its end.
func (s *proseScanner) fenced(off int64, body []byte) {
	if len(body) == 0 {
		s.blank = true
		return
	}
	if body[0] == s.fence && run(body) == len(body) && len(body) >= s.fenceLen {
		s.fence, s.blank, s.glued = 0, true, false
		return
	}
	if s.blank {
		s.out.add(off, Paragraph)
	}
	s.blank = false
}

// run returns the number of bytes at the beginning that are equal.
func run(body []byte) int {
	return len(body) - len(bytes.TrimLeft(body, string(body[:1])))
}

// listItem reports whether a line is like "- x", "* x" and "1. x".
func listItem(body []byte) bool {
	if c := body[0]; c == '-' || c == '*' || c == '+' {
		return len(body) > 1 && body[1] == ' '
	}
	rest := bytes.TrimLeft(body, "0123456789")
	n := len(body) - len(rest)
	return n > 0 && n <= 9 && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' '
}

// blockScanner marks blocks by blank lines and indentation only.
type blockScanner struct {
	stateless

	out   *marks
	blank bool
}

func (s *blockScanner) line(off int64, text []byte) {
	col, first := indent(text)
	switch {
	case first == 0:
		s.blank = true
		return
	case s.blank && col == 0 && bytes.IndexByte([]byte("})];"), first) < 0:
		s.out.add(off, Block)
	case s.blank:
		s.out.add(off, Paragraph)
	}
	s.blank = false
}
