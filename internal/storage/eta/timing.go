// Package eta estimates the remaining time of a tree from counters whose size depends on
// the tree's depth, not on its number of tasks.
package eta

import (
	"bytes"
	"math/bits"
	"strconv"
	"time"
)

// Timing has the counters of a tree.
type Timing struct {
	// Depths has one entry for each depth.
	Depths []Level `json:"d,omitempty"`
	// Sum is the active time of the completed tasks in microseconds.
	Sum int64 `json:"s,omitempty"`
	// Hist counts completed tasks by the binary logarithm of their active
	// microseconds, in half steps.
	Hist []int64 `json:"h,omitempty"`
	// Open counts tasks that may create more tasks than are planned.
	Open int64 `json:"o,omitempty"`
	// Busy is the time in microseconds in which a task was running, until Last.
	Busy int64 `json:"b,omitempty"`
	Last int64 `json:"l,omitempty"`
	// Workers is the recent number of running tasks, in thousandths.
	Workers int64 `json:"w,omitempty"`
}

// AppendJSON appends the timing as the standard library encodes it, which takes several times
// as long.
func (t *Timing) AppendJSON(out []byte) []byte {
	out = append(out, '{')
	if len(t.Depths) > 0 {
		out = append(out, `"d":[`...)
		for i, d := range t.Depths {
			if i > 0 {
				out = append(out, ',')
			}
			out = strconv.AppendInt(append(out, `{"t":`...), d.Total, 10)
			out = strconv.AppendInt(append(out, `,"e":`...), d.Ended, 10)
			out = appendField(out, `,"r":`, d.Recent)
			out = appendField(out, `,"p":`, d.Planned)
			out = appendField(out, `,"c":`, d.Calls)
			out = append(out, '}')
		}
		out = append(out, ']', ',')
	}
	if t.Sum != 0 {
		out = append(strconv.AppendInt(append(out, `"s":`...), t.Sum, 10), ',')
	}
	if len(t.Hist) > 0 {
		out = append(out, `"h":[`...)
		for _, n := range t.Hist {
			out = append(strconv.AppendInt(out, n, 10), ',')
		}
		out = append(bytes.TrimSuffix(out, []byte(",")), ']', ',')
	}
	out = bytes.TrimSuffix(out, []byte(","))
	first := len(out)
	out = appendField(out, `,"o":`, t.Open)
	out = appendField(out, `,"b":`, t.Busy)
	out = appendField(out, `,"l":`, t.Last)
	out = appendField(out, `,"w":`, t.Workers)
	if first < len(out) && out[first-1] == '{' {
		out = append(out[:first], out[first+1:]...)
	}
	return append(out, '}')
}

// appendField appends a field unless it is zero.
func appendField(out []byte, name string, n int64) []byte {
	if n == 0 {
		return out
	}
	return strconv.AppendInt(append(out, name...), n, 10)
}

// Level counts the tasks of one depth.
type Level struct {
	// Total counts all tasks, Ended those that are terminal.
	Total int64 `json:"t"`
	Ended int64 `json:"e"`
	// Recent is the moving average of the active time in microseconds; 0 until a
	// task completed.
	Recent int64 `json:"r,omitempty"`
	// Planned counts the tasks that are planned, whether they exist yet or not, and
	// Calls the calls they are expected to make; 0 if the creator planned nothing.
	Planned int64 `json:"p,omitempty"`
	Calls   int64 `json:"c,omitempty"`
}

// recentWeight is the weight of one more task in the moving average.
const recentWeight = 0.1

// Level returns the entry of a depth.
func (t *Timing) Level(d int) *Level {
	for len(t.Depths) <= d {
		t.Depths = append(t.Depths, Level{})
	}
	return &t.Depths[d]
}

// Completed counts a task that completed after so many active microseconds.
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

// bucket returns 2*log2(us), with the half step from the second bit.
func bucket(us int64) int {
	n := bits.Len64(uint64(us)) //nolint:gosec // active time is positive
	slot := 2 * (n - 1)
	if n > 1 && us&(1<<(n-2)) != 0 {
		slot++
	}
	return slot
}

// Quantile returns the q-quantile of the active times, as the middle of its bucket.
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
