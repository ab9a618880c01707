package eta_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/storage/eta"
)

// task is a task of a simulated tree. It runs once children have ended, for as many calls.
type task struct {
	parent   *task
	depth    int
	calls    int64
	waitsFor int
	since    int64
}

// shape is a tree whose leaves make one call, and whose other tasks as many as merge.
type shape struct {
	name   string
	fanOut []int // by depth
	merge  int64
}

func (s shape) tasks() (leaves []*task, timing *eta.Timing, calls int64) {
	timing = &eta.Timing{}
	level := []*task{{calls: s.merge}}
	for depth := 0; ; depth++ {
		if depth == len(s.fanOut) {
			for _, t := range level {
				t.calls = 1
			}
		}
		for _, t := range level {
			timing.Plan(depth, 1, t.calls)
			calls += t.calls
		}
		if depth == len(s.fanOut) {
			return level, timing, calls
		}
		var next []*task
		for _, t := range level {
			t.waitsFor = s.fanOut[depth]
			for range s.fanOut[depth] {
				next = append(next, &task{parent: t, depth: depth + 1, calls: s.merge})
			}
		}
		level = next
	}
}

// simulate runs the tree with calls of one duration. It returns each forecast with the time
// that was really left.
func (s shape) simulate(workers int, jitter func(int64) int64) (forecasts [][2]float64, calls int64) {
	const delay = 1_000_000
	queue, timing, calls := s.tasks()
	var running []*task
	ends := make(map[*task]int64)
	type sample struct {
		at, us float64
		made   int64
	}
	var samples []sample
	now, made := int64(1), int64(0)
	timing.Tick(now, 0)
	for len(queue)+len(running) > 0 {
		for len(queue) > 0 && len(running) < workers {
			t := queue[0]
			queue = queue[1:]
			timing.Tick(now, int64(len(running)))
			t.since, ends[t] = now, now+jitter(delay)*t.calls
			running = append(running, t)
		}
		next := slices.MinFunc(running, func(x, y *task) int { return int(ends[x] - ends[y]) })
		timing.Tick(ends[next], int64(len(running)))
		now = ends[next]
		running = slices.DeleteFunc(running, func(t *task) bool { return t == next })
		timing.Level(next.depth).Total++
		timing.Level(next.depth).Ended++
		timing.Completed(next.depth, now-next.since)
		made += next.calls
		if p := next.parent; p != nil {
			if p.waitsFor--; p.waitsFor == 0 {
				queue = append([]*task{p}, queue...)
			}
		}
		at := eta.Running{Tasks: int64(len(running)), Newest: now}
		for _, t := range running {
			at.Elapsed += now - t.since
			at.Newest = min(at.Newest, now-t.since)
		}
		if us, known := timing.Remaining(at); known {
			samples = append(samples, sample{float64(now), us, made})
		}
	}
	for _, x := range samples {
		if 10*x.made >= calls {
			forecasts = append(forecasts, [2]float64{x.us, float64(now) - x.at})
		}
	}
	return forecasts, calls
}

func constant(d int64) int64 { return d }

// After a tenth of the calls the remaining time is within 1.3 times the real one.
func TestRemainingOfConstantDelay(t *testing.T) {
	t.Parallel()
	for _, s := range []shape{
		{"flat, concatenated", []int{100}, 0}, {"flat, summarized", []int{100}, 1}, {"few parts", []int{14}, 1},
		{"two levels", []int{10, 10}, 1}, {"two levels, concatenated", []int{10, 10}, 0},
		{"three levels", []int{5, 6, 7}, 1}, {"files", []int{7, 3}, 1}, {"files, concatenated", []int{12, 9}, 0},
	} {
		for _, workers := range []int{1, 2, 3, 8, 20} {
			t.Run(fmt.Sprintf("%s, %d at once", s.name, workers), func(t *testing.T) {
				t.Parallel()
				forecasts, calls := s.simulate(workers, constant)
				f, left := forecasts[0][0], forecasts[0][1]
				if ratio := max(f/left, left/f); ratio > 1.3 {
					t.Errorf("after a tenth of %d calls the forecast is %.1f s, the real time %.1f s: %.2f times", calls,
						f/1e6, left/1e6, ratio)
				}
				for _, x := range forecasts {
					if x[0] < 0 || math.IsNaN(x[0]) || math.IsInf(x[0], 0) {
						t.Fatalf("forecast %v", x[0])
					}
				}
			})
		}
	}
}

// A tree of which nothing is planned is counted by its tasks, as before.
func TestRemainingWithoutPlan(t *testing.T) {
	t.Parallel()
	timing := &eta.Timing{}
	timing.Level(0).Total = 1
	timing.Level(1).Total = 4
	timing.Level(1).Ended = 1
	timing.Completed(1, 2e6)
	us, known := timing.Remaining(eta.Running{Tasks: 1})
	if !known || us != 8e6 { // three children and the root
		t.Errorf("remaining %v, %v, want 8 s", us, known)
	}
	if got := timing.Share(); got != 0.2 {
		t.Errorf("share %v, want 0.2", got)
	}
	timing.Open++
	if _, known := timing.Remaining(eta.Running{}); known {
		t.Error("the remaining time of a tree of unknown size is known")
	}
}

// The time in which no task runs is not work, nor the time between the death of a process and
// the takeover of its tasks.
func TestBusy(t *testing.T) {
	t.Parallel()
	timing := &eta.Timing{}
	timing.Tick(1000, 0)
	timing.Tick(1500, 1)
	timing.Tick(9000, 0) // waits for an answer
	timing.Tick(9100, 2)
	timing.Skip(50_000) // the process died
	timing.Tick(50_200, 1)
	if timing.Busy != 800 {
		t.Errorf("busy %d, want 800", timing.Busy)
	}
	older := &eta.Timing{}
	older.Completed(1, 5000)
	older.Tick(1e6, 0)
	if older.Busy != 5000 {
		t.Errorf("busy %d of a tree of an older version, want the time of its tasks, 5000", older.Busy)
	}
}
