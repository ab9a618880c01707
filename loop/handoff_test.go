package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// recorder is the handoff as an agent finds it, by what its environment says.
func (w *turn) recorder(store *perdure.Store) *ledger.Recorder {
	env := make(map[string]string)
	for _, v := range w.env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return ledger.New(ledger.Config{Ledgers: ledger.NewStore(store), Agent: env["PERDURE_AGENT"],
		Place:    handoff.Place(env["PERDURE_HANDOFF_TASK"]),
		Location: handoff.Location{File: env["PERDURE_HANDOFF_FILE"], Root: env["PERDURE_HANDOFF_ROOT"]}})
}

func (b *bench) record(w *turn, ops ...ledger.Op) {
	b.Helper()
	_, err := w.recorder(b.store).Apply(w.ctx, ops...)
	b.ok(err)
}

// entries are all that was recorded of an iteration, by kinds.
func (b *bench) entries(iteration string) []ledger.Entry {
	b.Helper()
	file := filepath.Join(b.loops, loop.ID(&b.tree), handoff.FileName)
	h, err := ledger.NewStore(b.store).Handoff(b.Context(),
		ledger.Ref{Place: filepath.ToSlash(file), Task: "adhoc:" + iteration})
	b.ok(err)
	list, err := ledger.NewStore(b.store).HandoffEntries(b.Context(), h.ID, 0, 0)
	b.ok(err)
	return list
}

func kindsOf(entries []ledger.Entry) string {
	var kinds []string
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	return strings.Join(kinds, " ")
}

func (b *bench) events(kind perdure.EventKind) []perdure.Event {
	b.Helper()
	var found []perdure.Event
	for after := int64(0); ; {
		list, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: b.tree.ID, After: after})
		b.ok(err)
		if len(list) == 0 {
			return found
		}
		for _, e := range list {
			if e.Kind == kind {
				found = append(found, e)
			}
			after = e.Seq
		}
	}
}

// TestHandoffAfterAFailure: the fallback agent receives what the one before
// recorded and which files it touched, and the failure is in the record before
// the turn is settled, also if what agents say is no text that a ledger takes.
func TestHandoffAfterAFailure(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		b.ok(w.write("parser.go", "package p"))
		b.record(w, ledger.Op{Kind: ledger.OpStep, Text: "Wrote the parser", Created: []string{"parser.go"}},
			ledger.Op{Kind: ledger.OpDecide, Text: "Recursive descent", Because: "small grammar"},
			ledger.Op{Kind: ledger.OpPending, Steps: []string{"Write the printer"}})
		b.ok(w.write("printer.go", "package p"))
		return &agent.Error{Kind: agent.KindTimeout, Msg: "the limit for the turn\x00 passed"}
	}, func(w *turn) error {
		w.text = "done\xff\x00"
		b.ok(w.write("name\xff", "it is no UTF-8"))
		return w.write("tests/b", "pass")
	})
	b.launch(func(c *config.Config) { c.Fallback = []string{"other"} })
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Fatalf("%s", show(l))
	}
	prompt := b.agent.prompts[1]
	for _, want := range []string{"Resuming from checkpoint (created by scripted)", "Wrote the parser",
		"Recursive descent", "small grammar",
		"Write the printer", "`parser.go`", "`printer.go`"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt of the second agent lacks %q:\n%s", want, prompt)
		}
	}
	if got := kindsOf(b.entries("iteration-1")); got != "start step decide pending save fail save reassign step verify "+
		"done" {
		t.Errorf("recorded: %s", got)
	}
	if moved := b.events(loop.EventReassigned); len(moved) != 1 ||
		!strings.Contains(string(moved[0].Data), `"agent":"other"`) {
		t.Errorf("events of reassignment: %+v", moved)
	}
}

// TestNextIterationKnowsTheRecord: decisions and failed approaches reach the next
// iteration, and of one that was reverted nothing that it claims to have done.
func TestNextIterationKnowsTheRecord(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		b.record(w, ledger.Op{Kind: ledger.OpDecide, Text: "Use a map"},
			ledger.Op{Kind: ledger.OpTried, Text: "Sorting", Outcome: "too slow"},
			ledger.Op{Kind: ledger.OpPending, Steps: []string{"Delete the cache"}})
		return w.write("one", "1")
	}, func(w *turn) error {
		b.record(w, ledger.Op{Kind: ledger.OpPending, Steps: []string{"Leave it broken"}},
			ledger.Op{Kind: ledger.OpTried, Text: "Skipping a"})
		return w.write("tests/a", "skip")
	}, write("tests/b", "pass"))
	b.launch()
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "reject"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 3 {
		t.Fatalf("%s", show(l))
	}
	for i, want := range map[int][]string{1: {"Use a map", "Sorting: too slow", "Delete the cache"},
		2: {"Use a map", "Skipping a"}} {
		for _, text := range want {
			if !strings.Contains(b.agent.prompts[i], text) {
				t.Errorf("the prompt of iteration %d lacks %q:\n%s", i+1, text, b.agent.prompts[i])
			}
		}
	}
	if strings.Contains(b.agent.prompts[2], "Leave it broken") {
		t.Errorf("what was reverted is still to be done:\n%s", b.agent.prompts[2])
	}
}

// TestFullContext: at 75 % the work is recorded; at 90 % by the agent's own word
// its turn ends with the step it is in, and a fresh session of it goes on.
func TestFullContext(t *testing.T) {
	t.Parallel()
	var b *bench
	report := func(w *turn, used int64) {
		w.observe(agent.Event{Kind: agent.EventUsage,
			Context: &agent.Context{Used: used, Size: 1000, Source: agent.SourceReported}})
	}
	b = newBench(t, func(w *turn) error {
		report(w, 740)
		report(w, 760)
		b.ok(w.write("half", "done"))
		report(w, 930)
		if w.ctx.Err() != nil {
			t.Error("the turn was stopped in the midst of a step")
		}
		w.observe(agent.Event{Kind: agent.EventToolResult,
			Call: &agent.ToolCall{Kind: agent.ToolExecute, Status: agent.ToolCompleted}})
		<-w.ctx.Done()
		return agent.Stopped(w.ctx)
	}, write("tests/b", "pass"))
	b.launch()
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 || b.agent.done != 2 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	full := b.events(loop.EventContext)
	if len(full) != 2 || !strings.Contains(string(full[0].Data), `"used_percent":76`) ||
		!strings.Contains(string(full[1].Data), `"stop":true`) {
		t.Errorf("events %+v", full)
	}
	if !strings.Contains(b.agent.prompts[1], "`half`") {
		t.Errorf("the fresh session is not told of the files:\n%s", b.agent.prompts[1])
	}
	var used []string
	for _, e := range b.entries("iteration-1") {
		var op ledger.Op
		b.ok(json.Unmarshal(e.Data, &op))
		if e.Kind == ledger.OpContext {
			used = append(used, string(op.Reason)+" "+op.Source)
		}
	}
	if len(used) != 3 || used[0] != "context_limit reported" {
		t.Errorf("recorded uses of the context: %q", used)
	}
}

// TestEstimatedContext: what is only estimated is recorded as that, and stops
// nothing.
func TestEstimatedContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		w.observe(agent.Event{Kind: agent.EventMessage, Text: strings.Repeat("word ", 1000)})
		w.observe(agent.Event{Kind: agent.EventToolResult, Call: &agent.ToolCall{Kind: agent.ToolExecute}})
		if w.ctx.Err() != nil {
			t.Error("an estimate stopped the turn")
		}
		return w.write("tests/b", "pass")
	})
	b.restart(loop.EngineConfig{Handoff: loop.HandoffConfig{Window: 1000}})
	b.launch()
	if l := b.work(); l.Status != record.Completed || b.agent.done != 1 {
		t.Fatalf("%s", show(l))
	}
	if full := b.events(loop.EventContext); len(full) != 1 ||
		!strings.Contains(string(full[0].Data), `"source":"estimated"`) {
		t.Errorf("events %+v", full)
	}
}

// TestChainIsExhausted: when every agent failed, a person decides; asked again,
// they all start from the first.
func TestChainIsExhausted(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(agent.KindIdle), failing(agent.KindIdle), failing(agent.KindFailed),
		failing(agent.KindFailed), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxRetries, c.Fallback = 1, []string{"other"} })
	if l := b.work(); l.Step != "gate" || l.Iteration != 1 {
		t.Fatalf("%s", show(l))
	}
	gates, err := b.store.OpenGates(t.Context())
	b.ok(err)
	if len(gates) != 1 || gates[0].Kind != perdure.GateReassignment ||
		!strings.Contains(string(gates[0].Question), "other: failed") {
		t.Fatalf("gates %+v", gates)
	}
	_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "retry"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Errorf("%s", show(l))
	}
	if got := strings.Join(b.agent.names, " "); got != "scripted scripted other other scripted" {
		t.Errorf("who worked: %s", got)
	}
}

// TestLongLimitReassigns: a limit of hours is not waited for when another agent
// can go on, and the first works again when it is over.
func TestLongLimitReassigns(t *testing.T) {
	t.Parallel()
	limit := func(d time.Duration) func(*turn) error {
		return func(*turn) error {
			return &agent.Error{Kind: agent.KindRateLimit, Msg: "5-hour limit", Until: time.Now().Add(d)}
		}
	}
	b := newBench(t, limit(5*time.Hour), write("one", "1"), write("two", "2"), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Fallback = []string{"other"} })
	if l := b.work(); l.Status != record.Completed || l.Iteration != 3 {
		t.Fatalf("%s", show(l))
	}
	if got := strings.Join(b.agent.names, " "); got != "scripted other other other" {
		t.Errorf("who worked: %s", got)
	}
}

// TestToolCalls: a handler's BLOCK denies a call, WARN lets it through with a
// word; calls that only read are not asked about.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	var asked []string
	handler := hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
		target, _ := m.Metadata.Inputs["target"].(string)
		asked = append(asked, string(m.Metadata.HookName)+" "+target)
		reply := hook.Reply{Content: "mind " + target, Metadata: hook.ReplyMetadata{Verdict: hook.Warn}}
		switch {
		case strings.Contains(target, "rm"):
			reply.Metadata.Verdict = hook.Block
		case strings.Contains(target, "fault"):
			return reply, errors.New("broken")
		}
		return reply, nil
	})
	b := newBench(t, func(w *turn) error {
		for command, want := range map[string]bool{"rm -rf tests": false, "go vet": true, "unlink fault.txt": false,
			"echo fault": true} {
			d := w.decide(w.ctx, agent.ToolCall{Name: "Bash", Kind: agent.ToolExecute, Command: command})
			if d.Allow != want || !d.Allow && d.Message == "" {
				t.Errorf("%q: %+v", command, d)
			}
		}
		if d := w.decide(w.ctx, agent.ToolCall{Kind: agent.ToolRead, Paths: []string{"rm"}}); !d.Allow {
			t.Errorf("reading: %+v", d)
		}
		w.observe(agent.Event{Kind: agent.EventToolResult, Call: &agent.ToolCall{Kind: agent.ToolExecute, Command: "go vet"}})
		return w.write("tests/b", "pass")
	})
	b.restart(loop.EngineConfig{Handlers: []hook.Registration{{Hook: hook.PreToolCall, Name: "guard", Handler: handler},
		{Hook: hook.PostToolCall, Name: "after", Handler: handler}}})
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	if len(asked) != 5 || asked[4] != "post_tool_call go vet" {
		t.Errorf("asked: %q", asked)
	}
	if all := b.outcomes(); all[1].Denied != 2 {
		t.Errorf("outcome %+v", all[1])
	}
}

// TestHookInputsAreThose of the table: what the engine tells handlers is what is
// promised to them.
func TestHookInputsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	seen := make(map[hook.Name]bool)
	var handlers []hook.Registration
	for _, row := range hook.Table() {
		known := make(map[string]bool)
		for _, in := range row.Inputs {
			known[in.Name] = true
		}
		handlers = append(handlers, hook.Registration{Hook: row.Hook, Name: "look",
			Handler: hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
				seen[row.Hook] = true
				for name := range m.Metadata.Inputs {
					if !known[name] {
						t.Errorf("%s has an input %q that its row does not", row.Hook, name)
					}
				}
				return hook.Reply{}, nil
			})})
	}
	b := newBench(t, failing(agent.KindIdle), failing(agent.KindRateLimit), write("x", "1"), write("x", "2"),
		write("x", "3"), write("tests/a", "skip"), write("tests/b", "pass"))
	b.restart(loop.EngineConfig{Handlers: handlers})
	b.launch(func(c *config.Config) { c.Fallback, c.BudgetTokens = []string{"other"}, 500 })
	b.parked()
	b.ask(record.Resume)
	for range 10 {
		l := b.work()
		if l.Status.Ended() {
			break
		}
		gates, err := b.store.OpenGates(t.Context())
		b.ok(err)
		if len(gates) == 0 {
			t.Fatalf("%s", show(l))
		}
		answer := map[perdure.GateKind]string{perdure.GateStuck: "continue", perdure.GateBudget: "raise"}[gates[0].Kind]
		if answer == "" {
			answer = "reject"
		}
		_, err = b.store.AnswerGate(t.Context(), b.tree.ID, gates[0].Number, perdure.GateDecision{Answer: answer})
		b.ok(err)
	}
	for _, name := range []hook.Name{hook.LoopStart, hook.PreIteration, hook.PostIteration, hook.OnError,
		hook.RateLimited, hook.RegressionDetected, hook.GateOpened,
		hook.GateAnswered, hook.LoopComplete, hook.CheckpointWritten, hook.BudgetWarning, hook.StuckLoopDetected} {
		if !seen[name] {
			t.Errorf("%s was not asked", name)
		}
	}
}

// TestQuestionGate: an agent that changes nothing and asks gets an answer.
func TestQuestionGate(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { w.text = "Which of the two?"; return nil }, write("tests/b", "pass"))
	b.launch()
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "reply", Reason: "the second"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || !strings.Contains(b.agent.prompts[1], "the second") {
		t.Errorf("%s, told:\n%s", show(l), b.agent.prompts[1])
	}
}

// TestDeletedTestsAreRestored: with no one to ask, once, and the rest of the work
// stays.
func TestDeletedTestsAreRestored(t *testing.T) {
	t.Parallel()
	const deleted = "tests/login_test.py"
	b := newBench(t, func(w *turn) error { return errors.Join(w.write("work", "done"), w.remove(deleted)) },
		write("tests/b", "pass"))
	b.put(deleted, "pass")
	b.launch(func(c *config.Config) { c.Unattended = true })
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Fatalf("%s", show(l))
	}
	if _, err := os.Stat(filepath.Join(b.dir, "work")); err != nil {
		t.Errorf("the work beside the deleted test is gone: %v", err)
	}
	if b.read(deleted) != "pass" {
		t.Error("the deleted test was not restored")
	}
	if b.statuses() != "kept kept" {
		t.Errorf("iterations: %s", b.statuses())
	}
}

// TestInterruptedTurn: of a turn that the process did not survive nothing is
// left, but what the turn before it left stays, in the files and in the record.
func TestInterruptedTurn(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		b.ok(w.write("kept", "1"))
		b.record(w, ledger.Op{Kind: ledger.OpStep, Text: "The kept step", Created: []string{"kept"}})
		return &agent.Error{Kind: agent.KindOverflow, Msg: "full"}
	}, func(w *turn) error {
		b.ok(w.write("lost", "1"))
		b.record(w, ledger.Op{Kind: ledger.OpStep, Text: "The lost step", Created: []string{"lost"}},
			ledger.Op{Kind: ledger.OpDecide, Text: "The decision"})
		b.halt <- struct{}{}
		<-w.ctx.Done()
		return agent.Stopped(w.ctx)
	}, func(w *turn) error {
		if _, err := os.Stat(filepath.Join(w.dir, "lost")); err == nil {
			t.Error("what the interrupted turn wrote is there")
		}
		if _, err := os.Stat(filepath.Join(w.dir, "kept")); err != nil {
			t.Errorf("what the turn before wrote: %v", err)
		}
		return w.write("tests/b", "pass")
	})
	b.launch()
	if l := b.work(); l.Step != "act" {
		t.Fatalf("%s", show(l))
	}
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Fatalf("%s", show(l))
	}
	prompt := b.agent.prompts[2]
	if !strings.Contains(prompt, "The kept step") || !strings.Contains(prompt, "The decision") ||
		strings.Contains(prompt, "The lost step") {
		t.Errorf("the session that goes on is told:\n%s", prompt)
	}
}

// noting is a handler that notes an input.
func noting(into *[]string, input string) hook.Handler {
	return hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
		text, _ := m.Metadata.Inputs[input].(string)
		*into = append(*into, text)
		return hook.Reply{}, nil
	})
}
