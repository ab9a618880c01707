package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// A loop and its tree are made together or not at all, and a loop that began
// elsewhere comes with what is known of that.
func TestBeginning(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx, records := t.Context(), record.New(s)
		create := func(b *record.Beginning, key string) (perdure.Tree, error) {
			return s.CreateTree(ctx, perdure.TreeSpec{Kind: perdure.KindLoop, IdempotencyKey: key,
				Root: perdure.TaskSpec{Prompt: "Fix it"}, InTx: b.InTx})
		}
		first := record.Beginning{Loop: record.Loop{Place: ":/x", Status: record.Paused, Step: "begin", Iteration: 7,
			State: json.RawMessage(`{}`)},
			Iterations: []record.Iteration{{Number: 2, Status: record.IterationKept, Data: json.RawMessage(`{}`)},
				{Number: 7, Status: record.IterationReverted, Data: json.RawMessage(`{}`)}},
			Events: []record.Event{{Kind: record.EventImported, Data: map[string]any{"iterations": 2}}}}
		tree, err := create(&first, "")
		if err != nil {
			t.Fatal(err)
		}
		l, err := records.Loop(ctx, tree.ID)
		if err != nil || l.Iteration != 7 || l.Status != record.Paused {
			t.Errorf("loop %+v, %v", l, err)
		}
		list, err := records.Iterations(ctx, tree.ID, 0, 10)
		if err != nil || len(list) != 2 || list[0].Task != tree.Root || list[1].Status != record.IterationReverted {
			t.Errorf("iterations %+v, %v", list, err)
		}
		events, err := s.Events(ctx, perdure.EventFilter{Tree: tree.ID})
		if err != nil || events[len(events)-2].Kind != record.EventImported ||
			events[len(events)-1].Kind != perdure.EventLogRows {
			t.Errorf("events %+v, %v", events, err)
		}

		count := func() int {
			t.Helper()
			trees, err := s.Trees(ctx, perdure.TreeFilter{})
			if err != nil {
				t.Fatal(err)
			}
			return len(trees)
		}
		if _, err := create(&first, ""); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("a second loop in the folder: %v", err)
		}
		bad := first
		bad.Loop.Place = ":/y"
		bad.Iterations = []record.Iteration{first.Iterations[0], {Number: 3, Status: record.IterationKept,
			Data: json.RawMessage(`{`)}}
		if _, err := create(&bad, ""); perdure.CodeOf(err) != perdure.CodeInvalid {
			t.Errorf("an iteration that is no JSON: %v", err)
		}
		failed := errors.New("failed")
		_, err = s.CreateTree(ctx, perdure.TreeSpec{Kind: perdure.KindLoop, Root: perdure.TaskSpec{Prompt: "Fix it"},
			InTx: func(context.Context, *perdure.WriteTx, *perdure.Tree) error { return failed }})
		if !errors.Is(err, failed) {
			t.Errorf("an error that is not the store's: %v", err)
		}
		if n := count(); n != 1 {
			t.Errorf("%d trees, want the first alone", n)
		}

		second := record.Beginning{Loop: record.Loop{Place: ":/z", Status: record.Running, Step: "begin",
			State: json.RawMessage(`{}`)}}
		a, err := create(&second, "key")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := create(&second, "key"); err != nil || b.ID != a.ID || count() != 2 {
			t.Errorf("again with the same key: %v, %v", b.ID, err)
		}
	})
}
