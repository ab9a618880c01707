package loop_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// TestPlain: with detection off nothing is a regression, no gate opens, and
// what the last iteration left stays, also where an earlier one was better.
func TestPlain(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t, func(w *turn) error {
		switch n++; n {
		case 1:
			return w.write("tests/c", "pass")
		case 2:
			return errors.Join(w.remove("tests/a"), w.remove("tests/c"), w.write("go.mod", "module x"))
		}
		return nil // three times the same: not even that opens a gate
	})
	b.launch(func(c *config.Config) { c.Plain, c.MaxIterations = true, 6 })
	l := b.work()
	if l.Status != record.Failed || l.Iteration != 6 {
		t.Fatal(show(l))
	}
	if b.read("tests/c") != "" || b.read("tests/a") != "" {
		t.Error("files of an earlier iteration were brought back")
	}
	for _, o := range b.outcomes() {
		if len(o.Regressions) > 0 || o.Diff != nil {
			t.Errorf("iteration %d was compared: %+v", o.Iteration, o.Regressions)
		}
	}
	if gates, err := b.store.Gates(t.Context(), b.tree.ID); err != nil || len(gates) > 0 {
		t.Errorf("gates: %+v, %v", gates, err)
	}
	if s, err := state.Read(l.State); err != nil || s.Selected != 6 ||
		!strings.Contains(s.SelectedReason, "supervision is off") {
		t.Errorf("standing %+v, %v", s, err)
	}
	b.sound()
}

// TestPlainEnds: the loop ends with the first check that passes.
func TestPlainEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return w.remove("tests/b") })
	b.launch(func(c *config.Config) { c.Plain = true })
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Error(show(l))
	}
}

// TestRequireVerification: without an iteration that passes none is the best.
func TestRequireVerification(t *testing.T) {
	t.Parallel()
	for _, require := range []bool{false, true} {
		scores, n := []string{"90", "40"}, 0
		b := newBench(t, func(w *turn) error { n++; return w.write("score", scores[n-1]) })
		b.launch(func(c *config.Config) {
			c.MaxIterations, c.Scorer, c.Selection, c.RequireVerification = 2, "cat score", config.HighestQuality, require
		})
		if l := b.work(); l.Status != record.Failed {
			t.Fatal(show(l))
		}
		if got, want := b.read("score"), map[bool]string{false: "90", true: "40"}[require]; got != want {
			t.Errorf("required %v: the files are those of %s, want %s", require, got, want)
		}
	}
}

func TestRequireVerificationPrefers(t *testing.T) {
	t.Parallel()
	high, low := 90, 50
	passed, failed := &state.Outcome{Quality: &low, Check: state.Check{Passed: true}}, &state.Outcome{Quality: &high}
	for _, selection := range []config.Selection{config.HighestQuality, config.HighestQualityVerified,
		config.MostRecentAboveThreshold} {
		c := &config.Config{Selection: selection, QualityThreshold: 70, RequireVerification: true}
		if !state.Prefers(c, passed, failed) || state.Prefers(c, failed, passed) {
			t.Errorf("%s: what is not verified stands over what is", selection)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	parse := func(text string) config.Config {
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	from := parse(`{"task":"t","until":"u","workspace":"/w","agent":"a","timeout":3600000000000}`)
	to := parse(`{"task":"t","until":"u","workspace":"/w","agent":"b c","max_iterations":20,"timeout":-1,"gate_timeout":5400000000000,"budget_usd":1.5,
		"fallback":["x","y"],"keep_last":true,"quality_threshold":-1,"given":["agent"]}`)
	var lines []string
	for _, c := range config.Changes(&from, &to) {
		lines = append(lines, c.String())
	}
	want := []string{"agent a -> b c", "fallback [] -> [x, y]", "max_iterations 10 -> 20", "timeout 1h -> none",
		"quality_threshold 70 -> none",
		"keep_last false -> true", "budget_usd none -> 1.5", "gate_timeout none -> 1h30m"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if again := config.Changes(&to, &to); len(again) > 0 {
		t.Errorf("no change: %v", again)
	}
	from.Take(&to, "max_iterations", "keep_last", "nothing")
	if from.MaxIterations != 20 || !from.KeepLast || from.Agent != "a" {
		t.Errorf("taken: %+v", from)
	}
	if got := fmt.Sprint(to.Fields("max_iterations", "plain")); got != "map[max_iterations:20 plain:false]" {
		t.Errorf("fields: %s", got)
	}
	for _, name := range config.FieldNames() {
		if name == "" || strings.ToLower(name) != name {
			t.Errorf("a field has the name %q", name)
		}
	}
}

// TestCriticalIsRetried: a critical regression goes to a person, unless it may be
// recovered from; deleted tests always do.
func TestCriticalIsRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   string
		retry  bool
		status string
	}{{"feature_removal", false, "gate"}, {"feature_removal", true, "ended"}, {"test_deletion", true, "gate"}} {
		b := newBench(t, write("x", "1"), write("tests/b", "pass"))
		b.report(c.kind)
		b.launch(func(cfg *config.Config) { cfg.RetryCritical = c.retry })
		if l := b.work(); l.Step != c.status {
			t.Errorf("%s, retried %v: %s", c.kind, c.retry, show(l))
		}
	}
}

// report makes a handler report a critical regression in the first iteration.
func (b *bench) report(kind string) {
	b.Helper()
	tell := hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
		reply := hook.NewReply(hook.Allow, "")
		if m.Metadata.Iteration == 1 {
			reply = hook.NewReply(hook.Warn, "something is gone")
			reply.Metadata.RegressionType, reply.Metadata.Severity = hook.RegressionType(kind), hook.Critical
		}
		return reply, nil
	})
	var err error
	b.engine, err = loop.New(b.Context(), loop.EngineConfig{Store: b.store, Agents: b.agent,
		Dir:      filepath.Join(b.TempDir(), "loops"),
		Handlers: []hook.Registration{{Hook: hook.PostIteration, Name: "test", Handler: tell}}})
	b.ok(err)
}

// TestWarning: exceeding a time limit is reported by an event, and stays with
// the iteration.
func TestWarning(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.DetectionBudget = 1 })
	b.work()
	events, err := b.store.Events(t.Context(), perdure.EventFilter{Tree: b.tree.ID})
	b.ok(err)
	var written []string
	for _, e := range events {
		// On a busy machine the engine may also exceed its share of the time.
		if e.Kind == loop.EventWarning && strings.Contains(string(e.Data), string(hook.WarnLatency)) {
			written = append(written, string(e.Data))
		}
	}
	kept := b.outcomes()[1].Warnings
	if len(written) != 1 || len(kept) == 0 || !strings.Contains(written[0], kept[0]) ||
		!strings.Contains(written[0], `"iteration":1`) {
		t.Errorf("events %q, kept %q", written, kept)
	}
}
