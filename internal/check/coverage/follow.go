package coverage

import (
	"bytes"
	"slices"
)

// LineMap maps the lines of a text to a later version. Its zero value maps no line.
type LineMap struct {
	to   []int32 // by line-1: the line of the later text, or 0
	same bool
}

// Unchanged returns a map of every line to itself, for an unchanged file and a profile
// processed by [File.KeepSolid].
func Unchanged() LineMap { return LineMap{same: true} }

// To returns the line of the later text that corresponds to a line of the earlier one; ok
// is false if it was removed, or has no letter or digit.
func (m LineMap) To(line int) (now int, ok bool) {
	if m.same && line >= 1 {
		return line, true
	}
	if line < 1 || line > len(m.to) || m.to[line-1] == 0 {
		return 0, false
	}
	return int(m.to[line-1]), true
}

// Limits of FollowLines. Lines beyond them count as removed.
const (
	maxTable = 1 << 20  // cells of a table for a range without unique lines
	maxWork  = 40 << 20 // steps in total
	maxLines = 16 << 20 // of a text
	// distinctive is the length in bytes from which a line identifies the position of its
	// neighbours.
	distinctive = 12
	// alone is the length from which a line between changes needs no unchanged neighbour.
	alone = 24
)

// FollowLines finds the lines of a text in a later version, ignoring indentation. Lines
// that occur once in both versions are matched first, in order, then the lines between them;
// finally, blocks that were moved within the file are searched around lines that occur
// once in both. A line that only looks like a removed one (return nil, in another place)
// is not matched. Time and memory are bounded; lines that cannot be matched within the
// bounds count as removed.
func FollowLines(before, after []byte) LineMap {
	if bytes.Count(before, []byte{'\n'}) > maxLines || bytes.Count(after, []byte{'\n'}) > maxLines {
		return LineMap{}
	}
	f := newFollower(before, after)
	f.align()
	f.dropChance()
	f.moves()
	m := LineMap{to: make([]int32, len(f.a))}
	for i, j := range f.match {
		if j >= 0 && f.lines[f.a[i]].solid {
			m.to[i] = j + 1
		}
	}
	return m
}

// textLine is a distinct line of both versions.
type textLine struct {
	solid  bool // has a letter or digit
	length int
	inA    int // number of occurrences in each text
	inB    int
}

// rare reports whether a line occurs once in each text.
func (l *textLine) rare() bool {
	return l.solid && l.length >= distinctive && l.inA == 1 && l.inB == 1
}

type follower struct {
	lines []textLine
	a, b  []int32 // both versions as indexes of lines
	match []int32 // by index in a: index in b, or -1
	taken []bool  // by index in b
	work  int
	// Counts within a range, by line; all zero between uses.
	countA, countB, placeB []int32
}

func newFollower(before, after []byte) *follower {
	f := &follower{}
	known := make(map[string]int32)
	f.a = f.intern(before, known, func(l *textLine) *int { return &l.inA })
	f.b = f.intern(after, known, func(l *textLine) *int { return &l.inB })
	f.match = slices.Repeat([]int32{-1}, len(f.a))
	f.taken = make([]bool, len(f.b))
	f.countA, f.countB, f.placeB = make([]int32, len(f.lines)), make([]int32, len(f.lines)), make([]int32, len(f.lines))
	return f
}

func (f *follower) intern(text []byte, known map[string]int32, count func(*textLine) *int) []int32 {
	var all []int32
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		i, ok := known[string(line)]
		if !ok {
			i = number(len(f.lines))
			known[string(line)] = i
			f.lines = append(f.lines, textLine{length: len(line), solid: isSolid(line)})
		}
		*count(&f.lines[i])++
		all = append(all, i)
	}
	return all
}

// number converts an index: both versions have at most maxLines.
func number(i int) int32 {
	return int32(i) //nolint:gosec // see above
}

func (f *follower) pair(i, j int) {
	f.match[i] = number(j)
	f.taken[j] = true
}

// span is a range of each text that is not matched yet.
type span struct{ a0, a1, b0, b1 int }

// align matches both versions in order.
func (f *follower) align() {
	todo := []span{{0, len(f.a), 0, len(f.b)}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for s.a0 < s.a1 && s.b0 < s.b1 && f.a[s.a0] == f.b[s.b0] {
			f.pair(s.a0, s.b0)
			s.a0, s.b0 = s.a0+1, s.b0+1
		}
		for s.a0 < s.a1 && s.b0 < s.b1 && f.a[s.a1-1] == f.b[s.b1-1] {
			s.a1, s.b1 = s.a1-1, s.b1-1
			f.pair(s.a1, s.b1)
		}
		n, m := s.a1-s.a0, s.b1-s.b0
		if f.work += n + m; n == 0 || m == 0 || f.work > maxWork {
			continue
		}
		if anchors := f.anchors(s); len(anchors) > 0 {
			for _, p := range anchors {
				f.pair(p[0], p[1])
				todo = append(todo, span{s.a0, p[0], s.b0, p[1]})
				s.a0, s.b0 = p[0]+1, p[1]+1
			}
			todo = append(todo, s)
		} else if n*m <= maxTable {
			f.table(s)
		}
	}
}

// anchors returns the lines that occur once in both sides of a span and are in the same
// order (a longest increasing subsequence).
func (f *follower) anchors(s span) [][2]int {
	for _, l := range f.a[s.a0:s.a1] {
		f.countA[l]++
	}
	for j := s.b0; j < s.b1; j++ {
		f.countB[f.b[j]]++
		f.placeB[f.b[j]] = number(j)
	}
	var piles []int32 // index of the candidate on top of each pile
	var candidates [][2]int
	var before []int32 // by candidate: the preceding one, or -1
	for i := s.a0; i < s.a1; i++ {
		l := f.a[i]
		if f.countA[l] != 1 || f.countB[l] != 1 || !f.lines[l].solid {
			continue
		}
		j := int(f.placeB[l])
		at, _ := slices.BinarySearchFunc(piles, j, func(c int32, j int) int { return candidates[c][1] - j })
		previous := int32(-1)
		if at > 0 {
			previous = piles[at-1]
		}
		candidates, before = append(candidates, [2]int{i, j}), append(before, previous)
		if at == len(piles) {
			piles = append(piles, 0)
		}
		piles[at] = number(len(candidates) - 1)
	}
	for _, l := range f.a[s.a0:s.a1] {
		f.countA[l] = 0
	}
	for _, l := range f.b[s.b0:s.b1] {
		f.countB[l] = 0
	}
	if len(piles) == 0 {
		return nil
	}
	chain := make([][2]int, len(piles))
	for c, k := piles[len(piles)-1], len(piles)-1; c >= 0; c, k = before[c], k-1 {
		chain[k] = candidates[c]
	}
	return chain
}

// table matches a small span by its longest common subsequence.
func (f *follower) table(s span) {
	n, m := s.a1-s.a0, s.b1-s.b0
	f.work += n * m
	width := m + 1
	length := make([]int32, (n+1)*width) // of the rest from (i, j)
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if f.a[s.a0+i] == f.b[s.b0+j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case f.a[s.a0+i] == f.b[s.b0+j]:
			f.pair(s.a0+i, s.b0+j)
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
}

// dropChance removes short runs of matches between changes without a rare line next to
// them: they are lines that every function has.
func (f *follower) dropChance() {
	for i := 0; i < len(f.a); {
		if f.match[i] < 0 {
			i++
			continue
		}
		end, rare, solid := i, 0, 0
		for end < len(f.a) && f.match[end] >= 0 && (end == i || f.match[end] == f.match[end-1]+1) {
			l := &f.lines[f.a[end]]
			if l.rare() {
				rare = max(rare, l.length)
			}
			if l.solid {
				solid++
			}
			end++
		}
		changed := func(i, j int) bool {
			return i >= 0 && i < len(f.a) && f.match[i] < 0 && j >= 0 && j < len(f.b) && !f.taken[j]
		}
		j := int(f.match[i])
		reliable := rare >= alone || (rare > 0 && solid > 1) || solid > 2
		if !reliable && changed(i-1, j-1) && changed(end, j+end-i) {
			for k := i; k < end; k++ {
				f.taken[f.match[k]] = false
				f.match[k] = -1
			}
		}
		i = end
	}
}

// moves finds blocks in another order: around each unmatched rare line, as far as its
// neighbours are equal.
func (f *follower) moves() {
	place := f.placeB
	for j, l := range f.b {
		place[l] = number(j)
	}
	for i, l := range f.a {
		j := int(place[l])
		if f.match[i] >= 0 || !f.lines[l].rare() || f.taken[j] {
			continue
		}
		first, last, solid := 0, 0, 0
		for f.same(i+first-1, j+first-1) {
			first--
		}
		for f.same(i+last, j+last) {
			last++
		}
		for d := first; d < last; d++ {
			if f.lines[f.a[i+d]].solid {
				solid++
			}
		}
		if solid < 2 && f.lines[l].length < alone {
			continue
		}
		for d := first; d < last; d++ {
			f.pair(i+d, j+d)
		}
	}
}

// same reports whether two lines are equal and not matched.
func (f *follower) same(i, j int) bool {
	return i >= 0 && j >= 0 && i < len(f.a) && j < len(f.b) && f.match[i] < 0 && !f.taken[j] && f.a[i] == f.b[j]
}
