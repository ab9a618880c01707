package diff

import "bytes"

// Limits of a comparison.
const (
	// maxLines is how many lines a text may have.
	maxLines = 200_000
	// maxEdits is how many lines may go and come between what both texts begin and
	// end with; beyond it the rest is shown as if none of it were the same. The
	// memory grows with its square.
	maxEdits = 1500
)

// edit is a run of lines: of both texts, or of one.
type edit struct {
	kind byte // ' ', '-' or '+'
	a, b int  // where it begins in each text, from 0
	n    int
}

// lines are those of a text, each with its end.
func lines(text []byte) [][]byte {
	var all [][]byte
	for line := range bytes.Lines(text) {
		all = append(all, line)
	}
	return all
}

// edits turns a into b: what goes stands before what comes in its place. The
// algorithm is the greedy one of E. Myers, "An O(ND) Difference Algorithm and Its
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

// middle compares what lies between the common ends.
func (r *result) middle(x, y []int32, from int) {
	// trace[d] are the furthest places in x that d edits lead to, by diagonal from
	// -d to d.
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

// reach is how far in x one more edit leads on diagonal k, before lines that are
// the same.
func reach(at []int32, d, k int) int {
	if d == 0 {
		return 0
	}
	furthest := func(k int) int { return int(at[k+d-1]) }
	if k == -d || k != d && furthest(k-1) < furthest(k+1) {
		return furthest(k + 1) // down: a line of y comes
	}
	return furthest(k-1) + 1 // right: a line of x goes
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
	// What goes and comes without a line between is one change: what goes is first.
	pi, pj, goes, comes := 0, 0, 0, 0
	flush := func() {
		r.add('-', from+pi, from+pj, goes)
		r.add('+', from+pi+goes, from+pj, comes)
		pi, pj, goes, comes = pi+goes, pj+comes, 0, 0
	}
	for n := len(path) - 1; n >= 0; n-- {
		s := path[n]
		di, dj := s.i-pi-goes, s.j-pj-comes
		same := min(di, dj)
		if di == dj && same > 0 {
			flush()
			r.add(' ', from+pi, from+pj, same)
			pi, pj = pi+same, pj+same
			continue
		}
		goes, comes = goes+di, comes+dj
	}
	flush()
}
