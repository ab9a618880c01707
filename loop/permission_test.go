package loop_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// refuses reports that the agent's own permissions denied a command.
func (w *turn) refuses(id, line string) {
	w.observe(agent.Event{Kind: agent.EventToolResult, Text: "not allowed", Call: &agent.ToolCall{ID: id, Name: "Bash",
		Kind: agent.ToolExecute, Command: line, Status: agent.ToolDenied}})
}

// field returns a field of an event.
func field(t *testing.T, e *perdure.Event, name string) any {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data[name]
}

// TestPermissionEdits: under this permission an agent may edit files and run the check and
// its parts, whether it asks or has rules of its own; what was denied is counted, and reported
// while the turn goes on.
func TestPermissionEdits(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error {
		for line, want := range map[string]bool{"make check X=1": true, "make check | tail -3": true,
			"make check && touch x": false, "curl x": false} {
			if d := w.decide(w.ctx, execute(line)); d.Allow != want {
				t.Errorf("%s: %+v", line, d)
			}
		}
		if d := w.decide(w.ctx, agent.ToolCall{ID: "e", Kind: agent.ToolEdit, Paths: []string{"a.go"}}); !d.Allow {
			t.Errorf("edit: %+v", d)
		}
		w.refuses("1", "go run x")
		w.refuses("2", "go run x")
		if n := len(b.events(loop.EventDenied)); n != 3 {
			t.Errorf("%d events during the turn, want 3", n)
		}
		if !slices.Contains(w.commands, agent.CommandRule{Line: "make check", More: true}) {
			t.Errorf("commands %+v", w.commands)
		}
		return w.write("tests/b", "pass")
	})
	b.launch(func(c *config.Config) {
		c.Until, c.Permission, c.Model = "make check >/dev/null 2>&1\n"+checkTAP, agent.PermissionEdits, "big"
	})
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	got := b.outcomes()[1].Unpermitted
	slices.Sort(got.Calls)
	want := state.Unpermitted{Count: 4, Calls: []string{"curl x", "go run x", "make check && touch x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	hints := 0
	for _, e := range b.events(loop.EventDenied) {
		if hint, ok := field(t, &e, "hint").(string); ok && strings.Contains(hint, "--permission all") {
			hints++
		}
	}
	if hints != 1 {
		t.Errorf("%d hints", hints)
	}
	if !slices.Contains(b.agent.specs, loop.AgentSpec{Name: "scripted", Model: "big", Permission: agent.PermissionEdits}) {
		t.Errorf("agents asked for: %+v", b.agent.specs)
	}
}

// TestPermissionOthers: read changes nothing; with all and own only the table of risks
// refuses.
func TestPermissionOthers(t *testing.T) {
	t.Parallel()
	for permission, want := range map[agent.Permission]bool{agent.PermissionRead: false, agent.PermissionAll: true,
		agent.PermissionOwn: true} {
		t.Run(string(permission), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(w *turn) error {
				for _, c := range []agent.ToolCall{execute("touch x"), {ID: "e", Kind: agent.ToolEdit, Paths: []string{"a.go"}}} {
					if d := w.decide(w.ctx, c); d.Allow != want {
						t.Errorf("%s %s: %+v", c.Kind, c.Command, d)
					}
				}
				if d := w.decide(w.ctx, execute("git reset --hard")); d.Allow {
					t.Error("a risky call is allowed")
				}
				return w.write("tests/b", "pass")
			})
			b.launch(func(c *config.Config) { c.Permission = permission })
			if l := b.work(); l.Status != record.Completed {
				t.Fatalf("%s", show(l))
			}
		})
	}
}

// TestAgentWaits: waits that the agent makes by itself are reported while the turn goes on.
func TestAgentWaits(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var b *bench
	b = newBench(t, func(w *turn) error {
		w.observe(agent.Event{Kind: agent.EventRateLimited, Text: "overloaded", Attempt: 2, Of: 3, Until: until})
		events := b.events(loop.EventAgentWaits)
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		for name, want := range map[string]any{"attempt": 2.0, "of": 3.0, "message": "overloaded", "iteration": 1.0,
			"until": until.Format(time.RFC3339)} {
			if got := field(t, &events[0], name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		return w.write("tests/b", "pass")
	})
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
}

// TestRiskyCallDeniedByPermissions: a risky call that the agent reported, and that its own permissions then
// denied, is recorded as denied, not as observed.
func TestRiskyCallDeniedByPermissions(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		for id, line := range map[string]string{"1": "rm -rf tests", "2": "rm -rf other"} {
			call := execute(line)
			call.ID, call.Name, call.Status = id, "Bash", agent.ToolRunning
			w.observe(agent.Event{Kind: agent.EventToolCall, Call: &call})
		}
		w.refuses("1", "rm -rf tests")
		return w.write("tests/b", "pass")
	})
	b.launch(func(c *config.Config) { c.Permission = agent.PermissionEdits })
	b.work()
	answers := map[string]any{}
	for _, r := range b.outcomes()[1].Risky {
		answers[r.CallID] = string(r.Answer)
	}
	if want := map[string]any{"1": "block", "2": ""}; !cmp.Equal(want, answers) {
		t.Errorf("answers %v, want %v", answers, want)
	}
}

// TestHooksSwitchedOff: a loop that may run all calls is refused if the hooks of its agent are switched
// off, with the reason.
func TestHooksSwitchedOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.restart(loop.EngineConfig{Hook: []string{"perdure", "hook"}})
	b.agent.addresses = func() (map[string]string, error) { return nil, nil }
	b.agent.off = "disableAllHooks is set in settings.json"
	cfg := config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "scripted", Permission: agent.PermissionAll}
	_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: cfg})
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), "disableAllHooks is set") ||
		!strings.Contains(perdure.HintOf(err), "--permission edits") {
		t.Errorf("launched: %v", err)
	}
	cfg.Permission = agent.PermissionEdits
	if _, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: cfg}); err != nil {
		t.Error(err)
	}
}
