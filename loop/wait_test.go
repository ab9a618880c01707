package loop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// reason is why the loop stands as it does.
func (b *bench) reason() string {
	b.Helper()
	var s struct {
		Reason string `json:"reason"`
	}
	b.ok(json.Unmarshal(b.row().State, &s))
	return s.Reason
}

func (b *bench) ask(w record.Control) {
	b.Helper()
	b.ok(b.records.Ask(b.Context(), b.tree.ID, w))
}

// workUntil works until a file that matches a pattern holds something, and then aborts the loop.
func (b *bench) workUntil(started string) record.Loop {
	b.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			found, _ := filepath.Glob(started)
			for _, name := range found {
				if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
					b.ask(record.Abort)
					return
				}
			}
			select {
			case <-tick.C:
			case <-b.Context().Done():
				return
			}
		}
	}()
	l := b.work()
	<-done
	return l
}

func failing(kind agent.Kind) func(w *turn) error {
	return func(*turn) error { return &agent.Error{Kind: kind, Msg: "as it is"} }
}

// TestPauseAndResume: the loop stops before the next iteration, and goes on when
// it is asked to.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error { b.ask(record.Pause); return w.write("x", "1") }, write("tests/b", "pass"))
	b.launch()
	l := b.work()
	if l.Status != record.Paused || l.Iteration != 1 || l.Control != record.NoControl || b.agent.done != 1 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	b.ask(record.Resume)
	if l = b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// TestPauseNowStopsTheAgent: what it left is looked at.
func TestPauseNowStopsTheAgent(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		b.ask(record.PauseNow)
		<-w.ctx.Done()
		return errors.Join(w.write("half", "done"), w.ctx.Err())
	}, write("tests/b", "pass"))
	b.launch()
	l := b.work()
	if l.Status != record.Paused || b.read("half") != "done" {
		t.Fatalf("%s; half is %q", show(l), b.read("half"))
	}
	if all := b.outcomes(); len(all) != 2 || !strings.Contains(all[1].AgentError, "pause_now") {
		t.Errorf("outcomes %+v", all)
	}
	b.ask(record.Resume)
	if l = b.work(); l.Status != record.Completed {
		t.Errorf("%s", show(l))
	}
}

// TestAbort: the agent is stopped, and the files stay or come back.
func TestAbort(t *testing.T) {
	t.Parallel()
	for control, want := range map[record.Control]string{record.Abort: "mess", record.Revert: ""} {
		t.Run(string(control), func(t *testing.T) {
			t.Parallel()
			var b *bench
			b = newBench(t, func(w *turn) error {
				b.ask(control)
				<-w.ctx.Done()
				return errors.Join(w.write("new", "mess"), w.write("tests/a", "mess"), w.ctx.Err())
			})
			b.launch()
			l := b.work()
			if l.Status != record.Aborted || b.agent.done != 1 || b.read("new") != want {
				t.Fatalf("%s; the new file is %q", show(l), b.read("new"))
			}
			if control == record.Revert && b.read("tests/a") != "pass" {
				t.Errorf("tests/a is %q", b.read("tests/a"))
			}
			tree, err := b.store.Tree(t.Context(), b.tree.ID)
			if err != nil || tree.State != perdure.Failed {
				t.Errorf("the tree is %s, %v", tree.State, err)
			}
			b.sound()
		})
	}
}

// TestRateLimitIsAWait: it is neither an iteration nor a retry.
func TestRateLimitIsAWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(agent.KindRateLimit), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxRetries = -1 })
	l := b.parked()
	if l.Iteration != 1 || l.Step != "act" || b.agent.done != 1 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	b.ask(record.Resume) // who does not want to wait
	if l = b.work(); l.Status != record.Completed || l.Iteration != 1 || b.agent.done != 2 {
		t.Errorf("%s after %d turns", show(l), b.agent.done)
	}
}

// parked works until nothing can go on at once.
func (b *bench) parked() record.Loop {
	b.Helper()
	b.soon = time.Second
	defer func() { b.soon = 0 }()
	return b.work()
}

// TestAgentErrors: the agent's own faults spend a retry, then another stands in,
// at once for one that hangs.
func TestAgentErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(agent.KindFailed), failing(agent.KindIdle), failing(agent.KindFailed),
		write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxRetries, c.Fallback = 2, []string{"other"} })
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 1 || b.agent.done != 4 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	if got := strings.Join(b.agent.names, " "); got != "scripted scripted other other" {
		t.Errorf("who worked: %s", got)
	}
	if !strings.Contains(b.agent.prompts[1], "ended early: failed: as it is") {
		t.Errorf("the second turn is not told how the first one ended:\n%s", b.agent.prompts[1])
	}
	all := b.outcomes()
	if all[1].Agent != "other" || all[1].AgentError != "" {
		t.Errorf("outcome %+v", all[1])
	}
	var kinds []string // of the turns that others followed
	for _, e := range all[1].Retried {
		kind, _, _ := strings.Cut(e.Message, ":")
		kinds = append(kinds, kind)
		if e.At.IsZero() {
			t.Errorf("error without a time: %+v", e)
		}
	}
	if got := strings.Join(kinds, " "); got != "failed idle failed" {
		t.Errorf("errors in the record: %+v", all[1].Retried)
	}
}

// TestThreeAgentErrorsAreStuck: three iterations that end in an agent error open
// a gate at once, whose answer goes into the prompt.
func TestThreeAgentErrorsAreStuck(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(agent.KindFailed), failing(agent.KindFailed), failing(agent.KindFailed),
		write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxRetries = -1 })
	if l := b.work(); l.Step != "gate" || l.Iteration != 3 {
		t.Fatalf("%s", show(l))
	}
	gates, err := b.store.OpenGates(t.Context())
	if err != nil || len(gates) != 1 || gates[0].Kind != perdure.GateStuck {
		t.Fatalf("gates %+v, %v", gates, err)
	}
	_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1,
		perdure.GateDecision{Answer: "continue", Reason: "use the other door"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 4 {
		t.Errorf("%s", show(l))
	}
	if !strings.Contains(b.agent.prompts[3], "use the other door") {
		t.Errorf("the prompt does not contain the answer:\n%s", b.agent.prompts[3])
	}
}

// TestSameFailureIsStuck: three times the same, with the same files.
func TestSameFailureIsStuck(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t, func(w *turn) error { n++; return w.write("same", fmt.Sprint(n)) })
	b.launch()
	if l := b.work(); l.Step != "gate" || l.Iteration != 3 {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "manual"})
	b.ok(err)
	if l := b.work(); l.Status != record.Paused {
		t.Fatalf("%s", show(l))
	}
	b.put("tests/b", "pass") // by hand
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 4 {
		t.Errorf("%s", show(l))
	}
}

// TestSetupFaultPauses: what a person has to mend stops the loop with a clear
// message, and costs nothing.
func TestSetupFaultPauses(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(*turn) error {
		return &agent.Error{Kind: agent.KindAuth, Msg: "not logged in",
			Hint: "log in"}
	}, write("tests/b", "pass"))
	b.launch()
	l := b.work()
	if l.Status != record.Paused || l.Iteration != 1 || !strings.Contains(b.reason(), "not logged in (log in)") {
		t.Fatalf("%s", show(l))
	}
	b.ask(record.Resume)
	if l = b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Errorf("%s", show(l))
	}
}

// TestResumedAndPausedAgain: who resumed a loop that had not paused, after a crash,
// is not left waiting when it pauses then.
func TestResumedAndPausedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Until = "test -e tool || exit 127; " + checkTAP })
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Paused || l.Control != record.NoControl {
		t.Fatalf("%s; the control request %q is still open", show(l), l.Control)
	}
	b.put("tool", "x")
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s", show(l))
	}
}

// TestMissingCheckPauses: a completion command that does not exist is not a failure of
// the agent.
func TestMissingCheckPauses(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("x", "y"))
	b.launch(func(c *config.Config) { c.Until = "no-such-program --at-all" })
	l := b.work()
	if l.Status != record.Paused || b.agent.done != 0 || !strings.Contains(b.reason(), "127") {
		t.Errorf("%s", show(l))
	}
}

// TestSkippedTestIsARegression, and one that fails is named first and then mended.
func TestSkippedTestIsARegression(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/a", "skip"))
	b.launch()
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	g := b.outcomes()[1].Regressions
	if len(g) != 1 || g[0].Type != "test_skipping" || g[0].Tests[0] != "a" {
		t.Errorf("regressions %+v", g)
	}
}

// TestBrokenTestIsNamed: the first recovery is to name it; nothing is reverted.
func TestBrokenTestIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return errors.Join(w.write("tests/a", "broken"), w.write("tests/b", "pass")) },
		func(w *turn) error {
			if !strings.Contains(w.prompt, "Fix the regressions of the last iteration first") {
				return errors.New("the prompt does not name it")
			}
			return w.write("tests/a", "pass")
		})
	b.launch()
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 2 || b.statuses() != "kept kept" {
		t.Errorf("%s; iterations %s", show(l), b.statuses())
	}
	if r := b.outcomes()[1].Recoveries; len(r) != 1 || r[0].Outcome != "retried" ||
		r[0].Diagnosis != state.TaskComplexity {
		t.Errorf("recovery %+v", r)
	}
}

// TestApprove: the baseline is what the tests say now.
func TestApprove(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return errors.Join(w.remove("tests/a"), w.write("tests/b", "pass")) })
	b.launch()
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1,
		perdure.GateDecision{Answer: "approve", By: "ann", Reason: "a is obsolete"})
	b.ok(err)
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 1 || b.read("tests/a") != "" || !b.outcomes()[1].Accepted {
		t.Errorf("%s; tests/a is %q", show(l), b.read("tests/a"))
	}
}

// TestGateTimeout: a timeout never approves anything.
func TestGateTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return w.remove("tests/a") })
	b.launch(func(c *config.Config) { c.GateTimeout = time.Millisecond })
	if l := b.work(); l.Status != record.Aborted || !strings.Contains(b.reason(), "in time") {
		t.Errorf("%s", show(l))
	}
}

// TestEarlyEndIsNoProof: exit status 0 without the runner's end record.
func TestEarlyEndIsNoProof(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("early", "yes"))
	b.launch(func(c *config.Config) {
		c.Until = `[ -e early ] && { echo "TAP version 13"; echo "ok 1 - a"; exit 0; }; ` + checkTAP
		c.MaxIterations = 1
	})
	l := b.work()
	out := b.outcomes()[1]
	if l.Status == record.Completed || out.Check.Passed || len(out.Regressions) == 0 {
		t.Errorf("%s; %+v", show(l), out)
	}
}

// TestBudget: a loop stops before it spends more than it may.
func TestBudget(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t, func(w *turn) error { n++; return w.write(fmt.Sprint("f", n), "x") })
	b.launch(func(c *config.Config) { c.BudgetTokens = 200 }) // 110 a turn
	l := b.work()
	gates, err := b.store.OpenGates(t.Context())
	b.ok(err)
	if l.Step != "gate" || l.Iteration != 2 || b.agent.done != 2 || len(gates) != 1 ||
		gates[0].Kind != perdure.GateBudget {
		t.Fatalf("%s after %d turns, gates %+v", show(l), b.agent.done, gates)
	}
	_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "raise"})
	b.ok(err)
	if l := b.work(); l.Step != "gate" || b.agent.done != 4 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 2, perdure.GateDecision{Answer: "finish"})
	b.ok(err)
	if l := b.work(); l.Status != record.Failed || l.Iteration != 4 {
		t.Errorf("%s", show(l))
	}
}

// TestCheckItself: who changes what the check hangs on has not passed it. It is
// named first, and counts until it is reverted.
func TestCheckItself(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("check.sh", "exit 0"), func(w *turn) error {
		if !strings.Contains(w.prompt, "the completion command runs it") {
			return errors.New("the prompt does not name it")
		}
		return errors.Join(w.write("check.sh", checkTAP), w.write("tests/b", "pass"))
	})
	b.put("check.sh", checkTAP)
	b.launch(func(c *config.Config) { c.Until = "sh ./check.sh" })
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 2 || b.read("tests/b") != "pass" {
		t.Errorf("%s", show(l))
	}
	if g := b.outcomes()[1].Regressions; len(g) != 2 || g[1].Type != "protected_change" || g[1].Files[0] != "check.sh" {
		t.Errorf("regressions %+v", g)
	}
}

// TestDataOfTheCheck: a file that the check only reads is the work.
func TestDataOfTheCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("n", "2"), write("n", "3"))
	b.put("n", "1")
	b.launch(func(c *config.Config) { c.Task, c.Until = "count to three in n", `test "$(cat n)" = 3` })
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 || b.statuses() != "kept kept" {
		t.Errorf("%s; iterations %s", show(l), b.statuses())
	}
}

// TestProtectedFiles: configuration of what is checked counts when it got weaker, and only
// then.
func TestProtectedFiles(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t, func(w *turn) error {
		switch n++; n {
		case 1:
			return w.write("package.json", `{"scripts":{"test":"jest"},"version":"2"}`)
		case 2:
			return errors.Join(w.write("package.json", `{"scripts":{"test":"true"},"version":"2"}`),
				w.write(".github/workflows/ci.yml", "on: never"))
		}
		return w.write("tests/b", "pass")
	})
	b.put("package.json", `{"scripts":{"test":"jest"},"version":"1"}`)
	b.put(".github/workflows/ci.yml", "on: push\njobs: {a: {steps: [{run: make test}]}}\n")
	b.launch(func(c *config.Config) { c.MaxIterations = 2; c.MaxRetries = 1 })
	b.work()
	all := b.outcomes()
	if len(all[1].Regressions) != 0 {
		t.Errorf("a new version: %+v", all[1].Regressions)
	}
	if g := all[2].Regressions; len(g) != 1 || g[0].Type != "protected_change" || len(g[0].Files) != 2 ||
		!strings.Contains(g[0].Text, `"jest" of "test" removed`) {
		t.Errorf("switched off: %+v", g)
	}
}

// TestWorkspaceGone: a deleted folder pauses the loop, with what to
// do; when it is there again the loop goes on.
func TestWorkspaceGone(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(*turn) error { return os.Rename(b.dir, b.dir+".away") }, write("tests/b", "pass"))
	b.launch()
	l := b.work()
	if l.Status != record.Paused || !strings.Contains(b.reason(), "workspace is missing") {
		t.Fatalf("%s", show(l))
	}
	b.ok(os.Rename(b.dir+".away", b.dir))
	b.ask(record.Resume)
	if l = b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Errorf("%s", show(l))
	}
}

// TestAnswerAtOnce: an answer that comes while the loop parks is not overlooked,
// and neither is a control request.
func TestAnswerAtOnce(t *testing.T) {
	t.Parallel()
	for i := range effort.Of(4, 40) {
		b := newBench(t, func(w *turn) error { return w.remove("tests/a") })
		b.launch()
		answered := make(chan error, 1)
		go func() {
			for {
				changed := b.store.Changed()
				gates, err := b.store.OpenGates(t.Context())
				if err == nil && len(gates) == 1 {
					if i%2 == 0 {
						_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "abort"})
					} else {
						err = b.records.Ask(t.Context(), b.tree.ID, record.Abort)
					}
					answered <- err
					return
				}
				<-changed
			}
		}()
		l := b.work()
		b.ok(<-answered)
		if !l.Status.Ended() { // it was asked to only as it was left
			l = b.work()
		}
		if l.Status != record.Aborted {
			t.Fatalf("%s", show(l))
		}
	}
}

// TestFlaky: a test that fails and then passes is flaky and no regression, also
// where the runner cannot select which tests to repeat.
func TestFlaky(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	runs := filepath.Join(t.TempDir(), "runs")
	// The third run, the first after the iteration, has a failing test: the baseline runs twice.
	check := fmt.Sprintf(`echo run >> %[1]q; case $(wc -l < %[1]q) in *3) echo "not ok 1 - a";; *) echo "ok 1 - a";; esac
cd tests; if grep -q pass b; then echo "ok 2 - b"; else echo "not ok 2 - b"; fi; echo 1..2; grep -q pass b`, runs)
	b.launch(func(c *config.Config) { c.Until = check })
	l := b.work()
	out := b.outcomes()[1]
	if l.Status != record.Completed || l.Iteration != 1 || len(out.Regressions) != 0 || out.Check.Counts.Flaky != 1 {
		t.Errorf("%s, regressions %+v, %+v", show(l), out.Regressions, out.Check.Counts)
	}
}

// TestGreenAtTheStart: a check that passes already is a question, before any turn is paid for.
func TestGreenAtTheStart(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		status record.Status
		turns  int
	}{"continue": {record.Completed, 1}, "finish": {record.Completed, 0}, "abort": {record.Aborted, 0}} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, write("x", "y"))
			b.put("tests/b", "pass")
			b.launch(func(c *config.Config) { c.EvenIfGreen = false })
			if l := b.work(); l.Step != "gate" || b.agent.done != 0 {
				t.Fatalf("%s after %d turns", show(l), b.agent.done)
			}
			_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: answer, Reason: "add x"})
			b.ok(err)
			if l := b.work(); l.Status != want.status || b.agent.done != want.turns {
				t.Errorf("%s after %d turns", show(l), b.agent.done)
			}
			if want.turns > 0 && !strings.Contains(b.agent.prompts[0], "add x") {
				t.Errorf("the prompt lacks the reason:\n%s", b.agent.prompts[0])
			}
			b.sound()
		})
	}
	b := newBench(t, write("x", "y"))
	b.put("tests/b", "pass")
	b.launch()
	if l := b.work(); l.Status != record.Completed || b.agent.done != 1 {
		t.Errorf("%s after %d turns", show(l), b.agent.done)
	}
}

// TestOtherCheck: a completion command that cannot be run is replaced when the loop is resumed,
// and one that was measured is not.
func TestOtherCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Until = "no-such-program --at-all" })
	l := b.work()
	for _, want := range []string{"no-such-program is not installed",
		"install no-such-program and run `perdure loop resume", "--until COMMAND`", "`perdure loop abort"} {
		if l.Status != record.Paused || !strings.Contains(b.reason(), want) {
			t.Errorf("no %q in: %s", want, b.reason())
		}
	}
	until, err := json.Marshal(map[string]string{"until": checkTAP})
	b.ok(err)
	b.resume(request(string(until), ""))
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	b = newBench(t, func(w *turn) error { b.ask(record.Pause); return w.write("x", "y") })
	b.launch()
	b.work()
	for _, field := range []string{"until", "scorer"} {
		_, err := b.engine.Resume(t.Context(), b.tree.ID, request(fmt.Sprintf(`{%q:"true"}`, field), ""))
		if err == nil || !strings.Contains(err.Error(), field+" cannot be changed") {
			t.Errorf("the measured %s was replaced: %v", field, err)
		}
	}
}

// TestStoppedTurn: a turn that the user stopped with its process is undone and repeated, not
// measured, when the loop is resumed.
func TestStoppedTurn(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		b.ok(w.write("half", "done"))
		b.halt <- struct{}{}
		<-w.ctx.Done()
		return w.ctx.Err()
	}, write("tests/b", "pass"))
	b.launch()
	b.work()
	b.ask(record.Pause)
	if l := b.work(); l.Status != record.Paused || len(b.outcomes()) != 2 || b.outcomes()[1].Check.Command != "" {
		t.Fatalf("%s; outcomes %+v", show(l), b.outcomes())
	}
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 || b.read("half") != "" {
		t.Errorf("%s; half is %q", show(l), b.read("half"))
	}
}
