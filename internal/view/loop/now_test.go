package loop_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// The overview says what the loop does, whatever it does, and what can be done.
func TestNow(t *testing.T) {
	t.Parallel()
	run := func(run map[string]any) map[string]any { return map[string]any{"run": run} }
	for name, test := range map[string]struct {
		status  record.Status
		step    string
		control record.Control
		state   map[string]any
		want    []string
	}{
		"begin":    {step: "begin", want: []string{"takes the snapshot", "loop pause fix-tests-a1b2c3d4"}},
		"baseline": {step: "baseline", want: []string{"runs the check before anything is changed"}},
		"prepare": {step: "prepare", want: []string{"iteration 8 of 10: takes the snapshot before iteration 8, for 1m " +
			"00s"}},
		"turn": {step: "act", state: run(map[string]any{"working": true}), want: []string{"codex works"}},
		"limit": {step: "act", state: run(map[string]any{"waits": 2, "failure": "rate_limited: later"}),
			want: []string{"waits for the end of a rate limit of codex", "rate_limited: later"}},
		"stand-in": {step: "act", state: map[string]any{"agent": 1, "run": map[string]any{"working": true}},
			want: []string{"claude works", "claude, fallback for codex"}},
		"measure": {step: "measure", want: []string{": runs the check"}},
		"check": {step: "judge", state: run(map[string]any{"check": state.Check{Exit: 2, Weak: true}}),
			want: []string{"fails with exit status 2 (iteration 8", "exit status only"}},
		"incomplete": {step: "decide", state: run(map[string]any{"check": state.Check{Incomplete: "no end"}}),
			want: []string{"did not run to its end", "no end"}},
		"timed out": {step: "decide", state: run(map[string]any{"check": state.Check{TimedOut: true, Exit: -1}}),
			want: []string{"did not end in time"}},
		"recovery": {step: "adapt", want: []string{"recovers from a regression (adapt)"}},
		"complete": {status: record.Completing, step: "complete", want: []string{"● completing", "once more"}},
		"clean copy": {status: record.Completing, step: "seal",
			want: []string{"● completing, clean-copy check", "8 of 10: checks the result in a clean copy, for 1m 00s"}},
		"other": {step: "a step of later", want: []string{"a step of later"}},
		"pausing": {step: "act", control: record.Pause,
			want: []string{"asked to pause, which it does before the next iteration"}},
		"reverting": {step: "act", control: record.Revert,
			want: []string{"asked to end and to bring back the files of the beginning"}},
		"paused": {status: record.Paused, step: "next", state: map[string]any{"reason": "the budget is spent"},
			want: []string{"◌ paused", "the budget is spent", "loop resume fix-tests-a1b2c3d4", "abort --revert"}},
		"aborted": {status: record.Aborted, step: "ended", state: map[string]any{"reason": "aborted"},
			want: []string{"⊘ aborted", "Ended", "loop report fix-tests-a1b2c3d4"}},
		"failed": {status: record.Failed, step: "ended",
			state: map[string]any{"selected": 2, "selected_reason": "Highest quality (85 %) at iteration 2, not final",
				"way_back": []string{"abc"}},
			want: []string{"✗ failed", "Highest quality (85 %) at iteration 2, not final", "snapshot abc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := scene{t, "Fix the tests"}.input()
			in.Tree.Config = raw(t, &config.Config{Task: "Fix the tests", Until: "go test ./...", Workspace: "/project",
				Agent: "codex", Fallback: []string{"claude"}})
			in.Loop.Status, in.Loop.Step, in.Loop.Control = record.Running, test.step, test.control
			if test.status != "" {
				in.Loop.Status = test.status
			}
			in.Loop.State = raw(t, test.state)
			got := written(t, func(w io.Writer) error { return loopview.New(in).Overview(w, loopview.Style{}) })
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing:\n%s", want, got)
				}
			}
		})
	}
}

// TestInterruptedLoop: a loop whose process is gone while it waits says so, with the command that
// continues it.
func TestInterruptedLoop(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]loopview.Input{"waiting at gate 1, interrupted": scene{t, "Fix the tests"}.asking(),
		"running, interrupted": scene{t, "Fix the tests"}.input()} {
		in.Loop.Status, in.Progress.Interrupted = record.Running, true
		s := loopview.New(in)
		row := s.Row()
		shown := written(t, func(w io.Writer) error { return s.Overview(w, loopview.Style{}) })
		if !row.Interrupted || row.Shown != name || row.Continue() != "perdure loop resume "+s.ID() ||
			!strings.Contains(shown, name) || !strings.Contains(shown, "`perdure loop resume "+s.ID()+"` continues") {
			t.Errorf("%+v\n%s", row, shown)
		}
		in.Loop.Status = record.Paused
		if row := loopview.New(in).Row(); row.Interrupted || row.Continue() != "" {
			t.Errorf("paused: %+v", row)
		}
	}
}

// TestTreeEndedWithoutLoop: a loop whose tree was completed or cancelled without it says so, with
// the command that ends it, and is not shown as completed.
func TestTreeEndedWithoutLoop(t *testing.T) {
	t.Parallel()
	for _, state := range []perdure.State{perdure.Completed, perdure.Partial, perdure.Cancelled} {
		in := scene{t, "Fix the tests"}.input()
		in.Loop.Status, in.Tree.State = record.Running, state
		s := loopview.New(in)
		row := s.Row()
		shown := written(t, func(w io.Writer) error { return s.Overview(w, loopview.Style{}) })
		if row.Status != "crashed" || row.Continue() != "perdure loop abort "+s.ID() ||
			!strings.Contains(shown, "its tree is "+string(state)+" although the loop has not ended") ||
			strings.Contains(shown, "loop resume") {
			t.Errorf("%+v\n%s", row, shown)
		}
	}
}

// TestAnsweredGate: a loop whose process exited at a gate that is answered since is not crashed.
func TestAnsweredGate(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.asking()
	at := when(20)
	in.Gates[0].AnsweredAt, in.Gates[0].Answer = &at, "reject"
	in.Loop.Status, in.Progress.Running, in.Progress.Interrupted = record.Running, 0, true
	if in.Lost() {
		t.Error("the loop counts as crashed")
	}
	s := loopview.New(in)
	row := s.Row()
	shown := written(t, func(w io.Writer) error { return s.Overview(w, loopview.Style{}) })
	if row.Shown != "gate 1 answered, interrupted" || row.Continue() != "perdure loop resume "+s.ID() ||
		!strings.Contains(shown, "continues after the answer at gate 1") {
		t.Errorf("%+v\n%s", row, shown)
	}
	in.Loop.Step = "measure"
	if !in.Lost() {
		t.Error("a loop without a process at another step does not count as crashed")
	}
}

// A gate with a time-out says so; one of a loop that has ended asks nothing.
func TestGateOfTheOverview(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.asking()
	until := when(50)
	in.Gates[0].ExpiresAt = &until
	if got := written(t, func(w io.Writer) error {
		return loopview.New(in).Overview(w, loopview.Style{})
	}); !strings.Contains(got, "Without an answer the loop is aborted in 30m 00s.") {
		t.Errorf("no time-out:\n%s", got)
	}
	in.Loop.Status = record.Aborted
	s := loopview.New(in)
	if got := written(t, func(w io.Writer) error { return s.Overview(w, loopview.Style{}) }); strings.Contains(got,
		"loop answer") || s.Row().Asking {
		t.Errorf("an ended loop asks:\n%s", got)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests of the parser, and then everything else that is broken in this large repository of ours"}
	crashed := c.input()
	crashed.Crashed = true
	var rows []loopview.Row
	for _, in := range []loopview.Input{c.asking(), c.done(), crashed} {
		rows = append(rows, loopview.New(in).Row())
	}
	got := written(t, func(w io.Writer) error { return loopview.List(w, loopview.Style{Width: 90}, rows, when(90)) })
	golden(t, "list.txt", got)
	if got := written(t, func(w io.Writer) error { return loopview.List(w, loopview.Style{}, nil, time.Time{}) }); got !=
		"no loops\n" {
		t.Errorf("no loops: %q", got)
	}
}

// What takes longer than it may is said in each view, and that nothing is watched.
func TestWarningsAndNoSupervision(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.done()
	in.Tree.Config = raw(t, &config.Config{Task: "Fix the tests", Until: "go test ./...", Workspace: "/project",
		Agent: "codex", Plain: true})
	for i := range in.Iterations {
		o, err := state.ReadOutcome(&in.Iterations[i])
		if err != nil {
			t.Fatal(err)
		}
		o.Warnings = []string{"slow\x1b search"}
		in.Iterations[i].Data = raw(t, &o)
	}
	s := loopview.New(in)
	for name, view := range map[string]func(io.Writer) error{
		"overview":    func(w io.Writer) error { return s.Overview(w, loopview.Style{}) },
		"persistence": func(w io.Writer) error { return s.Persistence(w, loopview.Style{}) },
		"report":      func(w io.Writer) error { return s.Report(w, "md") },
	} {
		got := written(t, view)
		if !strings.Contains(got, "off (--plain)") || !strings.Contains(got, "iteration 8: slow") ||
			strings.Contains(got, "\x1b") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if loopview.Document(in).Detecting {
		t.Error("the state tells of detection")
	}
}

// The diff of a gate is shown with its spaces, each line styled by itself.
func TestDiffOfAGate(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.asking()
	diff := "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n \tstays\n-\tif  a {\x1b[2J\n+\tif  b {\n"
	question := perdure.GateQuestion{Title: "worse", Diff: diff + strings.Repeat("+more\n", 100),
		Options: []perdure.GateOption{{Answer: "approve", Effect: "accepted"}}}
	in.Gates[0].Question = raw(t, &question)
	var out strings.Builder
	if err := loopview.New(in).Overview(&out,
		loopview.Style{Diff: func(line string) string { return "<" + line + ">" }}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  <@@ -1,2 +1,2 @@>\n", "  <     stays>\n", "  <-    if  a {", "  <+    if  b {>\n",
		"and 46 lines more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("it steers the terminal")
	}
}
