// Package eta estimates how long the rest of a tree takes, from counters
// whose size depends on the tree's depth and not on its number of tasks.
package eta

import (
	"math/bits"
	"time"
)

// Timing keeps what the progress of a tree is estimated from.
type Timing struct {
	// Depths holds one entry a level.
	Depths []Level `json:"d,omitempty"`
	// Sum is the active time of the completed tasks in microseconds.
	Sum int64 `json:"s,omitempty"`
	// Hist counts completed tasks by the binary logarithm of their active
	// microseconds, in half steps.
	Hist []int64 `json:"h,omitempty"`
}

// Level counts the tasks of one depth.
type Level struct {
	// Total and Ended count the tasks there are and those that are terminal.
	Total int64 `json:"t"`
	Ended int64 `json:"e"`
	// Recent is the mean active time, recent tasks weighing more, in
	// microseconds; 0 until one completed.
	Recent int64 `json:"r,omitempty"`
}

// recentWeight is how much one more task moves the mean of its level.
const recentWeight = 0.1

// Level returns the entry of a depth, making it if it is new.
func (t *Timing) Level(d int) *Level {
	for len(t.Depths) <= d {
		t.Depths = append(t.Depths, Level{})
	}
	return &t.Depths[d]
}

// Completed counts a task that completed after active microseconds.
func (t *Timing) Completed(depth int, active int64) {
	active = max(active, 1)
	d := t.Level(depth)
	if d.Recent == 0 {
		d.Recent = active
	} else {
		d.Recent += int64(recentWeight * float64(active-d.Recent))
	}
	t.Sum += active
	slot := bucket(active)
	for len(t.Hist) <= slot {
		t.Hist = append(t.Hist, 0)
	}
	t.Hist[slot]++
}

// bucket returns 2*log2(us), the half step being decided by the second bit.
func bucket(us int64) int {
	n := bits.Len64(uint64(us)) //nolint:gosec // active time is positive
	slot := 2 * (n - 1)
	if n > 1 && us&(1<<(n-2)) != 0 {
		slot++
	}
	return slot
}

// Quantile returns the time below which the share q of the tasks stayed, by
// the middle of its bucket.
func (t *Timing) Quantile(q float64) time.Duration {
	var total int64
	for _, n := range t.Hist {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := int64(q * float64(total))
	for slot, n := range t.Hist {
		if rank < n {
			low := int64(1) << (slot / 2)
			return time.Duration(low+low/4+int64(slot%2)*low/2) * time.Microsecond
		}
		rank -= n
	}
	return 0
}

// Remaining is the estimated work left, in microseconds of one worker.
func (t *Timing) Remaining(completed int64) (us float64, known bool) {
	if completed == 0 {
		return 0, false
	}
	mean := float64(t.Sum) / float64(completed)
	for _, d := range t.Depths {
		each := mean
		if d.Recent > 0 {
			each = float64(d.Recent)
		}
		us += each * float64(max(d.Total-d.Ended, 0))
	}
	return us, true
}
