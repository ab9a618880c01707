package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// answering returns a turn that reports its usage after each answer of its model, as agents
// do, until it is stopped.
func answering(t *testing.T, answers int, report func(n int64) agent.Event) func(w *turn) error {
	t.Helper()
	return func(w *turn) error {
		for n := int64(1); n <= int64(answers); n++ {
			w.observe(agent.Event{Kind: agent.EventMessage, Text: "next"})
			w.observe(report(n))
			if w.ctx.Err() != nil {
				return errors.Join(w.write("answers", strings.Repeat("x", int(n))), w.ctx.Err())
			}
		}
		return w.write("answers", strings.Repeat("x", answers))
	}
}

// byTokens reports 1,000 tokens for each answer.
func byTokens(n int64) agent.Event {
	return agent.Event{Kind: agent.EventUsage,
		Usage: &agent.Usage{InputTokens: 900 * n, OutputTokens: 100 * n, Reported: true}}
}

// byContext reports how full the context is, before and after each answer.
func byContext(int64) agent.Event {
	return agent.Event{Kind: agent.EventUsage, Context: &agent.Context{Used: 1000, Source: agent.SourceReported}}
}

// byCost reports a cent for each answer.
func byCost(n int64) agent.Event {
	return agent.Event{Kind: agent.EventUsage, CostMicros: new(10_000 * n),
		Usage: &agent.Usage{InputTokens: n, Reported: true}}
}

// TestBudgetStopsTurn: a turn is stopped by the first answer that exceeds a budget, in
// whichever way its agent reports usage, and the loop ends with what it has.
func TestBudgetStopsTurn(t *testing.T) {
	t.Parallel()
	tokens := func(c *config.Config) { c.BudgetTokens = 3000 }
	for name, c := range map[string]struct {
		report func(n int64) agent.Event
		budget func(c *config.Config)
		want   string
	}{
		"tokens":  {byTokens, tokens, "budget exhausted: 4,000 of 3,000 tokens"},
		"context": {byContext, tokens, "budget exhausted: 4,000 of 3,000 tokens"},
		"cost": {byCost, func(c *config.Config) { c.BudgetUSD = 0.03 },
			"budget exhausted: $0.0400 of $0.0300"},
		"price": {byTokens, func(c *config.Config) { c.BudgetUSD = 0.03 },
			"budget exhausted: $0.0400 of $0.0300"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, answering(t, 22, c.report))
			b.agent.model = "priced"
			b.restart(loop.EngineConfig{Price: tenMicros})
			b.launch(c.budget, func(c *config.Config) { c.Unattended = true })
			l := b.work()
			if l.Status != record.Failed || b.agent.done != 1 || b.read("answers") != "xxxx" ||
				!strings.Contains(b.reason(), c.want) {
				t.Fatalf("%s; it answered %q", show(l), b.read("answers"))
			}
			if out := b.outcomes()[1]; !strings.Contains(out.AgentError, c.want) || out.Check.Skipped {
				t.Errorf("outcome %+v", out)
			}
			if e := b.events(loop.EventAgentError); len(e) != 1 ||
				!strings.Contains(string(e[0].Data), `"message":"turn stopped: `+c.want+`"`) {
				t.Errorf("events %+v", e)
			}
			p, err := b.store.Progress(t.Context(), b.tree.ID)
			b.ok(err)
			for _, u := range p.Limits {
				if u.Used*3 != u.Value*4 {
					t.Errorf("the store counts %d of %d %s", u.Used, u.Value, u.Limit)
				}
			}
			b.sound()
		})
	}
}

// tenMicros is the price of one model.
func tenMicros(_, model string, u agent.Usage) (int64, bool) {
	return 10 * (u.InputTokens + u.OutputTokens), model == "priced"
}

// TestBudgetThatPasses: work that passes when the budget ends is done.
func TestBudgetThatPasses(t *testing.T) {
	t.Parallel()
	work := answering(t, 22, byTokens)
	b := newBench(t, func(w *turn) error { return errors.Join(w.write("tests/b", "pass"), work(w)) })
	b.launch(func(c *config.Config) { c.BudgetTokens = 3000 })
	if l := b.work(); l.Status != record.Completed || b.agent.done != 1 {
		t.Errorf("%s", show(l))
	}
}

// TestBudgetGate: with a person the exhausted budget is a question, and the answer raises it.
func TestBudgetGate(t *testing.T) {
	t.Parallel()
	b := newBench(t, answering(t, 22, byTokens), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.BudgetTokens = 3000 })
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "raise"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s", show(l))
	}
}

// TestResumeAfterBudget: a loop that its budget ended continues with a larger one.
func TestResumeAfterBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t, answering(t, 22, byTokens), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.BudgetTokens, c.Unattended = 3000, true })
	b.work()
	_, err := b.engine.Resume(t.Context(), b.tree.ID, request(`{"budget_tokens":9000}`, ""))
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Errorf("%s", show(l))
	}
}

// TestBudgetWithoutPrice: a budget in dollars is refused if nothing says what an agent costs,
// and stops the loop if a turn did not report it.
func TestBudgetWithoutPrice(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{"": "no model is named", "free": `the price of its model "free" is unknown`} {
		b := newBench(t, write("x", "y"))
		b.agent.model = model
		b.restart(loop.EngineConfig{Price: tenMicros})
		_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true",
			Workspace: b.dir, Agent: "scripted", BudgetUSD: 1}})
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", model, err)
		}
	}
	b := newBench(t, write("x", "y"), write("tests/b", "pass"))
	known := true
	b.agent.model = "priced"
	b.restart(loop.EngineConfig{Price: func(a, m string, u agent.Usage) (int64, bool) {
		micros, _ := tenMicros(a, m, u)
		return micros, known
	}})
	b.launch(func(c *config.Config) { c.BudgetUSD = 1 })
	known = false
	if l := b.work(); l.Status != record.Paused || b.agent.done != 1 || !strings.Contains(b.reason(), "cannot be kept") {
		t.Fatalf("%s", show(l))
	}
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s", show(l))
	}
}

// TestUnavailableAgentIsReplaced: an agent that cannot work is replaced at once by the next
// one, and with no other the loop asks.
func TestUnavailableAgentIsReplaced(t *testing.T) {
	t.Parallel()
	for _, kind := range []agent.Kind{agent.KindQuota, agent.KindNotFound, agent.KindAuth} {
		b := newBench(t, failing(kind), write("tests/b", "pass"))
		b.launch(func(c *config.Config) { c.Fallback = []string{"other"} })
		if l := b.work(); l.Status != record.Completed || strings.Join(b.agent.names, " ") != "scripted other" {
			t.Errorf("%s: %s; who worked: %s", kind, show(l), b.agent.names)
		}
	}
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Agent, c.Fallback = "absent", []string{"other"} })
	if l := b.work(); l.Status != record.Completed || strings.Join(b.agent.names, " ") != "other" {
		t.Errorf("%s; who worked: %s", show(l), b.agent.names)
	}
	b = newBench(t, failing(agent.KindQuota))
	b.launch(func(c *config.Config) { c.Fallback = []string{"absent"} })
	if l := b.work(); l.Step != "gate" || l.Iteration != 1 || b.agent.done != 1 {
		t.Errorf("%s", show(l))
	}
	_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true",
		Workspace: b.dir, Agent: "absent"}})
	if perdure.CodeOf(err) != perdure.CodeUnavailable {
		t.Errorf("no agent is there: %v", err)
	}
}

// TestHangingAgent: an agent that hangs is retried once, then another continues, then the
// loop asks.
func TestHangingAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(agent.KindIdle))
	b.launch(func(c *config.Config) { c.Fallback, c.MaxRetries = []string{"other"}, 3 })
	if l := b.work(); l.Step != "gate" || strings.Join(b.agent.names, " ") != "scripted scripted other other" {
		t.Errorf("%s; who worked: %s", show(l), b.agent.names)
	}
	b = newBench(t, failing(agent.KindIdle))
	b.launch()
	if l := b.work(); l.Step != "gate" || b.agent.done != 2 {
		t.Errorf("%s after %d turns", show(l), b.agent.done)
	}
}

// TestUnattendedEndsAtGate: an unattended loop leaves its best iteration at a gate, without
// waiting, and continues with the files of the gate when it is answered.
func TestUnattendedEndsAtGate(t *testing.T) {
	t.Parallel()
	cheat := func(w *turn) error { return errors.Join(w.write("kept", "no"), w.remove("tests/a")) }
	for answer, want := range map[string]string{"approve": "no", "reject": "good", "abort": "good"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, write("kept", "good"), cheat, cheat, write("tests/b", "pass"))
			b.launch(func(c *config.Config) { c.Unattended = true })
			l := b.work()
			if l.Step != "gate" || l.Iteration != 3 || b.read("kept") != "good" || b.read("tests/a") != "pass" {
				t.Fatalf("%s; kept is %q, tests/a %q", show(l), b.read("kept"), b.read("tests/a"))
			}
			_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: answer})
			b.ok(err)
			if l = b.work(); l.Step == "gate" || b.read("kept") != want {
				t.Errorf("%s; kept is %q", show(l), b.read("kept"))
			}
			b.sound()
		})
	}
}

// TestUnattendedSkip: the first skipped or deleted tests of an unattended loop are restored, and the
// rest of the iteration stays. A repetition of either ends at a gate.
func TestUnattendedSkip(t *testing.T) {
	t.Parallel()
	const lost = "tests/login_test.py"
	skip := func(w *turn) error { return errors.Join(w.write("kept", "half"), w.write(lost, "skip")) }
	remove := func(w *turn) error { return errors.Join(w.write("kept", "half"), w.remove(lost)) }
	fix := write("tests/b", "pass")
	for name, tt := range map[string]struct {
		turns      []func(w *turn) error
		step, kept string
	}{
		"once":             {[]func(w *turn) error{skip, fix}, "", "half"},
		"twice":            {[]func(w *turn) error{write("kept", "good"), skip, skip}, "gate", "good"},
		"skip then remove": {[]func(w *turn) error{write("kept", "good"), skip, remove}, "gate", "good"},
		"remove then skip": {[]func(w *turn) error{write("kept", "good"), remove, skip}, "gate", "good"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.turns...)
			b.put(lost, "pass")
			b.launch(func(c *config.Config) { c.Unattended = true })
			l := b.work()
			if tt.step == "" && l.Status != record.Completed || tt.step != "" && l.Step != tt.step {
				t.Errorf("%s; %s", show(l), b.reason())
			}
			if b.read("kept") != tt.kept || b.read(lost) != "pass" {
				t.Errorf("kept is %q, the test %q", b.read("kept"), b.read(lost))
			}
			b.sound()
		})
	}
}

// TestUnattendedWithoutGood: what no iteration can be kept of is not left in the workspace.
func TestUnattendedWithoutGood(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return w.remove("tests/a") })
	b.launch(func(c *config.Config) { c.Unattended = true })
	if l := b.work(); l.Step != "gate" || b.read("tests/a") != "pass" {
		t.Errorf("%s; tests/a is %q", show(l), b.read("tests/a"))
	}
}

// TestFilesAreCompared: the end says that the files are those from before an iteration only if
// they are.
func TestFilesAreCompared(t *testing.T) {
	t.Parallel()
	for _, mine := range []string{"", "changed"} {
		b := newBench(t, func(w *turn) error { return w.remove("tests/a") })
		b.launch(func(c *config.Config) { c.MaxIterations = 1 })
		b.work()
		b.answer("reject", "")
		b.ask(record.Pause)
		b.work()
		want := "the files are those from before iteration 1"
		if mine != "" {
			b.put("mine", mine)
			want = "the workspace differs from before iteration 1 in 1 file: mine"
		}
		b.ask(record.Resume)
		if l := b.work(); l.Status != record.Failed || !strings.Contains(string(l.State), want) {
			t.Errorf("%q: %s", want, show(l))
		}
	}
}

// TestUnattendedWaitsIfAsked: with a time limit of gates the loop waits, with its files.
func TestUnattendedWaitsIfAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return w.remove("tests/a") })
	b.launch(func(c *config.Config) { c.Unattended, c.GateTimeout = true, time.Hour })
	if l := b.parked(); l.Step != "gate" || b.read("tests/a") != "" {
		t.Errorf("%s; tests/a is %q", show(l), b.read("tests/a"))
	}
}

// TestGateChangedFiles: files that the user changed while an unattended loop waits are kept in
// a snapshot.
func TestGateChangedFiles(t *testing.T) {
	t.Parallel()
	cheat := func(w *turn) error { return w.remove("tests/a") }
	b := newBench(t, cheat, cheat, func(*turn) error { return nil })
	b.launch(func(c *config.Config) { c.Unattended, c.MaxIterations = true, 3 })
	b.work()
	b.put("mine", "text")
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "approve"})
	b.ok(err)
	b.work()
	var all strings.Builder
	for _, e := range b.events(loop.EventWarning) {
		all.Write(e.Data)
	}
	if !strings.Contains(all.String(), "1 file changed while the gate waited; they are in snapshot") {
		t.Errorf("events %s", all.String())
	}
}

// TestBudgetOfHookedAgent: usage that an agent writes to a file is read before a hook is answered,
// and the hook of a turn that this stops gets no answer: after one the agent would ask its model
// again.
func TestBudgetOfHookedAgent(t *testing.T) {
	t.Parallel()
	answered := make(chan error, 1)
	b := newHooked(t, loop.EngineConfig{}, func(w *turn) error {
		w.reader(func() { w.observe(byTokens(4)) })
		c := agent.ToolCall{ID: "a", Name: "Bash", Kind: agent.ToolExecute, Command: "ls", Status: agent.ToolRunning}
		go func() {
			_, err := vendorhook.Ask(context.WithoutCancel(w.ctx), w.hook[len(w.hook)-1],
				&vendorhook.Event{Name: vendorhook.PreToolUse, Dir: w.dir, Call: &c})
			answered <- err
		}()
		<-w.ctx.Done()
		return agent.Stopped(w.ctx)
	})
	b.launch(func(c *config.Config) { c.BudgetTokens, c.Unattended = 3000, true })
	if l := b.work(); l.Status != record.Failed || !strings.Contains(b.reason(), "4,000 of 3,000 tokens") {
		t.Error(show(l))
	}
	if err := <-answered; err == nil {
		t.Error("the hook got an answer")
	}
}

// A budget in dollars that cannot be kept is refused; a program has no model that could be priced.
func TestUnpricedBudgetHint(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, model := range map[string]bool{"scripted": true, "exec:sh agent.sh": false} {
		_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true",
			Workspace: b.dir, Agent: name, BudgetUSD: 1}})
		if hint := perdure.HintOf(err); perdure.CodeOf(err) != perdure.CodeInvalid ||
			!strings.Contains(hint, "--budget-tokens") || strings.Contains(hint, "--model") != model {
			t.Errorf("%s: %v, hint %q", name, err, hint)
		}
	}
}
