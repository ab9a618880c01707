// Package boundary finds the best places to cut a text: before headings, before
// declarations with their comments, before whole records, between paragraphs.
//
// A text is read line by line, once and forward, and never held as a whole. A scanner for
// the form of the text (see [Form]) determines what each line begins: it follows fences,
// strings and comments over lines, and does not parse the language. Every text has an
// outline: one that a scanner misreads is cut at worse places, and no text is lost.
package boundary

import "bytes"

// Rank is how suitable a line's beginning is for a cut: the higher, the better. The text
// between two marks of at least a rank is one unit of that rank.
type Rank uint8

// Ranks of marks, the least suitable first.
const (
	// Line is any line. It has no mark.
	Line Rank = iota
	// Paragraph follows a blank line inside of something larger.
	Paragraph
	// Inner begins a member of a member, a list item, or fenced code.
	Inner
	// Member begins a member of a declaration, or a paragraph of prose.
	Member
	// Statement begins something at the top level.
	Statement
	// Block is a Statement after a blank line.
	Block
	// Declaration declares something at the top level.
	Declaration
	// Record begins a record of data: a row, an object, an entry of a log.
	Record
	// Section6 to Section1 are headings.
	Section6
	Section5
	Section4
	Section3
	Section2
	Section1
	// Ranks is the number of ranks.
	Ranks
)

// Mark is a place where a text can be cut: the beginning of a line.
type Mark struct {
	Offset int64
	Rank   Rank
}

// marks are sorted by offset.
type marks struct {
	list []Mark
	head int // index of the first mark that was not forgotten
}

// add adds a mark after all others, or raises the rank of the last one.
func (m *marks) add(off int64, r Rank) {
	if n := len(m.list); n > m.head && m.list[n-1].Offset >= off {
		m.list[n-1].Rank = max(m.list[n-1].Rank, r)
		return
	}
	m.list = append(m.list, Mark{off, r})
}

// forget removes the marks before off.
func (m *marks) forget(off int64) {
	for m.head < len(m.list) && m.list[m.head].Offset < off {
		m.head++
	}
	if m.head > 4096 && m.head > len(m.list)/2 {
		m.list = append(m.list[:0], m.list[m.head:]...)
		m.head = 0
	}
}

// scanner marks the lines of a text.
type scanner interface {
	// line reads the next line, without its end, and the offset where it begins. Of a line
	// that is longer than the window it receives the beginning.
	line(off int64, text []byte)
	// more reads the rest of such a line.
	more(text []byte)
	// settled returns the offset before which marks do not change any more, after the lines
	// before off were read.
	settled(off int64) int64
	// end is called after the last line.
	end()
}

// stateless implements the methods of scanners that hold nothing back.
type stateless struct{}

func (stateless) more([]byte) {}

func (stateless) settled(off int64) int64 { return off }

func (stateless) end() {}

// holdBytes limits a comment, a string or a quoted field: the beginning of a longer one was
// misread.
const holdBytes = 256 << 10

// indent returns the number of blanks that a line begins with, and the byte after them; 0
// for a blank line.
func indent(text []byte) (n int, first byte) {
	rest := bytes.TrimLeft(text, " \t\r\v\f")
	if len(rest) == 0 {
		return len(text), 0
	}
	return len(text) - len(rest), rest[0]
}
