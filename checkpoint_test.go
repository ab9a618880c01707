package perdure_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func checkpoint(t testing.TB, s *perdure.Store, ref perdure.StateRef, name string) perdure.Checkpoint {
	t.Helper()
	c, err := s.SaveCheckpoint(t.Context(), ref, name, "")
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	return c
}

func rollback(t testing.TB, s *perdure.Store, ref perdure.StateRef, to string) perdure.RollbackReport {
	t.Helper()
	r, err := s.Rollback(t.Context(), ref, to, perdure.Cause{})
	if err != nil {
		t.Fatalf("rollback to %s: %v", to, err)
	}
	return r
}

// values are the variables of a state without the special ones.
func values(t testing.TB, s *perdure.Store, ref perdure.StateRef) map[string]string {
	t.Helper()
	list, err := s.Vars(t.Context(), ref, perdure.VarFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, v := range list {
		if v.Name != perdure.VarPrompt && v.Name != perdure.VarFinal {
			out[v.Name] = string(v.Value)
		}
	}
	return out
}

func TestRollbackIsExactAndUndoable(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		setVar(t, s, global, "same", "1")
		setVar(t, s, global, "changed", "1")
		setVar(t, s, global, "deleted", "1")
		before := values(t, s, global)
		c := checkpoint(t, s, global, "here")
		setVar(t, s, global, "changed", "2")
		setVar(t, s, global, "changed", "3")
		setVar(t, s, global, "added", "1")
		if err := s.DeleteVar(t.Context(), global, "deleted", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		after := values(t, s, global)
		changes, err := s.Diff(t.Context(), global, "here", "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range changes {
			got = append(got, fmt.Sprintf("%s %s %s>%s", d.Change, d.Name, d.Old, d.New))
		}
		if diff := cmp.Diff([]string{"added added >1", "changed changed 1>3", "removed deleted 1>"}, got); diff != "" {
			t.Error(diff)
		}
		report := rollback(t, s, global, c.ID.String())
		if report.Restored != 2 || report.Removed != 1 {
			t.Errorf("restored %d and removed %d", report.Restored, report.Removed)
		}
		if diff := cmp.Diff(before, values(t, s, global)); diff != "" {
			t.Errorf("after the rollback: %s", diff)
		}
		if changes, err := s.Diff(t.Context(), global, "here", ""); err != nil || len(changes) != 0 {
			t.Errorf("differences after the rollback: %v, %v", changes, err)
		}
		rollback(t, s, global, report.Mutation.String())
		if diff := cmp.Diff(after, values(t, s, global)); diff != "" {
			t.Errorf("after the rollback was undone: %s", diff)
		}
		rollback(t, s, global, "initial_state")
		if diff := cmp.Diff(map[string]string{}, values(t, s, global)); diff != "" {
			t.Errorf("at the beginning: %s", diff)
		}
		_, err = s.Rollback(t.Context(), global, "nowhere", perdure.Cause{})
		wantRefusal(t, err, perdure.CodeNotFound, "nowhere")
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// The checkpoint of a tree covers the states of its tasks, and leaves the
// prompt and what was completed.
func TestCheckpointOfATree(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "top"}})
		ids := submit(t, s, r.tree.Root, 2)
		setVar(t, s, taskState(r.tree, ids[0]), "a", "1")
		checkpoint(t, s, treeState(r.tree), "cp")
		setVar(t, s, taskState(r.tree, ids[0]), "a", "2")
		setVar(t, s, taskState(r.tree, ids[1]), "b", "1")
		setVar(t, s, treeState(r.tree), "c", "1")
		l := claimOne(t, r.ss)
		if _, err := l.SetVar(t.Context(), l.Var(),
			perdure.VarSpec{Name: perdure.VarFinal, Value: json.RawMessage(`"done"`)}); err != nil {
			t.Fatal(err)
		}
		rollback(t, s, treeState(r.tree), "cp")
		wantVar(t, s, taskState(r.tree, ids[0]), "a", "1")
		wantVar(t, s, taskState(r.tree, ids[1]), "b", "none")
		wantVar(t, s, treeState(r.tree), "c", "none")
		wantVar(t, s, l.Var(), perdure.VarFinal, `"done"`)
		wantVar(t, s, treeState(r.tree), perdure.VarPrompt, `"top"`)
	})
}

func TestCheckpointLimit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		setVar(t, s, global, "a", "1")
		for i := range perdure.MaxCheckpoints - 1 { // with the first one
			setVar(t, s, global, "a", fmt.Sprint(i))
			checkpoint(t, s, global, fmt.Sprint("c", i))
		}
		_, err := s.SaveCheckpoint(t.Context(), global, "more", "")
		wantRefusal(t, err, perdure.CodeConflict, "100")
		if e, ok := errors.AsType[*perdure.Error](err); !ok || !strings.Contains(e.Hint, "checkpoint delete NAME") {
			t.Errorf("no hint how to remove one: %+v", err)
		}
		report, err := s.Prune(t.Context(), perdure.PruneRequest{})
		if err != nil || report.Checkpoints != 90 {
			t.Errorf("%+v, %v", report, err)
		}
		rollback(t, s, global, "c90")
		wantVar(t, s, global, "a", "90")
		checkpoint(t, s, global, "more")
	})
}

// A checkpoint above the limit removes the oldest one without a name, not a named one, and
// values that only the removed one needed.
func TestCheckpointAboveTheLimit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		setVar(t, s, global, "a", "1")
		checkpoint(t, s, global, "kept")
		var first perdure.Checkpoint
		for i := range perdure.MaxCheckpoints {
			setVar(t, s, global, "a", fmt.Sprint(i))
			made := checkpoint(t, s, global, "")
			if made.Name != made.ID.String() {
				t.Fatalf("checkpoint without a name: %+v", made)
			}
			if i == 0 {
				first = made
			}
		}
		list, err := s.Checkpoints(t.Context(), global)
		if err != nil || len(list) != perdure.MaxCheckpoints || list[0].Name != "initial_state" || list[1].Name != "kept" {
			t.Fatalf("%d checkpoints, %v", len(list), err)
		}
		_, err = s.Rollback(t.Context(), global, first.Name, perdure.Cause{})
		wantRefusal(t, err, perdure.CodeNotFound, first.Name)
		rollback(t, s, global, list[2].Name)
		wantVar(t, s, global, "a", "2")
		rollback(t, s, global, "kept")
		wantVar(t, s, global, "a", "1")
		sound(t, s)
	})
}

// A long history is compacted into one entry that tells how many it stands for,
// and checkpoints keep what they need.
func TestHistoryIsCompacted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		if testing.Short() {
			t.Skip("ten thousand changes")
		}
		setVar(t, s, global, "n", "7")
		checkpoint(t, s, global, "early")
		// Long values, of which the history forgets all but the last.
		var last string
		for i, size := range []int{20_000, 2 << 20, 30_000, 3 << 20} {
			last = fmt.Sprintf(`"%d%s"`, i, noise(uint64(i), size))
			setVar(t, s, global, fmt.Sprint("long_", i%2), last)
		}
		total := perdure.MaxHistory + 1500
		if err := perdure.IncrMany(t.Context(), s, global, "n", total-5); err != nil {
			t.Fatal(err)
		}
		info, err := s.State(t.Context(), global)
		if err != nil || info.Mutations != int64(total) {
			t.Errorf("%+v, %v", info, err)
		}
		entries, oldest := 0, perdure.Mutation{}
		for before := perdure.MutationID(0); ; before = oldest.ID {
			page, err := s.History(t.Context(), global, perdure.HistoryFilter{Before: before, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			entries, oldest = entries+len(page), page[len(page)-1]
		}
		if entries > perdure.MaxHistory || oldest.Operation != "compacted" || oldest.Count+int64(entries)-1 != int64(total) {
			t.Errorf("%d entries, the oldest is %+v", entries, oldest)
		}
		if changes, err := s.Diff(t.Context(), global, "early", ""); err != nil || len(changes) != 3 ||
			string(changes[2].Old) != "7" {
			t.Errorf("%+v, %v", changes, err)
		}
		for _, dry := range []bool{true, false} {
			report, err := s.Prune(t.Context(), perdure.PruneRequest{DryRun: dry})
			if err != nil || report.Values != 2 || report.Bytes < 20_000*6/8 { // noise has 6 bits in a byte
				t.Errorf("dry %v: %+v, %v", dry, report, err)
			}
		}
		wantVar(t, s, global, "long_1", last)
		if v, err := s.Var(t.Context(), global, "long_0"); err != nil || len(v.Value) != 30_003 {
			t.Errorf("%d bytes, %v", len(v.Value), err)
		}
		rollback(t, s, global, "early")
		wantVar(t, s, global, "n", "7")
		rollback(t, s, global, "initial_state")
		wantVar(t, s, global, "n", "none")
	})
}

// A checkpoint is deleted by name or ID, the newest of several with a name. What only it needed
// goes with it, also in the states of the tasks that it covered; other checkpoints stay usable.
func TestDeleteCheckpoint(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		root, child := treeState(r.tree), taskState(r.tree, submit(t, s, r.tree.Root, 1)[0])
		set := func(value string) {
			setVar(t, s, root, "a", value)
			setVar(t, s, child, "b", value)
		}
		set("1")
		checkpoint(t, s, root, "first")
		set("2")
		checkpoint(t, s, root, "twice")
		set("3")
		made := checkpoint(t, s, root, "twice")
		set("4")
		unnamed := checkpoint(t, s, root, "")
		for _, name := range []string{"twice", unnamed.ID.String()} {
			if err := s.DeleteCheckpoint(t.Context(), root, name); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{unnamed.Name, made.ID.String(), "nowhere", "", "mut-00000001"} {
			wantRefusal(t, s.DeleteCheckpoint(t.Context(), root, name), perdure.CodeNotFound, "no checkpoint")
		}
		sound(t, s)
		rollback(t, s, root, "twice")
		wantVar(t, s, root, "a", "2")
		wantVar(t, s, child, "b", "2")
		if err := s.DeleteCheckpoint(t.Context(), root, "twice"); err != nil {
			t.Fatal(err)
		}
		rollback(t, s, root, "first")
		wantVar(t, s, child, "b", "1")
		info, err := s.State(t.Context(), root)
		if err != nil || info.Checkpoints != 2 {
			t.Errorf("%+v, %v", info, err)
		}
		sound(t, s)
	})
}

// A deleted checkpoint makes room for another one.
func TestDeleteCheckpointAtTheLimit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for i := range perdure.MaxCheckpoints - 1 { // with the first one
			checkpoint(t, s, global, fmt.Sprint("c", i))
		}
		_, err := s.SaveCheckpoint(t.Context(), global, "more", "")
		wantRefusal(t, err, perdure.CodeConflict, "100")
		if err := s.DeleteCheckpoint(t.Context(), global, "c7"); err != nil {
			t.Fatal(err)
		}
		checkpoint(t, s, global, "more")
		_, err = s.SaveCheckpoint(t.Context(), global, "again", "")
		wantRefusal(t, err, perdure.CodeConflict, "100")
	})
}
