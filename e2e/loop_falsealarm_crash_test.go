package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	looprecord "github.com/perdure/perdure/loop/record"
)

// falseAgent deletes two tests in its first turn, which is one regression of two
// findings, and is done in the second.
const falseAgent = `cat > prompt
if test -e tests/a; then rm tests/a tests/c; else echo pass > tests/b; fi
`

// newFalsePlace returns a place whose loop waits at a gate for its first iteration.
func newFalsePlace(t *testing.T) *workplace {
	t.Helper()
	w := newWorkplace(t)
	w.write("check.sh", loopCheck)
	w.write("agent.sh", falseAgent)
	for name, text := range map[string]string{"a": "pass\n", "b": "fail\n", "c": "pass\n", "d": "pass\n"} {
		w.write("tests/"+name, text)
	}
	const run = `perdure loop run "Make the tests pass" --until "sh check.sh" --agent "exec:sh agent.sh" --max-retries ` +
		`0 --no-wait`
	if out, errs, status := w.try(run); status != 6 {
		t.Fatalf("the loop does not ask, it ended with %d: %s%s", status, out, errs)
	}
	return w
}

// marked checks the marks: none, or all of the regression, in a sound store with
// matching events and numbers.
func (w *workplace) marked() bool {
	t := w.t
	t.Helper()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure"),
		Heads: headsFolder()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if problems, err := store.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store: %v, %v", problems, err)
	}
	intactLog(t, store)
	loops, err := looprecord.New(store).Loops(t.Context(), 10)
	if err != nil || len(loops) != 1 {
		t.Fatalf("loops: %+v, %v", loops, err)
	}
	marks, err := looprecord.New(store).FalseAlarms(t.Context(), loops[0].Tree)
	if err != nil || len(marks) != 0 && len(marks) != 2 {
		t.Fatalf("marks: %+v, %v", marks, err)
	}
	for _, m := range marks {
		if m.Event != "reg-001-1" || m.Iteration != 1 || m.Reason != "moved" || m.By == "" {
			t.Errorf("the mark is not whole: %+v", m)
		}
	}
	events, err := store.Events(t.Context(), perdure.EventFilter{Tree: loops[0].Tree})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range events {
		if e.Kind == looprecord.EventFalseAlarm {
			told++
		}
	}
	if rate := w.falseRate(); told != len(marks)/2 || rate != float64(told) {
		t.Errorf("%d marks, told %d times, the rate is %g", len(marks), told, rate)
	}
	return len(marks) > 0
}

// falseRate returns the rate of false alarms in the loop's state.
func (w *workplace) falseRate() float64 {
	w.t.Helper()
	var state struct {
		Metrics struct {
			Rate *float64 `json:"false_positive_rate"`
		} `json:"persistence_metrics"`
	}
	if out := w.sh("perdure loop status --json"); json.Unmarshal([]byte(out), &state) != nil || state.Metrics.Rate == nil {
		w.t.Fatalf("no rate: %s", out)
	}
	return *state.Metrics.Rate
}

// TestLoopKilledWhileMarking: after a kill while a regression is marked as a false alarm,
// all of its findings are marked or none; after a second attempt they are marked once.
func TestLoopKilledWhileMarking(t *testing.T) {
	t.Parallel()
	const mark = `perdure loop false-alarm reg-001-1 --reason moved`
	list := newFalsePlace(t)
	passed := filepath.Join(t.TempDir(), "failpoints")
	if list.sh(mark, "PERDURE_FAILPOINT_LIST="+passed); !list.marked() {
		t.Fatal("nothing is marked")
	}
	points := passages(t, passed)
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 10))
	for _, point := range slices.Sorted(maps.Keys(points)) {
		for _, nth := range passagesToKill(rng, points[point]) {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				w := newFalsePlace(t)
				w.dies(mark, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, nth))
				if marked := w.marked(); marked != strings.Contains(point, "after") {
					t.Errorf("marked: %t", marked)
				}
				if w.sh(mark); !w.marked() {
					t.Error("nothing is marked")
				}
			})
		}
	}
}

// dies runs a command that is killed.
func (w *workplace) dies(cmd, kill string) {
	w.t.Helper()
	const bySignal = 128 + 9 // as a shell says it
	if out, errs, status := w.try(cmd, kill); status != -1 && status != bySignal {
		w.t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
	}
}

// TestLoopKilledWhileWhitelisting: after a kill while a loop reads the answer that a
// regression is a false alarm, all of its findings are marked or none; the resumed loop
// continues with the current files, with one mark for each finding.
func TestLoopKilledWhileWhitelisting(t *testing.T) {
	t.Parallel()
	const answer, resume = `perdure loop answer whitelist --reason moved`, `perdure loop resume`
	list := newFalsePlace(t)
	passed := filepath.Join(t.TempDir(), "failpoints")
	list.sh(answer)
	list.sh(resume, "PERDURE_FAILPOINT_LIST="+passed)
	list.whitelisted()
	points := passages(t, passed)
	odd := seed(t) % effort.Of(2, 1) // the ordinary run kills at every second commit
	for _, point := range []string{"loop.gate", "loop.gate.done", "loop.next", "tx.before_commit", "tx.after_commit"} {
		times, first := 1, 1
		if strings.HasPrefix(point, "tx.") {
			times = 6 // of many: the answer is heard in one of the first
			first += odd
		}
		if points[point] < times {
			t.Errorf("the loop does not pass %s", point)
		}
		for nth := first; nth <= times; nth += effort.Of(2, 1) {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				w := newFalsePlace(t)
				w.sh(answer)
				w.dies(resume, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, nth))
				// done, and then written
				if marked := w.marked(); strings.HasPrefix(point, "loop.") && marked != (point == "loop.next") {
					t.Errorf("marked: %t", marked)
				}
				w.sh(resume)
				w.whitelisted()
			})
		}
	}
}

// whitelisted looks at the loop when it ended.
func (w *workplace) whitelisted() {
	t := w.t
	t.Helper()
	if !w.marked() {
		t.Error("nothing is marked")
	}
	if _, l, list := w.completedLoop(2); len(list) != 2 || list[0].Status != looprecord.IterationKept {
		t.Errorf("%+v, %+v", l, list)
	}
}
