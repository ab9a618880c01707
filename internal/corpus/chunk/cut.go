package chunk

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/perdure/perdure/internal/corpus/boundary"
	"github.com/perdure/perdure/internal/corpus/pack"
)

const (
	// searchBytes is the number of bytes read at once to find the end of a line.
	searchBytes = 64 << 10
	// blankBytes limits the blank lines after a unit that do not count for its size.
	blankBytes = 1 << 10
)

// cutter finds the ends of the parts of one file. A unit is the text between two marks of
// the file's outline that have at least a certain rank. A cut within a unit is allowed only
// if the unit does not fit in a part; so no unit that fits is cut, at any rank, and two
// neighbouring parts together exceed the limit of one.
type cutter struct {
	s       *splitter
	outline *boundary.Outline
	start   int64
	end     int64
	most    int64 // bytes of a part
	err     error // of reading
}

// next returns the end of the part that begins at begin and has at most room bytes.
func (c *cutter) next(begin, room int64) (int64, error) {
	c.outline.Forget(begin - c.s.overlap.most - 1)
	left := c.end - begin
	if left <= room {
		return c.end, nil
	}
	span := room / 4
	if left <= room+room/2 { // two halves rather than a large and a tiny part
		latest := max(begin+left/2+span/2, begin+1)
		at, err := c.best(begin, latest-span, latest)
		if err != nil || at > begin && at >= latest-span {
			return at, err
		}
	}
	latest := begin + room
	at, err := c.best(begin, latest-span, latest)
	if err != nil || at > begin {
		return at, err
	}
	return c.within(begin, latest)
}

// best returns the best place to cut up to latest: between earliest and latest the one of
// the highest rank, else the last one; begin if there is none except within a line.
func (c *cutter) best(begin, earliest, latest int64) (int64, error) {
	u := newUnits(begin, latest, c)
	if begin == c.start {
		u.start()
	}
	marks, err := c.outline.Marks(latest + 1)
	if err != nil {
		return 0, err
	}
	i := firstMark(marks, begin)
	for more := true; more; i++ {
		if i == len(marks) {
			if marks, err = c.outline.Marks(u.wanted()); err != nil {
				return 0, err
			}
		}
		m := boundary.Mark{Offset: c.end, Rank: boundary.Ranks}
		if i < len(marks) {
			m = marks[i]
		}
		if m.Offset > latest && !u.past {
			m.Offset = c.blankFrom(begin, latest, m.Offset)
		}
		more = u.mark(m) && i < len(marks)
	}
	u.pass()
	u.close(c.end, boundary.Ranks)
	at, lines := u.choose(earliest)
	if lines >= 0 {
		at, err = c.line(max(at, lines, begin), latest)
	}
	return at, errors.Join(err, c.err)
}

// firstMark returns the index of the first mark at or after an offset.
func firstMark(marks []boundary.Mark, off int64) int {
	i, _ := slices.BinarySearchFunc(marks, off, func(m boundary.Mark, off int64) int { return cmp.Compare(m.Offset, off) })
	return i
}

// blankFrom returns where the blank lines before a mark begin if they include latest; else
// the offset of the mark.
func (c *cutter) blankFrom(begin, latest, mark int64) int64 {
	if at, ok := c.gap(latest, mark); ok && at > begin {
		return at
	}
	return mark
}

// fits reports whether a unit, without the blank lines at its end, fits in a part.
func (c *cutter) fits(from, to int64) bool {
	if to-from <= c.most {
		return true
	}
	_, ok := c.gap(from+c.most, to)
	return ok
}

// gap returns where the blank lines before to begin; ok is set if that is at from or before
// it.
func (c *cutter) gap(from, to int64) (at int64, ok bool) {
	if to-from > blankBytes {
		return 0, false
	}
	low := max(from-blankBytes, c.start)
	text, err := c.s.read(low, to)
	if err != nil {
		c.err = errors.Join(c.err, err)
		return 0, false
	}
	content := len(bytes.TrimRight(text, " \t\r\n"))
	line := bytes.IndexByte(text[content:], '\n')
	at = low + int64(content+line) + 1
	return at, line >= 0 && at <= from
}

// line returns the last beginning of a line after low and up to latest; low if
// there is none.
func (c *cutter) line(low, latest int64) (int64, error) {
	for to := latest; to > low; {
		from := max(to-searchBytes, low)
		text, err := c.s.read(from, to)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		to = from
	}
	return low, nil
}

// within returns where a line that is longer than a part is cut: behind a sentence or a blank near
// latest, else behind the last white space of the part, so that no word is cut that fits. A longer
// word is cut behind a comma near latest, else between characters.
func (c *cutter) within(begin, latest int64) (int64, error) {
	const near = 256
	from := max(latest-near, begin+(latest-begin)*3/4)
	text, err := c.s.read(from, latest)
	if err != nil {
		return 0, err
	}
	for _, sign := range []string{". ", " "} {
		if i := bytes.LastIndex(text, []byte(sign)); i >= 0 {
			return from + int64(i+len(sign)), nil
		}
	}
	comma := bytes.LastIndexByte(text, ',')
	if at, err := c.behindWord(begin, latest); err != nil || at > begin {
		return at, err
	}
	if comma >= 0 {
		return from + int64(comma) + 1, nil
	}
	from = max(latest-near, begin)
	if text, err = c.s.read(from, latest); err != nil {
		return 0, err
	}
	return from + int64(pack.CutPoint(text)), nil
}

// behindWord returns the place behind the last white space of a range that has a word before it;
// begin if there is none.
func (c *cutter) behindWord(begin, latest int64) (int64, error) {
	const blanks = " \t\n\v\f\r"
	found := begin
	for to := latest; to > begin; {
		from := max(to-searchBytes, begin)
		text, err := c.s.read(from, to)
		if err != nil {
			return 0, err
		}
		if found == begin {
			if i := bytes.LastIndexAny(text, blanks); i >= 0 {
				found = from + int64(i) + 1
				text = text[:i]
			}
		}
		if found > begin && len(bytes.TrimLeft(text, blanks)) > 0 {
			return found, nil
		}
		to = from
	}
	return begin, nil
}

// units follows the marks from the beginning of a part on and determines which of them are
// allowed as its end.
type units struct {
	begin, latest int64
	c             *cutter
	// above is, for each rank, the last mark of a higher one, where the current unit of the
	// rank begins; -1 before the first.
	above [boundary.Ranks]int64
	// open is, for each rank, the last mark of it up to latest whose unit has no end yet; -1
	// for none. For rank Line it is latest itself.
	open [boundary.Ranks]int64
	// allowed is, for each rank, the last mark that is allowed; -1 for none.
	allowed [boundary.Ranks]int64
	// past is set after the marks up to latest.
	past bool
}

func newUnits(begin, latest int64, c *cutter) *units {
	u := &units{begin: begin, latest: latest, c: c}
	for r := range u.above {
		u.above[r], u.open[r], u.allowed[r] = -1, -1, -1
	}
	return u
}

// start begins units of all ranks, at the beginning of the file.
func (u *units) start() {
	for r := range u.above {
		u.above[r] = u.begin
	}
}

// mark reads the next mark and reports whether more are needed.
func (u *units) mark(m boundary.Mark) bool {
	if m.Offset > u.latest {
		u.pass()
	}
	u.close(m.Offset, m.Rank)
	if u.past {
		return u.waits(m.Offset)
	}
	if m.Offset > u.begin {
		u.enter(m.Offset, m.Rank)
	}
	for r := range m.Rank {
		u.above[r] = m.Offset
	}
	return true
}

// enter makes a mark a possible end.
func (u *units) enter(off int64, r boundary.Rank) {
	if r == boundary.Ranks { // only blank lines of the file remain
		u.allowed[boundary.Section1] = off
		return
	}
	if u.above[r] < 0 { // its unit began before the part, so it did not fit
		u.allowed[r] = off
		return
	}
	u.open[r] = off
}

// close ends the units of lower ranks at a mark: those that fit are not cut.
func (u *units) close(off int64, rank boundary.Rank) {
	for r := range rank {
		if u.open[r] < 0 {
			continue
		}
		if !u.c.fits(u.above[r], off) {
			u.allowed[r] = u.open[r]
		}
		u.open[r] = -1
	}
}

// pass ends the marks up to latest.
func (u *units) pass() {
	if !u.past {
		u.past = true
		u.enter(u.latest, boundary.Line)
	}
}

// waits reports whether there are open units that may still fit.
func (u *units) waits(off int64) bool {
	for r := range u.open {
		if u.open[r] >= 0 && off <= u.above[r]+u.c.most+blankBytes {
			return true
		}
	}
	return false
}

// wanted returns the offset up to which marks are needed.
func (u *units) wanted() int64 {
	to := u.latest
	for r := range u.open {
		if u.open[r] >= 0 || boundary.Rank(r) == boundary.Line && !u.past && u.above[r] >= 0 {
			to = max(to, u.above[r]+u.c.most+blankBytes)
		}
	}
	return to + 1
}

// choose returns the best mark, begin for none, and the offset after which the text may be
// cut at any line; -1 if it may not.
func (u *units) choose(earliest int64) (at, lines int64) {
	at = u.begin
	for r := boundary.Ranks - 1; r > boundary.Line; r-- {
		if u.allowed[r] >= earliest {
			return u.allowed[r], -1
		}
		at = max(at, u.allowed[r])
	}
	if u.allowed[boundary.Line] < 0 {
		return at, -1
	}
	return at, max(u.above[boundary.Line], u.begin)
}
