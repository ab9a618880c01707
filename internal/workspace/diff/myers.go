package diff

import (
	"bytes"
	"slices"
)

// Limits of a comparison.
const (
	// maxLines limits the lines of a file.
	maxLines = 200_000
	// maxEdits limits the deleted and added lines between the common beginning and end;
	// beyond it all lines between them count as changed. The memory grows with its square.
	maxEdits = 1500
)

// edit is a run of lines: of both versions, or of one.
type edit struct {
	kind byte // ' ', '-' or '+'
	a, b int  // first line in each version, counted from 0
	n    int
}

// lines returns the lines of a text, each with its end.
func lines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// edits returns the edits that turn a into b, deleted lines before the added ones that replace
// them. The algorithm is the greedy one of E. Myers, "An O(ND) Difference Algorithm and Its
// Variations", 1986.
func edits(a, b [][]byte) []edit {
	ids := make(map[string]int32, len(a))
	x, y := intern(a, ids), intern(b, ids)
	head := 0
	for head < len(x) && head < len(y) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	r := &result{}
	r.add(' ', 0, 0, head)
	r.middle(x[head:len(x)-tail], y[head:len(y)-tail], head)
	r.add(' ', len(x)-tail, len(y)-tail, tail)
	return r.list
}

func intern(text [][]byte, ids map[string]int32) []int32 {
	list := make([]int32, len(text))
	for i, line := range text {
		id, known := ids[string(line)]
		if !known {
			id = int32(len(ids)) //nolint:gosec // at most 2*maxLines
			ids[string(line)] = id
		}
		list[i] = id
	}
	return list
}

type result struct{ list []edit }

func (r *result) add(kind byte, a, b, n int) {
	if n == 0 {
		return
	}
	if last := len(r.list) - 1; last >= 0 && r.list[last].kind == kind {
		r.list[last].n += n
		return
	}
	r.list = append(r.list, edit{kind, a, b, n})
}

// middle compares the lines between the common beginning and end.
func (r *result) middle(x, y []int32, from int) {
	// trace[d] are the furthest positions in x that d edits reach, by diagonal from -d to d.
	var trace [][]int32
	at := []int32{0}
	for d := 0; d <= maxEdits; d++ {
		next := make([]int32, 2*d+1)
		for k := -d; k <= d; k += 2 {
			i := reach(at, d, k)
			j := i - k
			for i < len(x) && j < len(y) && i >= 0 && j >= 0 && x[i] == y[j] {
				i, j = i+1, j+1
			}
			next[k+d] = int32(i) //nolint:gosec // at most maxLines
			if i >= len(x) && j >= len(y) {
				r.back(append(trace, next), x, y, from)
				return
			}
		}
		trace = append(trace, next)
		at = next
	}
	r.add('-', from, from, len(x))
	r.add('+', from+len(x), from, len(y))
}

// reach returns the furthest position in x after one more edit on diagonal k, before equal
// lines.
func reach(at []int32, d, k int) int {
	if d == 0 {
		return 0
	}
	furthest := func(k int) int { return int(at[k+d-1]) }
	if k == -d || k != d && furthest(k-1) < furthest(k+1) {
		return furthest(k + 1) // down: a line of y is added
	}
	return furthest(k-1) + 1 // right: a line of x is deleted
}

// back follows the trace from the end and adds the edits.
func (r *result) back(trace [][]int32, x, y []int32, from int) {
	type step struct{ i, j int }
	i, j := len(x), len(y)
	var path []step
	for d := len(trace) - 1; d > 0; d-- {
		k := i - j
		start := reach(trace[d-1], d, k)
		path = append(path, step{i, j}, step{start, start - k})
		i, j = start, start-k
		if at := trace[d-1]; k == -d || k != d && at[k-1+d-1] < at[k+1+d-1] {
			j--
		} else {
			i--
		}
	}
	path = append(path, step{i, j})
	// Lines deleted and added without an equal line between are one change.
	pi, pj, deleted, added := 0, 0, 0, 0
	flush := func() {
		r.add('-', from+pi, from+pj, deleted)
		r.add('+', from+pi+deleted, from+pj, added)
		pi, pj, deleted, added = pi+deleted, pj+added, 0, 0
	}
	for n := len(path) - 1; n >= 0; n-- {
		s := path[n]
		di, dj := s.i-pi-deleted, s.j-pj-added
		same := min(di, dj)
		if di == dj && same > 0 {
			flush()
			r.add(' ', from+pi, from+pj, same)
			pi, pj = pi+same, pj+same
			continue
		}
		deleted, added = deleted+di, added+dj
	}
	flush()
}
