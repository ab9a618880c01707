package loop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// levels are those of the iterations, in order.
func (b *bench) levels() string {
	b.Helper()
	var levels []string
	for _, o := range b.outcomes()[1:] {
		levels = append(levels, string(o.Level))
	}
	return strings.Join(levels, " ")
}

// TestRemindersRise: with the iterations, and at once after a regression that a
// person rejected; each change is kept with its reason, and the prompt names what
// fails.
func TestRemindersRise(t *testing.T) {
	t.Parallel()
	n := 0
	other := func(w *turn) error { // another failure each time, so that it is not a repetition
		n++
		return w.write("tests/b", fmt.Sprint("fail", n))
	}
	b := newBench(t, other, other, other, other, other, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.PlateauPercent = 0.001 })
	for l := b.work(); !l.Status.Ended(); l = b.work() {
		gates, err := b.store.OpenGates(t.Context())
		b.ok(err)
		_, err = b.store.AnswerGate(t.Context(), b.tree.ID, gates[0].Number, perdure.GateDecision{Answer: "continue"})
		b.ok(err)
	}
	// The third follows the same error twice; then a person was asked, and the quality of three
	// iterations had not changed.
	if got := b.levels(); got != "MINIMAL MINIMAL AGGRESSIVE AGGRESSIVE AGGRESSIVE AGGRESSIVE" {
		t.Errorf("levels: %s", got)
	}
	if !strings.Contains(b.agent.prompts[0], "# Reminder") || !strings.Contains(b.agent.prompts[0], "b fails") {
		t.Errorf("the first prompt:\n%s", b.agent.prompts[0])
	}
	changes := b.events(loop.EventLevel)
	if len(changes) < 2 || !strings.Contains(string(changes[1].Data), ` 2 times"`) {
		t.Errorf("events %+v", changes)
	}
}

func TestRejectedIsAggressive(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/a", "skip"), write("tests/b", "pass"))
	var asked []string
	b.restart(loop.EngineConfig{Handlers: []hook.Registration{
		{Hook: hook.ReinforcementEscalation, Name: "look", Handler: noting(&asked, "to_level")}}})
	b.launch()
	b.work()
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "reject"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	if got := b.levels(); got != "MINIMAL AGGRESSIVE" {
		t.Errorf("levels: %s", got)
	}
	if len(asked) != 1 || asked[0] != "AGGRESSIVE" {
		t.Errorf("handlers were told %q", asked)
	}
	if !strings.Contains(b.agent.prompts[1], "Made worse: 1 test newly skipped") {
		t.Errorf("the prompt does not name what got worse:\n%s", b.agent.prompts[1])
	}
}

func TestRemindersOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Reinforcement = hook.LevelOff })
	if l := b.work(); l.Status != record.Completed || strings.Contains(b.agent.prompts[0], "# Reminder") {
		t.Errorf("%s\n%s", show(l), b.agent.prompts[0])
	}
}

// TestHonestExit: an agent that reports that the tests are wrong is not a failure: a
// person accepts it, or the loop goes on.
func TestHonestExit(t *testing.T) {
	t.Parallel()
	say := func(w *turn) error {
		w.text = "I looked at it.\n\n**Honest exit:** test b wants 2+2 to be 5\nsee tests/b"
		return w.write("notes", w.prompt)
	}
	for answer, want := range map[string]record.Status{"accept": record.Failed, "continue": record.Completed} {
		b := newBench(t, say, write("tests/b", "pass"))
		b.launch()
		if l := b.work(); l.Step != "gate" {
			t.Fatalf("%s", show(l))
		}
		gates, err := b.store.OpenGates(t.Context())
		b.ok(err)
		if gates[0].Kind != perdure.GateHonestExit || !strings.Contains(string(gates[0].Question), "2+2 to be 5") {
			t.Errorf("gate %+v", gates[0])
		}
		_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: answer, Reason: "it is meant so"})
		b.ok(err)
		l := b.work()
		if l.Status != want {
			t.Errorf("%s: %s", answer, show(l))
		}
		if answer == "accept" && !strings.Contains(b.reason(), "report was accepted") {
			t.Errorf("reason %q", b.reason())
		}
	}
}

// TestRemindersRefused: a folder without templates is refused before a loop begins.
func TestRemindersRefused(t *testing.T) {
	t.Parallel()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cfg := loop.EngineConfig{Store: store, Agents: noAgents{}, Dir: t.TempDir(), Reminders: t.TempDir()}
	if _, err := loop.New(t.Context(), cfg); perdure.CodeOf(err) != perdure.CodeInvalid ||
		!strings.Contains(err.Error(), cfg.Reminders) {
		t.Errorf("empty folder: %v, want an error with code invalid that names it", err)
	}
	own := filepath.Join(cfg.Reminders, "minimal.md.tmpl")
	if err := os.WriteFile(own, []byte("Keep the tests.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loop.New(t.Context(), cfg); err != nil {
		t.Errorf("folder with one template: %v", err)
	}
}

type noAgents struct{}

func (noAgents) Agent(string) (agent.Agent, error) { return nil, errors.New("there is none") }
