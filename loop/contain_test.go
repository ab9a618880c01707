package loop_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// attacks makes the check pass, removes a test and reports that the guard was killed.
func attacks(w *turn) error {
	err := errors.Join(w.write("tests/b", "pass"), w.write("new", "x"), w.remove("tests/a"))
	return errors.Join(err, &agent.Error{Kind: agent.KindGuardLost, Msg: "scripted"})
}

// contained checks that the loop waits at a gate with the files from before, and returns
// the gate.
func (b *bench) contained(l record.Loop) perdure.GateQuestion {
	b.Helper()
	gates, err := b.store.Gates(b.Context(), b.tree.ID)
	b.ok(err)
	if l.Step != "gate" || len(gates) != 1 || gates[0].Kind != perdure.GateRecovery || b.statuses() != "reverted" {
		b.Fatalf("%s\niterations %s, gates %+v", show(l), b.statuses(), gates)
	}
	q, err := gates[0].ParseQuestion()
	b.ok(err)
	files := b.read("tests/a") + " " + b.read("tests/b") + " " + b.read("new")
	if files != "pass fail " {
		b.Errorf("the files are %q", files)
	}
	out := b.outcomes()[1]
	if !out.GuardLost || !out.Check.Skipped || out.Check.Passed || !strings.HasPrefix(out.AgentError, "guard_lost: ") {
		b.Errorf("the record is %+v", out)
	}
	return q
}

// TestGuardLost: an agent that kills its guard has its iteration reverted without a check,
// and is not asked again before a person decides, whatever the settings.
func TestGuardLost(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *config.Config){
		"default":    func(*config.Config) {},
		"unattended": func(c *config.Config) { c.Unattended = true },
		"plain":      func(c *config.Config) { c.Plain = true },
		"fallback":   func(c *config.Config) { c.Fallback, c.MaxRetries = []string{"other"}, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, attacks, write("tests/b", "pass"))
			b.launch(change)
			q := b.contained(b.work())
			for _, want := range []string{"guard_lost: ", "without the\nresult of the check", "3 files: ", "tests/a"} {
				if !strings.Contains(q.Text, want) {
					t.Errorf("the gate does not say %q:\n%s", want, q.Text)
				}
			}
			if !strings.Contains(q.Diff, "tests/a") || b.agent.done != 1 {
				t.Errorf("%d turns; the diff is\n%s", b.agent.done, q.Diff)
			}
			if n := len(b.events(loop.EventReverted)); n != 1 {
				t.Errorf("%d events of a reverted iteration", n)
			}
			b.answer("continue", "do the task only")
			l := b.work()
			if l.Status != record.Completed || l.Iteration != 2 || b.read("tests/a") != "pass" {
				t.Errorf("%s", show(l))
			}
			p := b.agent.prompts[1]
			if !strings.Contains(p, "do the task only") || !strings.Contains(p, "Iteration 1 was reverted") {
				t.Errorf("the prompt does not name it:\n%s", p)
			}
			b.sound()
		})
	}
}

// TestGuardLostThenAborted: no iteration is left to select.
func TestGuardLostThenAborted(t *testing.T) {
	t.Parallel()
	b := newBench(t, attacks)
	b.launch()
	b.contained(b.work())
	b.answer("abort", "")
	if l := b.work(); l.Status != record.Aborted || b.read("tests/a") != "pass" || b.read("new") != "" {
		t.Errorf("%s", show(l))
	}
}

// TestGuardLostWhilePausing: a control request does not hide it.
func TestGuardLostWhilePausing(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		b.ask(record.PauseNow)
		<-w.ctx.Done()
		return attacks(w)
	})
	b.launch()
	if l := b.work(); l.Status != record.Paused {
		t.Fatal(show(l))
	}
	b.ask(record.Resume)
	b.contained(b.work())
}

// TestCheckKillsItsGuard: code of the agent that the check runs is contained like the
// agent.
func TestCheckKillsItsGuard(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		return errors.Join(w.write("tests/b", "pass"), w.write("new", "x"))
	}, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Until = "[ ! -e new ] || kill -9 $PPID; " + checkTAP })
	b.contained(b.work())
	b.answer("continue", "")
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// TestFirstCheckKillsItsGuard: before the agent worked, the user has to fix the command.
func TestFirstCheckKillsItsGuard(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	kills := filepath.Join(t.TempDir(), "kills")
	b.ok(os.WriteFile(kills, nil, 0o600))
	b.launch(func(c *config.Config) { c.Until = "[ ! -e '" + kills + "' ] || kill -9 $PPID; " + checkTAP })
	l := b.work()
	if diff := cmp.Diff([]any{record.Paused, "baseline", 0}, []any{l.Status, l.Step, l.Iteration}); diff != "" ||
		!strings.Contains(string(l.State), "killed the guard process") {
		t.Fatalf("%s\n%s", diff, show(l))
	}
	b.ok(os.Remove(kills))
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s", show(l))
	}
}
