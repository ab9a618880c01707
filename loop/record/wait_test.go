package record_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// TestWaitAtOneGate: tasks that come at once wait at one gate, nobody claims them,
// and each hears its own answer.
func TestWaitAtOneGate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		const n = 12
		ctx, records := t.Context(), record.New(store)
		tree, leases, claim := waiting(t, store, n)
		gates, err := records.OpenGates(ctx)
		if err != nil || len(gates) != 1 || gates[0].Waiting != n || gates[0].Tree != tree.ID || !gates[0].Run {
			t.Fatalf("gates = %+v, %v", gates, err)
		}
		if got := claim(); len(got) != 0 {
			t.Errorf("%d tasks are claimed that wait", len(got))
		}
		if busy, err := records.AtWork(ctx, tree.ID); busy || err != nil {
			t.Errorf("at work: %v, %v", busy, err)
		}
		sound(t, store, tree.ID, n+1)
		one := leases[3].Task.ID
		g, err := records.Answer(ctx, tree.ID, 1, record.Decision{Answer: record.AnswerManual, Text: "mine", Task: one, By: "me"})
		if err != nil || g.AnsweredAt != nil {
			t.Fatalf("answer for one: %+v, %v", g, err)
		}
		if got := claim(); len(got) != 1 || got[0].Task.ID != one || got[0].Task.Attempts != 1 {
			t.Fatalf("claimed after the answer for one: %+v", got)
		}
		sound(t, store, tree.ID, n)
		if g, err = records.Answer(ctx, tree.ID, 1, record.Decision{Answer: record.AnswerSkip, By: "you"}); err != nil || g.AnsweredAt == nil {
			t.Fatalf("answer for the rest: %+v, %v", g, err)
		}
		if got := claim(); len(got) != n-1 {
			t.Errorf("%d tasks are claimed after the answer", len(got))
		}
		sound(t, store, tree.ID, 1)
		for _, l := range leases {
			answer, by, text, err := records.Decided(ctx, l.Task.ID)
			want := [3]string{record.AnswerSkip, "you", "no model"}
			if l.Task.ID == one {
				want = [3]string{record.AnswerManual, "me", "mine"}
			}
			if got := [3]string{answer, by, text}; got != want || err != nil {
				t.Errorf("task %s: %q, %v; want %q", l.Task.ID, got, err, want)
			}
		}
	})
}

// sound checks the store, and how many tasks of a tree wait.
func sound(t *testing.T, store *perdure.Store, tree perdure.TreeID, waiting int64) {
	t.Helper()
	if problems, err := store.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store is not sound: %v %v", problems, err)
	}
	if p, err := store.Progress(t.Context(), tree); err != nil || p.Waiting != waiting {
		t.Errorf("%d tasks wait, want %d: %v", p.Waiting, waiting, err)
	}
}

// TestWaitTakesALease: who lost its lease opens no gate.
func TestWaitTakesALease(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		records := record.New(store)
		tree, leases, _ := waiting(t, store, 2)
		if err := records.Wait(t.Context(), leases[0], "again"); !errors.Is(err, perdure.ErrLeaseLost) {
			t.Errorf("wait without a lease: %v", err)
		}
		if list, err := records.Gates(t.Context(), tree.ID); err != nil || len(list) != 1 {
			t.Errorf("gates = %+v, %v", list, err)
		}
	})
}

// waiting makes a tree with n tasks that all wait at its gate.
func waiting(t *testing.T, store *perdure.Store, n int) (perdure.Tree, []*perdure.Lease, func() []*perdure.Lease) {
	t.Helper()
	ctx, records := t.Context(), record.New(store)
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
		all.Go(func() { errs[i] = records.Wait(ctx, l, "no model") })
	}
	all.Wait()
	for _, err := range errs {
		ok(err)
	}
	return tree, leases, claim
}
