package perdure_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// The state of a tree exists with the tree: its prompt and its Final are in the history, and its
// initial checkpoint is before every change.
func TestStateExistsWithItsTree(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "find it"}})
		ref := treeState(r.tree)
		info, err := s.State(t.Context(), ref)
		if err != nil || info.ID == 0 || info.Variables != 2 || info.Mutations != 2 || info.Checkpoints != 1 ||
			!info.CreatedAt.Equal(r.tree.CreatedAt) {
			t.Fatalf("state %+v, %v", info, err)
		}
		history, err := s.History(t.Context(), ref, perdure.HistoryFilter{})
		if err != nil || len(history) != 2 || history[1].Name != perdure.VarPrompt || history[0].Name != perdure.VarFinal ||
			history[1].Source != "user_input" || string(history[1].New) != `"find it"` || string(history[0].New) != "null" {
			t.Fatalf("history %+v, %v", history, err)
		}
		list, err := s.Checkpoints(t.Context(), ref)
		if err != nil || len(list) != 1 || list[0].Name != "initial_state" || int64(list[0].ID) < int64(history[0].ID) {
			t.Fatalf("checkpoints %+v, %v", list, err)
		}
		states, err := s.States(t.Context(), r.tree.ID)
		if err != nil || len(states) != 1 || states[0].ID != info.ID {
			t.Errorf("states %+v, %v", states, err)
		}
		if rec, err := s.StateRecord(t.Context(), ref); err != nil || len(rec.Versions) != 2 || len(rec.Checkpoints) != 1 {
			t.Errorf("record %+v, %v", rec, err)
		}
		setVar(t, s, ref, "found", "1")
		rollback(t, s, ref, "initial_state")
		if vars := values(t, s, ref); len(vars) != 0 {
			t.Errorf("after the rollback: %v", vars)
		}
		complete(t, r.root, "here")
		wantVar(t, s, ref, perdure.VarFinal, `"here"`)
		sound(t, s)
	})
}

// A repeated creation, which finds the first tree, creates no second state.
func TestRepeatedCreationHasOneState(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for range 2 {
			createTree(t, s, perdure.TreeSpec{IdempotencyKey: "k"})
		}
		states := 0
		trees, err := s.Trees(t.Context(), perdure.TreeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range trees {
			list, err := s.States(t.Context(), trees[i].ID)
			if err != nil {
				t.Fatal(err)
			}
			states += len(list)
		}
		if len(trees) != 1 || states != 1 {
			t.Errorf("%d trees with %d states", len(trees), states)
		}
		sound(t, s)
	})
}
