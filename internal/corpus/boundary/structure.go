// Package boundary finds where texts are best cut: before headings, before
// declarations with their comments, before whole records, between paragraphs.
//
// A text is read line by line, once and forward, and never as a whole. What a
// line begins is told by a small machine for the kind of the text (a [Form]): it
// knows fences, strings and comments that go on over lines, and nothing of the
// meaning. Every text has an outline: one that a machine misreads is cut at
// worse places, and never lost.
package boundary

// Rank says how well a text is cut before a line: the higher, the better. What
// lies between two marks of at least a rank is one unit of that rank.
type Rank uint8

// The ranks, the worst place first.
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
	// Block does so after a blank line.
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

// marks are kept in the order of their offsets.
type marks struct {
	list []Mark
	head int // those before were forgotten
}

// add notes a place that lies after all others, or raises the last one.
func (m *marks) add(off int64, r Rank) {
	if n := len(m.list); n > m.head && m.list[n-1].Offset >= off {
		m.list[n-1].Rank = max(m.list[n-1].Rank, r)
		return
	}
	m.list = append(m.list, Mark{off, r})
}

// forget drops the marks before off.
func (m *marks) forget(off int64) {
	for m.head < len(m.list) && m.list[m.head].Offset < off {
		m.head++
	}
	if m.head > 4096 && m.head > len(m.list)/2 {
		m.list = append(m.list[:0], m.list[m.head:]...)
		m.head = 0
	}
}

// scanner tells what the lines of a text begin.
type scanner interface {
	// line is told each line, without its end, and where it begins. Of a line
	// that is longer than the window it gets the beginning.
	line(off int64, text []byte)
	// more is told the rest of such a line.
	more(text []byte)
	// settled returns the place before which marks do not change any more, when
	// the lines before off were told.
	settled(off int64) int64
	// end is told that there are no more lines.
	end()
}

// holdBytes bounds how long a machine waits for the end of a comment, a string
// or a quoted field before it takes it for a misreading.
const holdBytes = 256 << 10

// indent returns the number of blanks that a line begins with, and the byte
// after them; 0 for a blank line.
func indent(text []byte) (n int, first byte) {
	for n < len(text) {
		switch c := text[n]; c {
		case ' ', '\t', '\r', '\v', '\f':
			n++
		default:
			return n, c
		}
	}
	return n, 0
}
