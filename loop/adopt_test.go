package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// adopt takes in a loop of which iterations 2 and 7 are known, and 8 was the last.
func (b *bench) adopt() error {
	b.Helper()
	cfg := config.Config{Task: "Make the tests pass!", Until: checkTAP, Workspace: b.dir, Agent: "scripted",
		MaxIterations: 20}
	a := loop.Adoption{Config: cfg, Past: record.Past{LoopID: "ralph-fix-tests-a1b2c3d4", Iteration: 8}}
	ref, err := b.store.PutBlob(b.Context(), strings.NewReader(`{"document":1}`))
	b.ok(err)
	a.Past.Document, a.Blobs = ref.Hash, []perdure.BlobRef{ref}
	for n, status := range map[int]record.IterationStatus{2: record.IterationKept, 7: record.IterationReverted} {
		quality := 99
		o := state.Outcome{Iteration: n, Imported: true, Quality: &quality, Check: state.Check{Passed: n == 2, Exit: -1}}
		if n == 7 {
			o.Regressions = []regression.Regression{{Type: "test_deletion", Severity: "critical", Text: "two tests are gone"}}
		}
		it, err := o.Row(status, 0)
		b.ok(err)
		ended := time.Now()
		it.EndedAt = &ended
		a.Iterations = append(a.Iterations, *it)
	}
	b.tree, err = b.engine.Adopt(b.Context(), a)
	return err
}

// TestAdopt: a loop that began elsewhere goes on here when it is resumed, with the
// next number and the files as they are, and told of what was before.
func TestAdopt(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("notes", "thinking"), write("tests/b", "pass"))
	b.ok(b.adopt())
	if l := b.work(); l.Status != record.Paused || l.Iteration != 8 || b.agent.done != 0 {
		t.Fatalf("before it was resumed: %s after %d turns", show(l), b.agent.done)
	}
	b.ask(record.Resume)
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 10 || b.agent.done != 2 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	if got := b.statuses(); got != "kept reverted kept kept" {
		t.Errorf("iterations became %s", got)
	}
	// What fails is what the check of here says, not that of then.
	for _, want := range []string{"- b", "Iteration 7 (reverted", "two tests are gone",
		"Iteration 2 (the check passed"} {
		if !strings.Contains(b.agent.prompts[0], want) {
			t.Errorf("the first prompt does not tell %q:\n%s", want, b.agent.prompts[0])
		}
	}
	// The best of then has no files here: the best of here is left.
	standing, err := state.Read(b.row().State)
	b.ok(err)
	if standing.Selected != 10 || standing.Past.LoopID != "ralph-fix-tests-a1b2c3d4" || standing.Past.Iteration != 8 {
		t.Errorf("%+v", standing)
	}
	doc, err := b.records.Document(t.Context(), b.tree.ID)
	b.ok(err)
	if string(doc) != `{"document":1}` {
		t.Errorf("the document became %s", doc)
	}
	b.sound()
}

// Aborted before it went on, it leaves the files alone: of the beginning nothing
// is known.
func TestAdoptedAndAborted(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.ok(b.adopt())
	b.ask(record.Revert)
	if l := b.work(); l.Status != record.Aborted || b.read("tests/b") != "fail" || b.agent.done != 0 {
		t.Errorf("aborted before it went on: %s", show(l))
	}
}

// Two loops in one folder are refused, and nothing is left of the second.
func TestAdoptIntoATakenFolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok(b.adopt())
	first := b.tree
	if err := b.adopt(); perdure.CodeOf(err) != perdure.CodeConflict ||
		!strings.Contains(perdure.HintOf(err), loop.ID(&first)) {
		t.Errorf("again: %v (%s)", err, perdure.HintOf(err))
	}
	trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{})
	b.ok(err)
	if len(trees) != 1 {
		t.Errorf("%d trees are there, want one", len(trees))
	}
}
