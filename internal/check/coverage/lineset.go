package coverage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// MaxLine is the highest line number that a set can hold.
const MaxLine = 1<<31 - 1

// Lines is a set of line numbers, counted from 1. Its zero value is empty. It is compact
// for adjacent lines, and is written to JSON as a list of ranges: [[1,3],[7,7]]. A set
// must not be changed while other goroutines read it.
type Lines struct {
	words []word // sorted by block
}

// word holds the lines block*64 to block*64+63.
type word struct {
	block uint32
	bits  uint64
}

// Add adds a line.
func (l *Lines) Add(line int) { l.AddRange(line, line) }

// AddRange adds the lines first to last, both included.
func (l *Lines) AddRange(first, last int) {
	first, last = max(first, 1), min(last, MaxLine)
	for line := first; line <= last; { // a word at a time
		end := min(line|63, last)
		w := l.word(uint32(line >> 6))
		w.bits |= ^uint64(0) << (line & 63) & (^uint64(0) >> (63 - end&63))
		line = end + 1
	}
}

// word returns or creates the word of a block. Lines are mostly added in order, so the
// last word is tried first.
func (l *Lines) word(block uint32) *word {
	n := len(l.words)
	if n > 0 && l.words[n-1].block == block {
		return &l.words[n-1]
	}
	i, found := n, false
	if n > 0 && l.words[n-1].block > block {
		i, found = l.search(block)
	}
	if !found {
		l.words = slices.Insert(l.words, i, word{block: block})
	}
	return &l.words[i]
}

func (l *Lines) search(block uint32) (i int, found bool) {
	return slices.BinarySearchFunc(l.words, block, func(w word, b uint32) int { return cmp.Compare(w.block, b) })
}

// Has reports whether a line is in the set.
func (l *Lines) Has(line int) bool {
	if line < 1 || line > MaxLine {
		return false
	}
	i, found := l.search(uint32(line >> 6))
	return found && l.words[i].bits&(1<<(line&63)) != 0
}

// Len returns the number of lines in the set.
func (l *Lines) Len() int {
	n := 0
	for _, w := range l.words {
		n += bits.OnesCount64(w.bits)
	}
	return n
}

// All yields the lines in order.
func (l *Lines) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, w := range l.words {
			for rest := w.bits; rest != 0; rest &= rest - 1 {
				if !yield(int(w.block)<<6 | bits.TrailingZeros64(rest)) {
					return
				}
			}
		}
	}
}

// Merge adds the lines of another set.
func (l *Lines) Merge(other *Lines) {
	for _, o := range other.words {
		l.word(o.block).bits |= o.bits
	}
}

// Range is a run of lines, both ends included.
type Range struct {
	First, Last int
}

// Ranges returns the lines as ranges, in order.
func (l *Lines) Ranges() []Range {
	var all []Range
	for line := range l.All() {
		if n := len(all); n > 0 && all[n-1].Last == line-1 {
			all[n-1].Last = line
		} else {
			all = append(all, Range{First: line, Last: line})
		}
	}
	return all
}

// String formats the lines as in 3-7, 12.
func (l *Lines) String() string {
	var parts []string
	for _, r := range l.Ranges() {
		if r.First == r.Last {
			parts = append(parts, strconv.Itoa(r.First))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes the set as ranges.
func (l Lines) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, r := range l.Ranges() {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "[%d,%d]", r.First, r.Last)
	}
	return append(text, ']'), nil
}

// UnmarshalJSON reads the output of MarshalJSON. Ranges must be in order, and hold at
// most 16 million lines together.
func (l *Lines) UnmarshalJSON(text []byte) error {
	var ranges [][2]int
	if err := json.Unmarshal(text, &ranges); err != nil {
		return fmt.Errorf("read line ranges: %w", err)
	}
	var made Lines
	last, total := 0, 0
	for _, r := range ranges {
		if r[0] <= last || r[1] < r[0] || r[1] > MaxLine {
			return fmt.Errorf("read line ranges: [%d,%d] after line %d", r[0], r[1], last)
		}
		last = r[1]
		if total += r[1] - r[0] + 1; total > 16<<20 {
			return fmt.Errorf("read line ranges: more than %d lines", 16<<20)
		}
		made.AddRange(r[0], r[1])
	}
	*l = made
	return nil
}
