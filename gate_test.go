package perdure_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestWaitAtOneGate: tasks that come at once wait at one gate, are not claimed, and
// get their own answers.
func TestWaitAtOneGate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		const n = 12
		ctx := t.Context()
		tree, leases, claim := waiting(t, store, n)
		gates, err := store.OpenGates(ctx)
		if err != nil || len(gates) != 1 || gates[0].Waiting != n || gates[0].Tree != tree.ID || !gates[0].Run {
			t.Fatalf("gates = %+v, %v", gates, err)
		}
		if got := claim(); len(got) != 0 {
			t.Errorf("%d tasks are claimed that wait", len(got))
		}
		if runnable, err := store.Runnable(ctx, tree.ID); runnable || err != nil {
			t.Errorf("runnable: %v, %v", runnable, err)
		}
		stillWaiting(t, store, tree.ID, n+1)
		one := leases[3].Task.ID
		g, err := store.AnswerGate(ctx, tree.ID, 1, perdure.GateDecision{Answer: perdure.AnswerManual, Text: "mine",
			Task: one, By: "me"})
		if err != nil || g.AnsweredAt != nil {
			t.Fatalf("answer for one: %+v, %v", g, err)
		}
		if got := claim(); len(got) != 1 || got[0].Task.ID != one || got[0].Task.Attempts != 1 {
			t.Fatalf("claimed after the answer for one: %+v", got)
		}
		stillWaiting(t, store, tree.ID, n)
		if g, err = store.AnswerGate(ctx, tree.ID, 1, perdure.GateDecision{Answer: perdure.AnswerSkip, By: "you"}); err !=
			nil || g.AnsweredAt == nil {
			t.Fatalf("answer for the rest: %+v, %v", g, err)
		}
		if got := claim(); len(got) != n-1 {
			t.Errorf("%d tasks are claimed after the answer", len(got))
		}
		stillWaiting(t, store, tree.ID, 1)
		for _, l := range leases {
			got, err := l.GateAnswer(ctx)
			want := perdure.GateAnswer{Gate: 1, Answer: perdure.AnswerSkip, By: "you", Why: "no model"}
			if l.Task.ID == one {
				want = perdure.GateAnswer{Gate: 1, Answer: perdure.AnswerManual, By: "me", Text: "mine", Why: "no model"}
			}
			if got != want || err != nil {
				t.Errorf("task %s: %+v, %v; want %+v", l.Task.ID, got, err, want)
			}
		}
	})
}

// stillWaiting checks the store and how many tasks of a tree wait.
func stillWaiting(t *testing.T, store *perdure.Store, tree perdure.TreeID, waiting int64) {
	t.Helper()
	sound(t, store)
	if p, err := store.Progress(t.Context(), tree); err != nil || p.Waiting != waiting {
		t.Errorf("%d tasks wait, want %d: %v", p.Waiting, waiting, err)
	}
}

// TestWaitTakesALease: a lease that was lost opens no gate.
func TestWaitTakesALease(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		tree, leases, _ := waiting(t, store, 2)
		if _, err := leases[0].WaitAtGate(t.Context(), perdure.GateReassignment, runQuestion("again")); !errors.Is(err,
			perdure.ErrLeaseLost) {
			t.Errorf("wait without a lease: %v", err)
		}
		if list, err := store.Gates(t.Context(), tree.ID); err != nil || len(list) != 1 {
			t.Errorf("gates = %+v, %v", list, err)
		}
	})
}

// runQuestion is what the gate of a run asks.
func runQuestion(why string) perdure.GateQuestion {
	q := perdure.GateQuestion{Title: "no model answers", Text: why}
	for _, answer := range []string{perdure.AnswerRetry, perdure.AnswerManual, perdure.AnswerSkip, perdure.AnswerAbandon} {
		q.Options = append(q.Options, perdure.GateOption{Answer: answer})
	}
	return q
}

// waiting makes a tree with n tasks that all wait at its gate.
func waiting(t *testing.T, store *perdure.Store, n int) (perdure.Tree, []*perdure.Lease, func() []*perdure.Lease) {
	t.Helper()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := store.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}})
	ok(err)
	session, err := store.OpenSession(ctx, "test")
	ok(err)
	t.Cleanup(func() { _ = session.Close(ctx) })
	claim := func() []*perdure.Lease {
		t.Helper()
		leases, err := session.Claim(ctx, perdure.ClaimRequest{Max: 100, Trees: []perdure.TreeID{tree.ID}})
		ok(err)
		return leases
	}
	specs := make([]perdure.TaskSpec, n)
	for i := range specs {
		specs[i] = perdure.TaskSpec{Prompt: "c"}
	}
	_, err = claim()[0].Spawn(ctx, specs)
	ok(err)
	leases := claim()
	var all sync.WaitGroup
	errs := make([]error, len(leases))
	for i, l := range leases {
		all.Go(func() { _, errs[i] = l.WaitAtGate(ctx, perdure.GateReassignment, runQuestion("no model")) })
	}
	all.Wait()
	for _, err := range errs {
		ok(err)
	}
	return tree, leases, claim
}

// TestAbandonAtAGate: the answer cancels the tree in the same transaction, and what
// has ended takes no answer.
func TestAbandonAtAGate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		tree, _, claim := waiting(t, store, 3)
		abandon := perdure.GateDecision{Answer: perdure.AnswerAbandon, By: "me"}
		if g, err := store.AnswerGate(t.Context(), tree.ID, 1, abandon); err != nil || g.AnsweredAt == nil {
			t.Fatalf("answer: %+v, %v", g, err)
		}
		if got, err := store.Tree(t.Context(), tree.ID); err != nil || got.State != perdure.Cancelled {
			t.Errorf("the tree is %s, %v", got.State, err)
		}
		if got := claim(); len(got) != 0 {
			t.Errorf("%d tasks are claimed of a tree that was abandoned", len(got))
		}
		stillWaiting(t, store, tree.ID, 0)
		if _, err := store.AnswerGate(t.Context(), tree.ID, 1, abandon); !errors.Is(err, perdure.ErrConflict) {
			t.Errorf("a second answer: %v", err)
		}
	})
}
