package perdure_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func TestAmendTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		ss, err := s.OpenSession(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		defer ss.Close(ctx)
		tree, err := s.CreateTree(ctx,
			perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p", Metadata: json.RawMessage(`{"a":1}`)}})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := s.Submit(ctx, tree.Root, perdure.TaskSpec{Prompt: "one"}, perdure.TaskSpec{Prompt: "two"})
		if err != nil {
			t.Fatal(err)
		}
		priority, agent := 9, "other"
		if err := s.AmendTask(ctx, ids[1],
			perdure.Amendment{Priority: &priority, Agent: &agent, Metadata: json.RawMessage(`{"b":2}`)}); err != nil {
			t.Fatal(err)
		}
		// The claim sees what was changed, and goes by the new priority.
		leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 1})
		if err != nil || len(leases) != 1 {
			t.Fatalf("claimed %d, %v", len(leases), err)
		}
		got := leases[0].Task
		if got.ID != ids[1] || got.Priority != 9 || got.Agent != "other" || string(got.Metadata) != `{"b":2}` ||
			got.Depth != 1 {
			t.Errorf("claimed %+v", got)
		}
		for _, a := range []perdure.Amendment{{Priority: &priority}, {Agent: &agent}} {
			if err := s.AmendTask(ctx, ids[1], a); !errors.Is(err, perdure.ErrConflict) {
				t.Errorf("of a task that runs: %v", err)
			}
		}
		if err := leases[0].Complete(ctx, perdure.Result{Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := s.AmendTask(ctx, ids[1], perdure.Amendment{Metadata: json.RawMessage(`{}`)}); err != nil {
			t.Errorf("metadata of a task that ended: %v", err)
		}
		if err := s.AmendTask(ctx, ids[0], perdure.Amendment{}); err != nil {
			t.Errorf("nothing to change: %v", err)
		}
		var changes []string
		events, err := s.Events(ctx, perdure.EventFilter{Tree: tree.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == perdure.EventTaskAmended {
				changes = append(changes, string(e.Data))
			}
		}
		if diff := cmp.Diff([]string{`{"changed":["priority","agent","metadata"]}`, `{"changed":["metadata"]}`},
			changes); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
	})
}

func TestAmendTaskRefuses(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run"})
	if err != nil {
		t.Fatal(err)
	}
	far, long := perdure.MaxPriority+1, strings.Repeat("a", perdure.MaxAgentBytes+1)
	for _, a := range []perdure.Amendment{{Priority: &far}, {Agent: &long}, {Metadata: json.RawMessage(`[]`)},
		{Metadata: json.RawMessage(`{`)}} {
		if err := s.AmendTask(t.Context(), tree.Root, a); !errors.Is(err, perdure.ErrInvalid) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if err := s.AmendTask(t.Context(), 99, perdure.Amendment{Metadata: json.RawMessage(`{}`)}); !errors.Is(err,
		perdure.ErrNotFound) {
		t.Errorf("no task: %v", err)
	}
}

// Listings have what tasks have streamed only when asked for it.
func TestListedOutput(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		ss, err := s.OpenSession(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		defer ss.Close(ctx)
		tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run"})
		if err != nil {
			t.Fatal(err)
		}
		leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 1})
		if err != nil || len(leases) != 1 {
			t.Fatalf("claimed %d, %v", len(leases), err)
		}
		for _, text := range []string{"one ", "two"} {
			if err := leases[0].AppendOutput(ctx, text); err != nil {
				t.Fatal(err)
			}
		}
		for asked, want := range map[bool]string{false: "", true: "one two"} {
			list, err := s.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID, Output: asked})
			if err != nil || len(list) != 1 || list[0].Output != want {
				t.Errorf("asked %v: %+v, %v", asked, list, err)
			}
		}
	})
}

func TestRemoveTree(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		var trees []perdure.Tree
		for range 2 {
			tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", IdempotencyKey: string(rune('a' + len(trees))),
				Root: perdure.TaskSpec{Prompt: strings.Repeat("p", 20_000)}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Submit(ctx, tree.Root, make([]perdure.TaskSpec, 3)...); err != nil {
				t.Fatal(err)
			}
			trees = append(trees, tree)
		}
		if err := s.RemoveTree(ctx, trees[0].ID); !errors.Is(err, perdure.ErrConflict) {
			t.Errorf("of a tree that goes on: %v", err)
		}
		if _, err := s.CancelTree(ctx, trees[0].ID, ""); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveTree(ctx, trees[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveTree(ctx, trees[0].ID); !errors.Is(err, perdure.ErrNotFound) {
			t.Errorf("once more: %v", err)
		}
		if _, err := s.Task(ctx, trees[0].Root); !errors.Is(err, perdure.ErrNotFound) {
			t.Errorf("its task: %v", err)
		}
		if events, err := s.Events(ctx, perdure.EventFilter{}); err != nil || len(events) == 0 ||
			events[0].Tree != trees[1].ID {
			t.Errorf("its events are left: %+v, %v", events, err)
		}
		if list, err := s.Tasks(ctx, perdure.TaskFilter{Tree: trees[1].ID}); err != nil || len(list) != 4 {
			t.Errorf("of the other tree %d tasks are left, %v", len(list), err)
		}
		if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
	})
}
