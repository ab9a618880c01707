package perdure_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A child that is leased with its creation keeps its task from completing, no other session claims
// it, and it is free with its task when the session ends.
func TestSpawnLeased(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "whole"}})
		spec := perdure.TaskSpec{Prompt: "part", Agent: "a", Metadata: []byte(`{"x":1}`)}
		child, err := r.root.SpawnLeased(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := child.Task; got.Prompt != "part" || got.Agent != "a" || string(got.Metadata) != `{"x":1}` ||
			got.Parent != r.tree.Root || got.Depth != 1 || got.State != perdure.Running || got.Attempts != 1 {
			t.Errorf("the child is %+v", got)
		}
		if got := readTask(t, s, r.tree.Root); got.State != perdure.Running || got.Pending != 1 {
			t.Errorf("the parent is %s with %d open children", got.State, got.Pending)
		}
		other := openSession(t, s)
		perdure.LookAgain(s)
		if got := claim(t, other, 5); len(got) != 0 {
			t.Errorf("another session claimed %s", got[0].Task.ID)
		}
		wantCode(t, "complete before the child", r.root.Complete(t.Context(), perdure.Result{}), perdure.CodeConflict)
		if err := r.ss.Die(t.Context()); err != nil {
			t.Fatal(err)
		}
		perdure.LookAgain(s)
		both := claim(t, other, 5)
		if len(both) != 2 {
			t.Fatalf("%d leases after the end of the session, want both", len(both))
		}
		wantCode(t, "the lost lease", child.Complete(t.Context(), perdure.Result{}), perdure.CodeLeaseLost)
		for _, l := range both {
			if l.Task.ID == child.Task.ID {
				complete(t, l, "done")
			}
		}
		for _, l := range both {
			if l.Task.ID == r.tree.Root {
				complete(t, l, "done")
			}
		}
		if err := statetest.Sound(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

// A lease of a tree that was reopened meanwhile, because its session seemed dead, leases no child:
// it would not have the new configuration.
func TestSpawnLeasedOfAReopenedTree(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, other := testdb.Open(t, cfg), testdb.Open(t, cfg)
		r := leased(t, s, perdure.TreeSpec{Config: json.RawMessage(`{"v":1}`)})
		if err := r.ss.Die(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := other.Reopen(t.Context(), r.tree.ID, perdure.ReopenSpec{Config: json.RawMessage(`{"v":2}`)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.root.SpawnLeased(t.Context(), perdure.TaskSpec{Prompt: "part"})
		wantCode(t, "lease a child with the previous configuration", err, perdure.CodeConflict)
		ids, err := r.root.Spawn(t.Context(), []perdure.TaskSpec{{Prompt: "part"}})
		if err != nil {
			t.Fatal(err)
		}
		if l := claimOne(t, openSession(t, other)); l.Task.ID != ids[0] || string(l.Tree.Config) != `{"v":2}` {
			t.Errorf("claimed %s of %s", l.Task.ID, l.Tree.Config)
		}
		sound(t, s)
	})
}
