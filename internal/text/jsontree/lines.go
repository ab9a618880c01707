package jsontree

import (
	"bytes"
	"slices"
	"sort"
	"unicode/utf8"
)

const byteOrderMark = "\xef\xbb\xbf"

// Position returns the line and the column of an offset in a text, counted from
// 1. Columns count characters; a byte order mark is none.
func Position(text []byte, offset int) (line, column int) {
	before := text[:min(max(offset, 0), len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	if start == 0 {
		before = bytes.TrimPrefix(before, []byte(byteOrderMark))
	}
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

// InvalidUTF8 returns the offset of the first byte that is not UTF-8, -1 if
// there is none.
func InvalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
}

// ToValidUTF8 returns the text with U+FFFD in place of bytes that are not UTF-8,
// and the offset of the first of them; the text itself and -1 if there are none.
func ToValidUTF8(text []byte) ([]byte, int) {
	at := InvalidUTF8(text)
	if at < 0 {
		return text, -1
	}
	return bytes.ToValidUTF8(text, []byte("\uFFFD")), at
}

// Lines converts many offsets of one text into lines and columns. It is built at
// the first use and not safe for concurrent use.
type Lines struct {
	text   []byte
	starts []int // offsets of the lines
	marks  []mark
}

// mark is a place in a long line, from which characters are counted.
type mark struct{ offset, column int }

// markEvery is how many bytes apart marks are at least.
const markEvery = 4 << 10

// NewLines returns the lines of a text, which must not change afterwards.
func NewLines(text []byte) *Lines { return &Lines{text: text} }

func (l *Lines) build() {
	if l.starts != nil {
		return
	}
	l.starts = []int{0}
	at, last := 0, mark{0, 1}
	l.marks = []mark{last}
	if bytes.HasPrefix(l.text, []byte(byteOrderMark)) {
		at = len(byteOrderMark)
		last = mark{at, 1}
	}
	column := 1
	for at < len(l.text) {
		if l.text[at] == '\n' {
			l.starts = append(l.starts, at+1)
			column = 0 // becomes 1 below
		}
		_, size := utf8.DecodeRune(l.text[at:])
		at, column = at+size, column+1
		if at-last.offset >= markEvery {
			last = mark{at, column}
			l.marks = append(l.marks, last)
		}
	}
}

// Len returns the number of lines.
func (l *Lines) Len() int {
	l.build()
	return len(l.starts)
}

// Start returns the offset of a line, the first or the last one for a line that
// the text does not have.
func (l *Lines) Start(line int) int {
	l.build()
	return l.starts[min(max(line, 1), len(l.starts))-1]
}

// Position is [Position] without reading the whole text each time.
func (l *Lines) Position(offset int) (line, column int) {
	l.build()
	offset = min(max(offset, 0), len(l.text))
	line, _ = slices.BinarySearch(l.starts, offset+1)
	from := mark{l.starts[line-1], 1}
	i := sort.Search(len(l.marks), func(i int) bool { return l.marks[i].offset > offset }) - 1
	if l.marks[i].offset > from.offset {
		from = l.marks[i]
	}
	rest := l.text[from.offset:offset]
	if from.offset == 0 {
		rest = bytes.TrimPrefix(rest, []byte(byteOrderMark))
	}
	return line, from.column + utf8.RuneCount(rest)
}
