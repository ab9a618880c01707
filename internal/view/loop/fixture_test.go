package loop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// when is a time in the life of the loops of these tests.
func when(minute int) time.Time {
	return time.Date(2026, 2, 2, 21, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
}

func raw(t testing.TB, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// counts are tests of which so many pass, fail and are skipped.
func counts(passed, failed, skipped int) testreport.Counts {
	return testreport.Counts{Tests: passed + failed + skipped, Passed: passed, Failed: failed, Skipped: skipped,
		Executed: passed + failed}
}

// scene is a loop for tests: what is of others in it is Text.
type scene struct {
	testing.TB
	Text string
}

// metrics are those of an iteration; lint is missing.
func (c scene) metrics(coverage float64, typeErrors int) *metric.Metrics {
	files, lines := 120, 9000+typeErrors
	return &metric.Metrics{Coverage: &coverage, CoveredLines: 420, CodeLines: 500, Profile: "blob",
		TypeErrors: &typeErrors, TypeScriptErrors: &typeErrors, Files: &files, Lines: &lines,
		Custom:  map[string]float64{"size_kb": 12.5 + coverage, c.Text: 1},
		Missing: map[string]string{"lint": "no linter for " + c.Text}, TookMS: 1500}
}

// iteration is one with a quality; change may change its record.
func (c scene) iteration(number, quality int, change func(o *state.Outcome)) record.Iteration {
	c.Helper()
	started, ended := when(2*number), when(2*number+1)
	cost := 0.01 * float64(number%20)
	diff := fmt.Sprintf("--- a/%[1]s.go\n+++ b/%[1]s.go\n@@ -1,2 +1,2 @@\n package %[1]s\n-const n = %[2]d\n"+
		"+const n = %[3]d\n", c.Text, number-1, number)
	o := state.Outcome{
		Iteration: number, Timestamp: ended, Quality: &quality,
		Parts:  map[string]int{"validation": quality, "completeness": 50, "correctness": 100},
		Before: workspace.ID(fmt.Sprintf("before-%d", number)), After: workspace.ID(fmt.Sprintf("after-%d", number)),
		Artifacts: []string{c.Text + ".go"}, Changed: 1, FileDiff: diff,
		Check: state.Check{Command: c.Text, Exit: 1, Output: "output of " + c.Text,
			Counts:  counts(135+number%15, 15-number%15, number%3),
			Failing: []string{"pkg/" + c.Text, "pkg/TestB"}, TookMS: 9000},
		Agent: c.Text, AgentText: "I am done: " + c.Text, InputTokens: 1000 * int64(number%20+1),
		Measured: state.Measured{Usage: []agent.Source{agent.SourceReported, agent.SourceObserved, ""}[number%3],
			ContextPercent: number % 100, Context: agent.SourceObserved},
		OutputTokens: 100 * int64(number%7), CostUSD: &cost,
		Times: state.Times{Agent: 40_000 + 1000*int64(number%9), Check: 9000, Metrics: 1500, Snapshot: 400, Hooks: 30,
			Engine: 20},
	}
	o.Metrics = c.metrics(84.2+float64(number%3), 12-min(number, 12))
	if number == 4 {
		o.Metrics.Loss = &metric.Loss{Still: 400, Lost: 3, Percent: 0.75,
			Files: []metric.Lost{{File: c.Text, Lines: "3-5", Lost: 3}}}
	}
	if number%4 == 0 {
		o.Times.CleanCopy = 2500
		o.CleanCopy = &cleancheck.Verdict{State: cleancheck.Partly, Why: "with ignored files as the loop made them: " +
			c.Text + " (3 files)", Runs: 2, Copied: 123, CopyMS: 400, TookMS: 2500,
			Isolation: &cleancheck.Isolation{Home: true, Environment: true, Path: true, Caches: true,
				Why: cleancheck.BaselineNeedsMore}}
	}
	if change != nil {
		change(&o)
	}
	return record.Iteration{Number: number, Task: 2, Status: record.IterationKept, Quality: o.Quality, Data: raw(c, &o),
		StartedAt: started, EndedAt: &ended}
}

// deletion is an iteration that deleted two tests, which was answered with reject.
func (c scene) deletion(number, quality int) record.Iteration {
	c.Helper()
	it := c.iteration(number, quality, func(o *state.Outcome) {
		o.Check.Counts = counts(140, 8, 0)
		o.Diff = &testreport.Diff{Before: counts(138, 12, 0), Now: counts(140, 8, 0)}
		o.Regressions = []regression.Regression{
			{Type: "test_deletion", Severity: "critical", Text: "2 tests removed, " + c.Text,
				Tests: []string{"auth/login: " + c.Text, "auth/login: weak passwords"}, Files: []string{c.Text}},
			{Type: "test_failure", Severity: "high", Text: "1 test newly failing", Tests: []string{c.Text},
				Fingerprints: []string{"00000000000000f1"}},
		}
		o.Recoveries = []state.Recovery{{Iteration: number, Attempt: 1, Diagnosis: state.RewardHacking, Confidence: 90,
			Why: c.Text, Outcome: "escalated", Steps: []state.RecoveryStep{
				{Step: "pause", ExecutedAt: when(15), Text: "snapshot after-7"},
				{Step: "diagnose", ExecutedAt: when(15), Text: c.Text}, {Step: "escalate", ExecutedAt: when(15)},
			}}}
	})
	it.Status = record.IterationReverted
	return it
}

// input is a loop of eight iterations: the second is the best, the sixth ended in
// an error of the agent, the seventh deleted tests, the eighth is under way.
func (c scene) input() loopview.Input {
	c.Helper()
	answered := when(18)
	ended := when(1)
	told := strings.ReplaceAll(c.Text, "\x00", "") // a configuration with NUL is refused
	base := 40
	baseline := state.Outcome{Timestamp: when(1), Quality: &base, Before: "base", After: "base",
		Check: state.Check{Command: c.Text, Exit: 1, Counts: counts(138, 12, 0), TookMS: 8000}, Metrics: c.metrics(85, 12)}
	question := perdure.GateQuestion{Title: "regression in iteration 7: " + c.Text,
		Text: "The check fails.\n- " + c.Text + "\nDiagnosis: reward_hacking", Diff: "deleted  " + c.Text,
		Options: []perdure.GateOption{{Answer: "approve", Effect: "accepted: " + c.Text},
			{Answer: "reject", Effect: "the files come back"}, {Answer: "abort", Effect: "the loop ends"}}}
	failed := c.iteration(6, 77, func(o *state.Outcome) { o.AgentError = "crashed: " + c.Text })
	failed.Status = record.IterationFailed
	running := record.Iteration{Number: 8, Task: 1, Status: record.IterationRunning,
		Data:      raw(c, &state.Outcome{Iteration: 8, Timestamp: when(19), Before: "before-8", Agent: c.Text}),
		StartedAt: when(19)}
	in := loopview.Input{
		Tree: perdure.Tree{ID: "tree-a1b2c3d4", Name: "fix-tests", Kind: perdure.KindLoop, Root: 1, State: perdure.Running,
			CreatedAt: when(0),
			Config: raw(c, &config.Config{Task: told, Until: told, Workspace: "/project", Agent: told,
				Fallback: []string{told + "2"},
				Measures: config.Measures{
					Metrics: []config.Metric{{Name: "size_kb", Command: "du -sk .", Better: config.BetterDown}}}})},
		Loop: record.Loop{Tree: "tree-a1b2c3d4", Place: ":/project", Status: record.Running, Step: "act", Iteration: 8,
			UpdatedAt: when(19),
			State: raw(c, map[string]any{"baseline": "base",
				"run": map[string]any{"number": 8, "before": "before-8", "working": true}})},
		Iterations: []record.Iteration{
			{Number: 0, Task: 1, Status: record.IterationKept, Quality: &base, Data: raw(c, &baseline), StartedAt: when(0),
				EndedAt: &ended},
			c.iteration(1, 60, nil), c.iteration(2, 85, nil), c.iteration(3, 83, nil), c.iteration(4, 81, nil),
			c.iteration(5, 79, nil), failed, c.deletion(7, 70), running,
		},
		Gates: []perdure.Gate{{Tree: "tree-a1b2c3d4", Number: 1, Iteration: 7, Kind: perdure.GateRecovery,
			Question: raw(c, &question), OpenedAt: when(15),
			Answer: "reject", AnsweredBy: c.Text, Reason: c.Text, AnsweredAt: &answered}},
		Progress: perdure.Progress{Tree: "tree-a1b2c3d4", State: perdure.Running,
			Usage: perdure.Usage{Calls: 7, InputTokens: 28_000, OutputTokens: 700, CostUSD: 0.28}},
		Now: when(20),
	}
	return in
}

// asking is the loop with an open gate.
func (c scene) asking() loopview.Input {
	c.Helper()
	in := c.input()
	in.Iterations = in.Iterations[:8]
	in.Loop.Iteration, in.Loop.Step, in.Loop.UpdatedAt = 7, "gate", when(15)
	in.Loop.State = raw(c, map[string]any{"run": map[string]any{"number": 7, "before": "before-7"}, "gate": 1})
	g := &in.Gates[0]
	g.Answer, g.AnsweredBy, g.Reason, g.AnsweredAt = "", "", "", nil
	it := c.deletion(7, 70)
	it.Status = record.IterationKept
	in.Iterations[7] = it
	return in
}

// done is the loop at its end: iteration 8 passed, and is the best.
func (c scene) done() loopview.Input {
	c.Helper()
	in := c.input()
	end := when(30)
	in.Iterations[8] = c.iteration(8, 97, func(o *state.Outcome) {
		o.Check.Passed, o.Check.Exit, o.Check.Failing, o.Check.Counts = true, 0, nil, counts(150, 0, 0)
	})
	in.Tree.State, in.Tree.CompletedAt = perdure.Completed, &end
	in.Loop.Status, in.Loop.Step, in.Loop.UpdatedAt = record.Completed, "ended", end
	in.Loop.State = raw(c, map[string]any{"run": map[string]any{"number": 8, "before": "before-8"},
		"reason":   "the check passes after iteration 8 " + c.Text,
		"selected": 8, "selected_reason": "Final iteration was also best" + c.Text, "verified": true,
		"way_back": []string{"before-8"}, "levels": []state.LevelChange{{At: when(10), Iteration: 5, From: "STANDARD",
			To: "AGGRESSIVE", Reason: c.Text}}})
	in.FalseAlarms = []record.FalseAlarm{{Fingerprint: "00000000000000f1", Event: "reg-007-2"},
		{Fingerprint: "00000000000000f2"}}
	return in
}

// long is a loop of many iterations, every hundredth with a regression.
func (c scene) long(n int) loopview.Input {
	c.Helper()
	in := c.input()
	in.Tree.Config = raw(c, &config.Config{Task: c.Text, Until: c.Text, Workspace: "/project", Agent: c.Text,
		MaxIterations: config.MaxIterationsCap})
	in.Iterations = in.Iterations[:1]
	for i := 1; i <= n; i++ {
		it := c.iteration(i, 20+(i*37)%70, nil)
		if i%100 == 0 {
			it = c.deletion(i, 30)
		}
		in.Iterations = append(in.Iterations, it)
	}
	in.Loop.Iteration, in.Loop.Step = n, "next"
	in.Gates = nil
	return in
}
