package loop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/testing/schematest"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// valid fails the test unless v is a document of a published schema.
func valid(t testing.TB, name string, v any) {
	t.Helper()
	if err := schematest.Published(t, name).ValidateJSON(raw(t, v)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestDocumentsAreValid(t *testing.T) {
	t.Parallel()
	for name, in := range inputs(scene{t, "Fix the tests"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := loopview.Document(in)
			valid(t, "loop-state", d)
			valid(t, "persistence-extension", d)
			valid(t, "iteration-analytics", loopview.New(in).Analytics())
		})
	}
}

func TestDocumentGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"running", "asking", "done"} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(loopview.Document(inputs(scene{t, "Fix the tests"})[name])); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".state.json", b.String())
	}
}

// What is in the rows is in the document.
func TestDocumentTells(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.input()
	d := loopview.Document(in)
	if d.Best == nil || d.Best.Iteration != 2 || *d.Best.Quality != 85 || d.Best.Snapshot != "after-2" {
		t.Errorf("best: %+v", d.Best)
	}
	if d.Selected != nil {
		t.Errorf("selected before the end: %+v", d.Selected)
	}
	var ids []string
	for _, e := range d.Regressions {
		ids = append(ids, e.ID)
		if !e.Gate || !e.Recovery || e.Decision == nil || *e.Decision != "reject" || e.Outcome != "escalated" {
			t.Errorf("event %+v", e)
		}
	}
	if diff := cmp.Diff([]string{"reg-007-1", "reg-007-2"}, ids); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := *d.Regressions[0].Details.Baseline - *d.Regressions[0].Details.Current; n != 2 {
		t.Errorf("%d tests are gone", n)
	}
	if len(d.Progress.All) != 8 || d.Progress.Last.Iteration != 7 || d.Progress.Last.Passed {
		t.Errorf("checks: %d, last %+v", len(d.Progress.All), d.Progress.Last)
	}
	if d.Baseline == nil || *d.Baseline.Tests != 150 || len(d.History) != 8 || d.History[0].Iteration != 1 ||
		*d.History[1].Delta != 25 {
		t.Errorf("baseline %+v, %d iterations", d.Baseline, len(d.History))
	}
	if d.ErrorCount != 1 || d.LastError.Type != "crashed" || d.LastError.Iteration != 6 {
		t.Errorf("errors: %+v", d.LastError)
	}
	if want := (loopview.Totals{Iterations: 7, Successful: 5, Failed: 2}); d.Metrics.Iterations != want.Iterations ||
		d.Metrics.Successful != want.Successful ||
		d.Metrics.Failed != want.Failed || *d.Metrics.Tokens != 28_700 || *d.Metrics.CostUSD != 0.28 {
		t.Errorf("totals: %+v", d.Metrics)
	}
	if d.Before != "before-8" || d.Recovering || d.Stuck || !d.Detecting || d.Attempts != 1 ||
		len(d.Recoveries[0].Steps) != 3 || d.Recoveries[0].Event != "reg-007-1" {
		t.Errorf("state: %+v", d)
	}
	if s := d.Recoveries[0].Steps["DIAGNOSE"]; s.Diagnosis != "reward_hacking" || *s.Confidence != 0.9 ||
		s.ExecutedAt.IsZero() {
		t.Errorf("diagnosis: %+v", s)
	}
	if len(d.Gates) != 1 || d.Gates[0].Answer != "reject" || len(d.Gates[0].Options) != 3 {
		t.Errorf("gates: %+v", d.Gates)
	}
}

// An error of the agent after which a retry succeeded is an error of the loop.
func TestRetriedErrorsAreListed(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests"}
	in := c.input()
	in.Iterations[8] = c.iteration(8, 90, func(o *state.Outcome) {
		o.Retried = []state.TurnError{{At: when(16), Message: "rate: at first"}, {At: when(17), Message: "idle: then"}}
	})
	d := loopview.Document(in)
	valid(t, "loop-state", d)
	var got []string
	for _, e := range d.Errors {
		got = append(got, fmt.Sprint(e.Iteration, " ", e.Type))
	}
	if diff := cmp.Diff([]string{"6 crashed", "8 rate", "8 idle"}, got); diff != "" || d.ErrorCount != 3 ||
		d.LastError.Message != "idle: then" || !d.LastError.Timestamp.Equal(when(17)) {
		t.Errorf("last %+v of %d (-want +got):\n%s", d.LastError, d.ErrorCount, diff)
	}
}

// A loop that ended at the gate of a regression recovers no more.
func TestEndedLoopsDoNotRecover(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.asking()
	in.Loop.State = raw(t, map[string]any{"run": map[string]any{"number": 7},
		"recovery": &state.Recovery{Iteration: 7, Attempt: 1}})
	if d := loopview.Document(in); !d.Recovering {
		t.Error("it asks and does not recover")
	}
	in.Loop.Status = record.Aborted
	if d := loopview.Document(in); d.Recovering || d.Attempts == 0 {
		t.Errorf("aborted: recovering %v, %d attempts", d.Recovering, d.Attempts)
	}
}

// Before the first iteration, the level is the one that it will have.
func TestLevelAtTheStart(t *testing.T) {
	t.Parallel()
	for level, want := range map[hook.Level]string{"": "MINIMAL", hook.LevelStandard: "STANDARD", hook.LevelOff: "OFF",
		hook.LevelAdaptive: "MINIMAL"} {
		in := scene{t, "Fix the tests"}.input()
		in.Iterations, in.Gates, in.Loop.Iteration = in.Iterations[:1], nil, 0
		in.Loop.State = raw(t, map[string]any{})
		in.Tree.Config = raw(t, &config.Config{Task: "t", Until: "true", Workspace: "/project", Agent: "a",
			Reinforcement: level})
		if d := loopview.Document(in); d.Level != want || len(d.Levels) > 0 {
			t.Errorf("configured %q: level %q, want %q", level, d.Level, want)
		}
		in.Tree.Config = raw(t, &config.Config{Task: "t", Until: "true", Workspace: "/project", Agent: "a", Plain: true})
		if d := loopview.Document(in); d.Level != "" {
			t.Errorf("a plain loop has the level %q", d.Level)
		}
	}
}

func TestStatusAndWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests"}
	in := c.input()
	in.Crashed, in.Progress.Usage.UnpricedCalls = true, 1
	if d := loopview.Document(in); d.Status != "crashed" || d.Metrics.CostUSD != nil {
		t.Errorf("status %s, cost %v", d.Status, d.Metrics.CostUSD)
	}
	in = c.done()
	in.Crashed = true // no process executes a loop that has ended
	d := loopview.Document(in)
	if d.Status != "completed" || d.CompletedAt == nil || d.Detecting || d.Selected.Iteration != 8 ||
		*d.Selected.Quality != 97 || d.Best.Iteration != 8 || d.Level != "AGGRESSIVE" {
		t.Errorf("%+v", d)
	}
	if r := d.PersistenceTotals; *r.FalseAlarmRate != 0.5 || r.Overhead == nil {
		t.Errorf("measures: %+v", r)
	}
	in = c.asking()
	if d := loopview.Document(in); !d.Recovering || d.Regressions[0].Decision != nil || !d.Regressions[0].Gate {
		t.Errorf("asking: %+v", d.Regressions)
	}
	in.Iterations = in.Iterations[4:] // of a part the best is not known
	if d := loopview.Document(in); d.Best != nil || len(d.History) != 4 {
		t.Errorf("part: %+v", d.Best)
	}
	in = c.input()
	in.Gates[0].Kind = perdure.GateStuck
	in.Progress.Tree = ""
	if d := loopview.Document(in); !d.Stuck || d.Regressions[0].Gate || d.Metrics.Tokens != nil ||
		d.Metrics.CostUSD != nil {
		t.Errorf("stuck: %+v", d.Metrics)
	}
}

// The best is chosen as the engine chooses.
func TestBest(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests"}
	pass := func(o *state.Outcome) { o.Check.Passed, o.Check.Exit = true, 0 }
	regress := func(o *state.Outcome) {
		o.Regressions = []regression.Regression{{Type: "test_failure", Severity: "high", Text: "worse"}}
	}
	for name, test := range map[string]struct {
		list      []record.Iteration
		selection config.Selection
		want      int
	}{
		"the earlier of equals": {list: []record.Iteration{c.iteration(1, 80, nil), c.iteration(2, 80, nil)}, want: 1},
		"one that passed":       {list: []record.Iteration{c.iteration(1, 90, nil), c.iteration(2, 80, pass)}, want: 2},
		"the highest": {list: []record.Iteration{c.iteration(1, 90, nil), c.iteration(2, 80, pass)},
			selection: config.HighestQuality, want: 1},
		"the latest above": {list: []record.Iteration{c.iteration(1, 90, nil), c.iteration(2, 75, nil),
			c.iteration(3, 20, nil)}, selection: config.MostRecentAboveThreshold, want: 2},
		"none that made it worse": {list: []record.Iteration{c.iteration(1, 50, nil), c.iteration(2, 99, regress)},
			want: 1},
		"none that was reverted":    {list: []record.Iteration{c.iteration(1, 50, nil), c.deletion(2, 99)}, want: 1},
		"none, when there are none": {list: []record.Iteration{c.iteration(1, 50, regress)}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := c.input()
			in.Iterations, in.Loop.Iteration, in.Gates = append(in.Iterations[:1:1], test.list...), len(test.list), nil
			in.Tree.Config = raw(t, &config.Config{Task: "x", Until: "true", Workspace: "/x", Agent: "a",
				Selection: test.selection})
			got := 0
			if b := loopview.Document(in).Best; b != nil {
				got = b.Iteration
			}
			if got != test.want {
				t.Errorf("best is %d, want %d", got, test.want)
			}
		})
	}
}

func TestCourse(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests"}
	for _, test := range []struct {
		qualities []int
		want      string
		plateau   int
	}{
		{[]int{50}, "", 0}, {[]int{50, 52, 51, 50}, "stable", 4}, {[]int{20, 50, 45, 90}, "improving", 0},
		{[]int{90, 70, 60, 40}, "declining", 0},
		{[]int{60, 85, 83, 81, 79}, "improving", 5}, {[]int{60, 85, 70, 80, 55}, "fluctuating", 0},
		{[]int{50, 51, 52, 53, 99}, "improving", 0},
	} {
		in := c.input()
		in.Iterations = nil
		for i, q := range test.qualities {
			in.Iterations = append(in.Iterations, c.iteration(i+1, q, nil))
		}
		in.Loop.Iteration = len(test.qualities)
		a := loopview.New(in).Analytics()
		got, at := "", 0
		if a.Trajectory != nil {
			got = *a.Trajectory
		}
		if a.Diminished != nil {
			at = *a.Diminished
		}
		if got != test.want || at != test.plateau {
			t.Errorf("%v: %q with a plateau at %d, want %q and %d", test.qualities, got, at, test.want, test.plateau)
		}
	}
}

// The document of a loop has a size limit for the text of its iterations.
func TestDocumentIsBounded(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests"}
	huge := c.iteration(1, 50, func(o *state.Outcome) {
		o.Check.Output = string(bytes.Repeat([]byte("ü"), 4000))
		o.AgentError = string(bytes.Repeat([]byte("e"), 4000))
		o.AgentText = string(bytes.Repeat([]byte("t"), 4000))
		for range 50 {
			o.Check.Failing = append(o.Check.Failing, string(bytes.Repeat([]byte("n"), 2000)))
		}
	})
	in := c.input()
	in.Iterations, in.Loop.Iteration = []record.Iteration{huge}, 1
	text := raw(t, loopview.Document(in).History)
	if len(text) > 10_000 {
		t.Errorf("an iteration takes %d bytes", len(text))
	}
	d := loopview.Document(in)
	if len(d.Progress.All[0].Output) > 1010 || len(d.Progress.Last.Output) != 8000 || len(d.LastError.Message) > 1010 {
		t.Errorf("%d bytes of output, of the last %d, %d of an error", len(d.Progress.All[0].Output),
			len(d.Progress.Last.Output), len(d.LastError.Message))
	}
}

// BenchmarkDocument makes the document of a loop of 10,000 iterations.
func BenchmarkDocument(b *testing.B) {
	in := scene{b, "Fix the tests"}.long(config.MaxIterationsCap)
	b.ReportAllocs()
	for b.Loop() {
		loopview.Document(in)
	}
}

// BenchmarkViews makes each view of a loop of 10,000 iterations, rows included.
func BenchmarkViews(b *testing.B) {
	in := scene{b, "Fix the tests"}.long(config.MaxIterationsCap)
	for name, write := range views() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var w bytes.Buffer
				if err := write(loopview.New(in), &w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	part := in
	part.Iterations = append(in.Iterations[:1:1], in.Iterations[len(in.Iterations)-loopview.OverviewIterations:]...)
	b.Run("overview of the last", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var w bytes.Buffer
			if err := loopview.New(part).Overview(&w, loopview.Style{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Making a document takes as long for each iteration of a long loop as for those
// of a short one.
func TestLinear(t *testing.T) { //nolint:paralleltest // it counts allocations
	allocated := func(n int) float64 {
		in := scene{t, "Fix the tests"}.long(n)
		return testing.AllocsPerRun(1, func() { loopview.New(in).Analytics(); loopview.Document(in) }) / float64(n)
	}
	if few, many := allocated(200), allocated(2000); many > 1.5*few {
		t.Errorf("%.0f allocations for an iteration of 200, %.0f for one of 2,000", few, many)
	}
}
