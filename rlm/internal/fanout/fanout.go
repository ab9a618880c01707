// Package fanout makes levels of tasks where there are more parts than a task may
// have children.
package fanout

// Sizes returns how many of n parts each child of a task gets: at most fanout
// children, sizes that differ by at most one, and no more levels below than are
// needed.
func Sizes(n, fanout int) []int {
	if n <= 0 {
		return nil
	}
	width := 1 // parts below a child
	for n > width*fanout {
		width *= fanout
	}
	sizes := make([]int, (n+width-1)/width)
	for i := range sizes {
		sizes[i] = n / len(sizes)
		if i < n%len(sizes) {
			sizes[i]++
		}
	}
	return sizes
}

// Tasks returns how many tasks a task with n parts below it and its
// descendants are, and how many levels lie below it.
func Tasks(n, fanout int) (tasks int64, levels int) {
	if n <= 1 {
		return 1, 0
	}
	sizes := Sizes(n, fanout)
	tasks = 1
	for i := 0; i < len(sizes); {
		same := i
		for same < len(sizes) && sizes[same] == sizes[i] {
			same++
		}
		t, l := Tasks(sizes[i], fanout)
		tasks += int64(same-i) * t
		levels = max(levels, l+1)
		i = same
	}
	return tasks, levels
}
