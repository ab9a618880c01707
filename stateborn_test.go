package perdure_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
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

// Trees that are created in one transaction have their states, their own rows and, where the
// creation writes more, what it wrote. A creation that repeats another one of the same
// transaction returns its tree.
func TestStatesOfOneTransaction(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		const n = 70 // more than one statement inserts
		trees := createTogether(t, s, n, func(i int) perdure.TreeSpec {
			spec := perdure.TreeSpec{Kind: "run", LateState: i%7 == 1,
				Root: perdure.TaskSpec{Prompt: "find " + strconv.Itoa(i)}}
			switch i % 7 {
			case 2, 3:
				spec.IdempotencyKey = "key-" + strconv.Itoa(i/7)
			case 4:
				spec.InTx = limitCalls
			}
			return spec
		})
		distinct := make(map[perdure.TreeID]bool)
		for i, tree := range trees {
			distinct[tree.ID] = true
			checkBorn(t, s, i, tree)
		}
		if len(distinct) != n-n/7 {
			t.Errorf("%d trees of %d creations", len(distinct), n)
		}
		sound(t, s)
	})
}

// limitCalls limits the calls of a new tree in the transaction that creates it.
func limitCalls(ctx context.Context, tx *perdure.WriteTx, tree *perdure.Tree) error {
	key, err := tx.TreeKey(ctx, tree.ID)
	if err != nil {
		return err
	}
	limits := perdure.Limits{Calls: 7}
	return errors.Join(tx.SetLimits(ctx, key, limits), tx.AppendEvent(key, tree.Root, "test.note", map[string]int{"n": 1}))
}

// createTogether creates trees in one transaction.
func createTogether(t *testing.T, s *perdure.Store, n int, spec func(int) perdure.TreeSpec) []perdure.Tree {
	t.Helper()
	release := perdure.HoldWriter(t.Context(), s)
	trees, errs := make([]perdure.Tree, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { trees[i], errs[i] = s.CreateTree(t.Context(), spec(i)) })
	}
	perdure.WaitQueued(s, n)
	err := release()
	wg.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	return trees
}

// checkBorn compares the stored tree of TestStatesOfOneTransaction with what was asked for.
func checkBorn(t *testing.T, s *perdure.Store, i int, tree perdure.Tree) {
	t.Helper()
	limit := int64(0)
	if i%7 == 4 {
		limit = 7
	}
	stored, err := s.Tree(t.Context(), tree.ID)
	if err != nil || stored.Root != tree.Root || stored.Limits.Calls != limit || stored.State != perdure.Queued {
		t.Errorf("tree %d: %+v, %v", i, stored, err)
	}
	info, err := s.State(t.Context(), treeState(tree))
	if err != nil || (info.ID == 0) != (i%7 == 1) {
		t.Errorf("state of tree %d: %+v, %v", i, info, err)
	}
	if i%7 == 1 {
		return
	}
	history, err := s.History(t.Context(), treeState(tree), perdure.HistoryFilter{})
	if err != nil || len(history) != 2 || history[1].Name != perdure.VarPrompt || history[0].Name != perdure.VarFinal ||
		history[1].Source != "user_input" || int64(history[1].ID) != int64(info.ID)+1 {
		t.Errorf("history of tree %d: %+v, %v", i, history, err)
	}
	list, err := s.Checkpoints(t.Context(), treeState(tree))
	if err != nil || len(list) != 1 || list[0].Name != "initial_state" || int64(list[0].ID) != int64(info.ID)+3 {
		t.Errorf("checkpoints of tree %d: %+v, %v", i, list, err)
	}
}

// A random ID that is taken, by a stored tree or in the same transaction, is drawn again.
func TestTakenTreeIDs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		const n = 12
		var mu sync.Mutex
		drawn := 0
		perdure.SetTreeIDs(s, func() perdure.TreeID { // each one twice
			mu.Lock()
			defer mu.Unlock()
			drawn++
			return perdure.TreeID("tree-0000000" + strconv.FormatInt(int64(drawn/2), 16))
		})
		createTree(t, s, perdure.TreeSpec{})
		createTree(t, s, perdure.TreeSpec{})
		trees := createTogether(t, s, n, func(int) perdure.TreeSpec { return perdure.TreeSpec{Kind: "run"} })
		distinct := make(map[perdure.TreeID]bool)
		for _, tree := range trees {
			distinct[tree.ID] = true
		}
		if len(distinct) != n {
			t.Errorf("%d trees of %d creations", len(distinct), n)
		}
		sound(t, s)
	})
}

// Tasks that are added to a tree in the transaction that creates it are counted.
func TestTaskAddedInTransactionOfTree(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		last := createTree(t, s, perdure.TreeSpec{}).Root
		release := perdure.HoldWriter(t.Context(), s)
		var wg sync.WaitGroup
		var made perdure.Tree
		var errs [2]error
		wg.Go(func() { made, errs[0] = s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run"}) })
		perdure.WaitQueued(s, 1)
		wg.Go(func() { _, errs[1] = s.Submit(t.Context(), last+1, perdure.TaskSpec{}, perdure.TaskSpec{}) })
		perdure.WaitQueued(s, 2)
		err := release()
		wg.Wait()
		if err := errors.Join(err, errs[0], errs[1]); err != nil {
			t.Fatal(err)
		}
		p, err := s.Progress(t.Context(), made.ID)
		if err != nil || made.Root != last+1 || p.Total != 3 || p.Queued != 3 {
			t.Errorf("root %v, progress %+v, %v", made.Root, p, err)
		}
		sound(t, s)
	})
}
