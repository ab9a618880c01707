package fanout

import (
	"testing"

	"pgregory.net/rapid"
)

// built counts a tree that is built task by task.
type built struct {
	tasks, leaves int64
	levels        int
}

// grow distributes n parts as a run does and checks each task.
func grow(t *rapid.T, n, fanout int) built {
	if n == 1 {
		return built{tasks: 1, leaves: 1}
	}
	sizes := Sizes(n, fanout)
	if len(sizes) < 2 || len(sizes) > fanout {
		t.Fatalf("%d parts make %d children, want 2 to %d", n, len(sizes), fanout)
	}
	all := built{tasks: 1}
	sum := 0
	for _, size := range sizes {
		if size < 1 || size > sizes[0] || size < sizes[0]-1 {
			t.Fatalf("%d parts are dealt unevenly: %v", n, sizes)
		}
		sum += size
		below := grow(t, size, fanout)
		all.tasks += below.tasks
		all.leaves += below.leaves
		all.levels = max(all.levels, below.levels+1)
	}
	if sum != n {
		t.Fatalf("%d parts are dealt as %v", n, sizes)
	}
	return all
}

// TestPropertyShape: the tree that was counted before the first call is the tree
// that grows: every part is one leaf, no task has too many children, and there are
// no more levels than the fan-out makes necessary.
func TestPropertyShape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "parts")
		fanout := rapid.IntRange(2, 20).Draw(t, "fanout")
		got := grow(t, n, fanout)
		tasks, levels := Tasks(n, fanout)
		if tasks != got.tasks || levels != got.levels {
			t.Fatalf("counted %d tasks on %d levels, grown are %+v", tasks, levels, got)
		}
		if got.leaves != int64(n) {
			t.Fatalf("%d parts make %d leaves", n, got.leaves)
		}
		needed := 0
		for reach := 1; reach < n; reach *= fanout {
			needed++
		}
		if levels != needed {
			t.Fatalf("%d levels for %d parts with fan-out %d, want %d", levels, n, fanout, needed)
		}
	})
}

func TestShape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		n, fanout int
		tasks     int64
		levels    int
	}{
		{0, 10, 1, 0},
		{1, 10, 1, 0},
		{2, 10, 3, 1},
		{10, 10, 11, 1},
		{11, 10, 14, 2},
		{100, 10, 111, 2},
		{101, 10, 115, 3},
		{1_000_000, 10, 1_111_111, 6},
		{3, 2, 5, 2},
		{1_000_000, 1_000_000, 1_000_001, 1},
	}
	for _, tt := range tests {
		if tasks, levels := Tasks(tt.n, tt.fanout); tasks != tt.tasks || levels != tt.levels {
			t.Errorf("%d parts with fan-out %d: %d tasks on %d levels, want %d on %d", tt.n, tt.fanout, tasks, levels,
				tt.tasks, tt.levels)
		}
	}
}
