package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// hooking is a scripted agent that runs hooks of its own.
type hooking struct{ *scripted }

func (hooking) Sight() agent.Sight { return agent.SightObserved }
func (hooking) Hooked() bool       { return true }

// Agent finds the agent.
func (h hooking) Agent(spec loop.AgentSpec) (agent.Agent, error) {
	_, err := h.scripted.Agent(spec)
	return h, err
}

// newHooked is a bench with an agent that runs hooks.
func newHooked(t *testing.T, cfg loop.EngineConfig, turns ...func(w *turn) error) *bench {
	t.Helper()
	b := newBench(t, turns...)
	b.engine = b.hooked(cfg)
	return b
}

// hooked returns an engine for an agent that runs hooks.
func (b *bench) hooked(cfg loop.EngineConfig) *loop.Engine {
	b.Helper()
	cfg.Store, cfg.Agents, cfg.Dir, cfg.Hook = b.store, hooking{b.agent}, b.loops, []string{"perdure", "hook"}
	e, err := loop.New(b.Context(), cfg)
	b.ok(err)
	return e
}

// calls makes calls as an agent with hooks does: it reports the call, asks, makes it, asks
// again and reports its end. They return the messages, and whether it was refused.
func (w *turn) calls(id, command string, do func() error) (refused bool, told string, err error) {
	c := agent.ToolCall{ID: id, Name: "Bash", Kind: agent.ToolExecute, Command: command, Status: agent.ToolRunning}
	w.observe(agent.Event{Kind: agent.EventToolCall, Call: &c})
	e := vendorhook.Event{Name: vendorhook.PreToolUse, Dir: w.dir, Call: &c}
	socket := w.hook[len(w.hook)-1]
	a, err := vendorhook.Ask(w.ctx, socket, &e)
	if err != nil {
		return true, "", err
	}
	told = a.Text
	if refused = a.Verdict != vendorhook.Pass; !refused {
		if err := do(); err != nil {
			return false, told, err
		}
		e.Name = vendorhook.PostToolUse
		after, err := vendorhook.Ask(w.ctx, socket, &e)
		if err != nil {
			return false, told, err
		}
		told += after.Text
	}
	c.Status = agent.ToolCompleted
	w.observe(agent.Event{Kind: agent.EventToolResult, Call: &c})
	return refused, told, nil
}

func nothing() error { return nil }

// TestHooks: an agent's own hooks are answered by the table, and all of it is kept; the
// calls are seen natively then.
func TestHooks(t *testing.T) {
	t.Parallel()
	sockets := t.TempDir()
	b := newHooked(t, loop.EngineConfig{Sockets: []string{sockets}}, func(w *turn) error {
		if !slices.Equal(w.hook[:3], []string{"perdure", "hook", "--socket"}) ||
			!slices.Contains(w.env, "PERDURE_HOOK_SOCKET="+w.hook[3]) {
			t.Errorf("hook %q", w.hook)
		}
		refused, told, err := w.calls("1", "git reset --hard", func() error { return errors.New("it was made") })
		if err != nil || !refused || !strings.HasPrefix(told, "git reset --hard: ") {
			t.Errorf("discarding work: %v, %q, %v", refused, told, err)
		}
		refused, told, err = w.calls("2", "rm x_test.go", func() error { return w.remove("x_test.go") })
		if err != nil || refused || !strings.Contains(told, "delete a test") || !strings.Contains(told, "TestX") {
			t.Errorf("deleting a test: %v, %q, %v", refused, told, err)
		}
		if refused, told, err = w.calls("3", "ls", nothing); err != nil || refused || told != "" {
			t.Errorf("looking: %v, %q, %v", refused, told, err)
		}
		return errors.Join(w.write("x_test.go", testX), w.write("tests/b", "pass"))
	})
	b.put("x_test.go", testX)
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	out := b.outcomes()[1]
	if out.Sight != agent.SightNative || out.Denied != 1 || len(out.Risky) != 2 || len(b.events(loop.EventRisky)) != 2 ||
		len(out.Warnings) != 0 {
		t.Errorf("outcome %+v", out)
	}
	if k := out.Risky[1]; k.Answer != risk.Warn || k.Snapshot == "" || k.After == nil || k.After.TestsBefore != 1 ||
		k.After.TestsAfter != 0 || len(k.After.Findings) != 1 {
		t.Errorf("the deleted test: %+v", k)
	}
	dir := filepath.Join(b.loops, loop.ID(&b.tree))
	log, err := os.Open(filepath.Join(dir, "hook-log.jsonl"))
	b.ok(err)
	defer func() { b.ok(log.Close()) }()
	count := map[hook.Name]int{}
	_, err = hook.ReadLog(log, func(r hook.Record) bool {
		if r.Handler == "tool calls" {
			count[r.Hook]++
		}
		return true
	})
	b.ok(err)
	if count[hook.PreToolCall] != 3 || count[hook.PostToolCall] != 1 {
		t.Errorf("lines of the hook log: %v", count)
	}
	if left, _ := filepath.Glob(filepath.Join(sockets, "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestHooksAfterRemovalOfTheStore: after the agent removed the folder of the store, its hooks are
// answered as before, and its calls are recorded.
func TestHooksAfterRemovalOfTheStore(t *testing.T) {
	t.Parallel()
	var b *bench
	b = netBench(t, func(w *turn) error {
		if _, _, err := w.calls("1", "rm old", nothing); err != nil {
			return err
		}
		if err := os.RemoveAll(b.store.Dir()); err != nil {
			return err
		}
		if refused, _, err := w.calls("2", "ls", nothing); err != nil || refused {
			t.Errorf("looking: %v, %v", refused, err)
		}
		if refused, told, err := w.calls("3", "git reset --hard", nothing); err != nil || !refused {
			t.Errorf("discarding work: %v, %q, %v", refused, told, err)
		}
		return w.write("tests/b", "pass")
	})
	b.engine = b.hooked(loop.EngineConfig{Copies: t.TempDir()})
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s: %s", show(l), b.reason())
	}
	out := b.outcomes()[1]
	if out.Denied != 1 || len(out.Calls) < 2 || out.Calls[len(out.Calls)-1].Answer != risk.Block {
		t.Errorf("denied %d, calls %+v", out.Denied, out.Calls)
	}
}

const testX = "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {\n\tif x() != 1 {\n\t\tt.Error(\"x\")\n" +
	"\t}\n}\n"

// TestHooksGate: what waits for a person is refused until one allowed it.
func TestHooksGate(t *testing.T) {
	t.Parallel()
	var answers []bool
	b := newHooked(t, loop.EngineConfig{}, func(w *turn) error {
		refused, told, err := w.calls("1", "git rm old.go", nothing)
		answers = append(answers, refused)
		if refused && !strings.Contains(told, "A person decides") {
			t.Errorf("told %q", told)
		}
		if len(answers) == 2 {
			return errors.Join(err, w.write("tests/b", "pass"))
		}
		return errors.Join(err, w.write("one", "1"))
	})
	b.launch(func(c *config.Config) { c.RiskAnswers = map[string]config.RiskAnswer{"git_remove": config.RiskGate} })
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "approve"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || !slices.Equal(answers, []bool{true, false}) {
		t.Errorf("%s, refused %v", show(l), answers)
	}
}

// TestHooksHandlers: the user's handlers of pre_tool_call are asked; one that fails
// refuses what can destroy something.
func TestHooksHandlers(t *testing.T) {
	t.Parallel()
	fails := hook.Func(func(context.Context, hook.Message) (hook.Reply, error) {
		return hook.Reply{},
			errors.New("no idea")
	})
	b := newHooked(t, loop.EngineConfig{
		Handlers: []hook.Registration{{Hook: hook.PreToolCall, Name: "mine", Handler: fails}}}, func(w *turn) error {
		if refused, told, err := w.calls("1", "rm old.go", nothing); err != nil || !refused ||
			!strings.Contains(told, "no idea") {
			t.Errorf("deleting: %v, %q, %v", refused, told, err)
		}
		return w.write("tests/b", "pass")
	})
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
}

// TestHooksPassedBy: a call that the agent made without asking is seen, and then the
// calls were not seen natively.
func TestHooksPassedBy(t *testing.T) {
	t.Parallel()
	b := newHooked(t, loop.EngineConfig{}, func(w *turn) error {
		_, _, err := w.calls("1", "ls", nothing)
		c := agent.ToolCall{ID: "2", Name: "Bash", Kind: agent.ToolExecute, Command: "git reset --hard",
			Status: agent.ToolCompleted}
		w.observe(agent.Event{Kind: agent.EventToolResult, Call: &c})
		w.observe(agent.Event{Kind: agent.EventToolResult, Call: &c})
		return errors.Join(err, w.write("tests/b", "pass"))
	})
	b.launch()
	b.work()
	out := b.outcomes()[1]
	if out.Sight != agent.SightObserved || len(out.Risky) != 1 || out.Risky[0].Answer != "" || len(out.Warnings) != 1 ||
		!strings.Contains(out.Warnings[0], "made 1 tool call without asking") {
		t.Errorf("outcome %+v", out)
	}
}

// TestHooksOtherNames: an agent's stream may call a call by another name than its hooks
// do, as Codex does.
func TestHooksOtherNames(t *testing.T) {
	t.Parallel()
	b := newHooked(t, loop.EngineConfig{}, func(w *turn) error {
		for i := range 4 {
			c := agent.ToolCall{ID: fmt.Sprintf("call_%d", i/2), Name: "Bash", Kind: agent.ToolExecute, Command: "ls"}
			for _, event := range []string{vendorhook.PreToolUse, vendorhook.PostToolUse}[:1+i%2] {
				if a, err := vendorhook.Ask(w.ctx, w.hook[3], &vendorhook.Event{Name: event, Dir: w.dir, Call: &c}); err != nil ||
					a.Verdict != vendorhook.Pass {
					t.Errorf("%+v, %v", a, err)
				}
			}
			c.ID, c.Name, c.Command, c.Status = fmt.Sprintf("item_%d",
				i), "command_execution", "/bin/bash -lc ls", agent.ToolCompleted
			if i == 3 { // a patch by a command
				c.Kind, c.Command, c.Paths = agent.ToolEdit, "", []string{"a.txt"}
			}
			w.observe(agent.Event{Kind: agent.EventToolResult, Call: &c})
		}
		return w.write("tests/b", "pass")
	})
	b.launch()
	b.work()
	if out := b.outcomes()[1]; out.Sight != agent.SightNative || len(out.Warnings) != 0 {
		t.Errorf("outcome %+v", out)
	}
}

// TestHooksUnused: a hook that was never run makes nothing native.
func TestHooksUnused(t *testing.T) {
	t.Parallel()
	b := newHooked(t, loop.EngineConfig{}, write("tests/b", "pass"))
	b.launch()
	b.work()
	if out := b.outcomes()[1]; out.Sight != agent.SightObserved {
		t.Errorf("outcome %+v", out)
	}
}

// TestHooksInterrupted: calls of a turn that the process did not survive are kept, once;
// who asks after its end gets no consent.
func TestHooksInterrupted(t *testing.T) {
	t.Parallel()
	var b *bench
	var late []string
	b = newHooked(t, loop.EngineConfig{}, func(w *turn) error {
		if _, _, err := w.calls("1", "git reset --hard", nothing); err != nil {
			return err
		}
		late = w.hook
		b.halt <- struct{}{}
		<-w.ctx.Done()
		return agent.Stopped(w.ctx)
	}, func(w *turn) error {
		c := agent.ToolCall{ID: "9", Name: "Bash", Kind: agent.ToolExecute, Command: "ls"}
		if a, err := vendorhook.Ask(w.ctx, late[len(late)-1],
			&vendorhook.Event{Name: vendorhook.PreToolUse, Dir: w.dir, Call: &c}); err == nil {
			t.Errorf("the line of the turn before answers %+v", a)
		}
		_, _, err := w.calls("1", "git clean -fd", nothing)
		return errors.Join(err, w.write("tests/b", "pass"))
	})
	b.launch()
	if l := b.work(); l.Step != "act" {
		t.Fatalf("%s", show(l))
	}
	path := filepath.Join(b.loops, loop.ID(&b.tree), "tool-calls.jsonl")
	text, err := os.ReadFile(path)
	b.ok(err)
	b.ok(os.WriteFile(path, append(text, `{"what":"asked","tool":"B`...), 0o600)) // torn by the crash
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Fatalf("%s", show(l))
	}
	var targets []string
	for _, k := range b.outcomes()[1].Risky {
		targets = append(targets, k.Target)
	}
	if !slices.Equal(targets, []string{"git reset --hard", "git clean -fd"}) || b.outcomes()[1].Denied != 2 ||
		len(b.events(loop.EventRisky)) != 2 {
		t.Errorf("kept: %q, %+v", targets, b.outcomes()[1])
	}
}

// TestCallIsLookedAt: an agent that asks over its protocol gets the report with the next prompt
// what a risky call lost.
func TestCallIsLookedAt(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		c := agent.ToolCall{ID: "1", Kind: agent.ToolDelete, Paths: []string{"x_test.go"}, Status: agent.ToolPending}
		if d := w.decide(w.ctx, c); !d.Allow {
			t.Errorf("%+v", d)
		}
		err := w.remove("x_test.go")
		c.Status = agent.ToolCompleted
		w.observe(agent.Event{Kind: agent.EventToolResult, Call: &c})
		b.ok(err)
		return &agent.Error{Kind: agent.KindOverflow, Msg: "full"} // another session goes on
	}, func(w *turn) error { return errors.Join(w.write("x_test.go", testX), w.write("tests/b", "pass")) })
	b.put("x_test.go", testX)
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	if prompt := b.agent.prompts[1]; !strings.Contains(prompt, "Your last call") || !strings.Contains(prompt, "TestX") {
		t.Errorf("the next prompt: %s", prompt)
	}
	if risky := b.outcomes()[1].Risky; len(risky) != 1 || risky[0].After == nil || risky[0].After.TestsAfter != 0 {
		t.Errorf("kept: %+v", risky)
	}
}
