package loop_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

func execute(command string) agent.ToolCall {
	return agent.ToolCall{Name: "Bash", Kind: agent.ToolExecute, Command: command}
}

// TestRiskyCalls: what discards work is denied, what writes tests is let through
// with a warning and a snapshot from before it; all of it is kept.
func TestRiskyCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		if d := w.decide(w.ctx, execute("git reset --hard")); d.Allow || !strings.HasPrefix(d.Message, "git reset --hard: ") {
			t.Errorf("discarding work: %+v", d)
		}
		if d := w.decide(w.ctx, execute("sed -i s/a/b/ a_test.go")); !d.Allow ||
			!strings.Contains(d.Message, "a_test.go: ") {
			t.Errorf("writing a test: %+v", d)
		}
		if d := w.decide(w.ctx, execute("go vet ./...")); !d.Allow || d.Message != "" {
			t.Errorf("an ordinary call: %+v", d)
		}
		return w.write("tests/b", "pass")
	})
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	risky := b.outcomes()[1].Risky
	if len(risky) != 2 || risky[0].Answer != risk.Block || risky[0].Snapshot != "" ||
		risky[1].Pattern != risk.WriteTest || risky[1].Snapshot == "" {
		t.Errorf("kept: %+v", risky)
	}
	if b.outcomes()[1].Denied != 1 || len(b.events(loop.EventRisky)) != 2 {
		t.Errorf("outcome %+v", b.outcomes()[1])
	}
}

// TestRollbackSnapshot: the snapshot before a risky call is what was there then.
func TestRollbackSnapshot(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		b := w.write("half.go", "package half")
		w.decide(w.ctx, execute("rm -rf src"))
		return b
	}, write("tests/b", "pass"))
	b.launch()
	b.work()
	var id workspace.ID
	for _, r := range b.outcomes()[1].Risky {
		id = r.Snapshot
	}
	files, err := workspace.Open(workspace.Config{Root: b.dir, Dir: b.loops + "/" + loop.ID(&b.tree) + "/snapshots"})
	b.ok(err)
	if text, err := files.ReadFile(t.Context(), id, "half.go"); err != nil || string(text) != "package half" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRiskGate: what waits for a person is refused until one allowed it.
func TestRiskGate(t *testing.T) {
	t.Parallel()
	var answers []bool
	try := func(w *turn) error {
		answers = append(answers, w.decide(w.ctx, execute("git rm old.go")).Allow)
		if len(answers) == 2 {
			return w.write("tests/b", "pass")
		}
		return w.write("one", "1")
	}
	b := newBench(t, try)
	b.launch(func(c *config.Config) { c.RiskAnswers = map[string]config.RiskAnswer{"git_remove": config.RiskGate} })
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	gates, err := b.store.OpenGates(t.Context())
	b.ok(err)
	if gates[0].Kind != perdure.GateDestructive || !strings.Contains(string(gates[0].Question), "git rm old.go") {
		t.Errorf("gate %+v", gates[0])
	}
	_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "approve"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || len(answers) != 2 || answers[0] || !answers[1] {
		t.Errorf("%s, answers %v", show(l), answers)
	}
	if !strings.Contains(b.agent.prompts[1], "Allowed now: git_remove git rm old.go") {
		t.Errorf("the agent is not told:\n%s", b.agent.prompts[1])
	}
}

// TestObservedCalls: of an agent that does not ask, risky calls are seen.
func TestObservedCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		c := execute("git checkout -- .")
		c.Status = agent.ToolRunning
		w.observe(agent.Event{Kind: agent.EventToolCall, Call: &c})
		w.observe(agent.Event{Kind: agent.EventToolCall, Call: &c}) // told again
		return w.write("tests/b", "pass")
	})
	b.launch()
	b.work()
	if risky := b.outcomes()[1].Risky; len(risky) != 1 || risky[0].Answer != "" || risky[0].Pattern != risk.DiscardWork {
		t.Errorf("kept: %+v", risky)
	}
}

// TestRiskIsTold: handlers of the user hear what the table says of a call.
func TestRiskIsTold(t *testing.T) {
	t.Parallel()
	var levels []string
	b := newBench(t, func(w *turn) error {
		w.decide(w.ctx, execute("sed -i s/a/b/ a_test.go"))
		return w.write("tests/b", "pass")
	})
	b.restart(loop.EngineConfig{Handlers: []hook.Registration{
		{Hook: hook.PreToolCall, Name: "look", Handler: noting(&levels, "risk_level")}}})
	b.launch()
	b.work()
	if len(levels) != 1 || levels[0] != "high" {
		t.Errorf("told: %q", levels)
	}
}
