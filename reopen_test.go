package perdure_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// partialTree makes a tree of two children, one of which fails, and whose root completes
// without it.
func partialTree(t *testing.T, s *perdure.Store, spec perdure.TreeSpec) (r rooted, ids []perdure.TaskID) {
	t.Helper()
	r = leased(t, s, spec)
	ids, err := r.root.Spawn(t.Context(), []perdure.TaskSpec{{MaxAttempts: 1}, {MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	children := claim(t, r.ss, 2)
	complete(t, children[0], "kept")
	fail(t, children[1], perdure.Failure{Kind: "model", KeepCalls: true})
	if err := claimOne(t, r.ss).Complete(t.Context(), perdure.Result{Text: "half", Partial: true}); err != nil {
		t.Fatal(err)
	}
	return r, ids
}

// TestReopenedConfiguration: a session that knows the tree claims a task that another
// process reopened with its new configuration and limits, and the event has both.
func TestReopenedConfiguration(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		ctx, s, other := t.Context(), testdb.Open(t, cfg), testdb.Open(t, cfg)
		r, ids := partialTree(t, s, perdure.TreeSpec{Config: json.RawMessage(`{"v":1}`), Limits: perdure.Limits{Calls: 1}})
		if got, err := s.Tree(ctx, r.tree.ID); err != nil || got.State != perdure.Partial || !got.State.Terminal() {
			t.Fatalf("tree %+v, %v", got, err)
		}
		report, err := other.Reopen(ctx, r.tree.ID, perdure.ReopenSpec{Config: json.RawMessage(`{"v":2}`),
			Limits: &perdure.Limits{Calls: 9, WallTime: time.Hour}, Changes: json.RawMessage(`{"v":2}`)})
		if err != nil || report.Reopened != 2 || report.Done != 1 || report.State != perdure.Running {
			t.Fatalf("Reopen = %+v, %v", report, err)
		}
		if got := readTask(t, s, r.tree.Root); got.State != perdure.Waiting || got.Pending != 1 || got.Result != "" {
			t.Errorf("the root is %s with %d open children and %q", got.State, got.Pending, got.Result)
		}
		perdure.LookAgain(s)
		l := claimOne(t, r.ss)
		if l.Task.ID != ids[1] || string(l.Tree.Config) != `{"v":2}` || l.Tree.Limits.Calls != 9 || l.Tree.Reopened != 1 ||
			l.Tree.ReopenedAt == nil || l.Task.Attempts != 2 {
			t.Errorf("claimed %s, attempt %d, of %+v", l.Task.ID, l.Task.Attempts, l.Tree)
		}
		if !l.Tree.Deadline().Equal(l.Tree.ReopenedAt.Add(time.Hour)) {
			t.Errorf("the time limit of %+v ends at %v", l.Tree, l.Tree.Deadline())
		}
		complete(t, l, "late")
		complete(t, claimOne(t, r.ss), "whole")
		if got, err := s.Tree(ctx, r.tree.ID); err != nil || got.State != perdure.Completed || got.Partial {
			t.Errorf("tree %+v, %v", got, err)
		}
		events, err := s.Events(ctx, perdure.EventFilter{Tree: r.tree.ID})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, e := range events {
			if e.Kind == perdure.EventTreeReopened {
				found++
				if want := `{"tasks":2,"limits":{"calls":9,"wall_time":3600000000000},"changes":{"v":2}}`; string(e.Data) != want {
					t.Errorf("event %s, want %s", e.Data, want)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d events that the tree was reopened", found)
		}
		if again, err := s.Reopen(ctx, r.tree.ID, perdure.ReopenSpec{Limits: &perdure.Limits{}}); err != nil ||
			again.Reopened != 0 || again.State != perdure.Completed {
			t.Errorf("Reopen of a completed tree = %+v, %v", again, err)
		}
		sound(t, s)
	})
}

// TestReopenOfEarlierSchema: a partial tree of an earlier schema, whose root has no mark and
// which has no failed task, is reopened.
func TestReopenOfEarlierSchema(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		if err := r.root.Complete(t.Context(), perdure.Result{Text: "half", Partial: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Change(t.Context(), `UPDATE task_hot SET flags = 0`); err != nil {
			t.Fatal(err)
		}
		report, err := s.Reopen(t.Context(), r.tree.ID, perdure.ReopenSpec{})
		if err != nil || report.Reopened != 1 {
			t.Fatalf("Reopen = %+v, %v", report, err)
		}
		perdure.LookAgain(s)
		complete(t, claimOne(t, r.ss), "whole")
		if got, err := s.Tree(t.Context(), r.tree.ID); err != nil || got.State != perdure.Completed || got.Partial {
			t.Errorf("tree %+v, %v", got, err)
		}
	})
}

// TestReopenedAllowed: a session that knows the tree does not claim a task of it that
// another process reopened with a configuration which Allow refuses.
func TestReopenedAllowed(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, other := testdb.Open(t, cfg), testdb.Open(t, cfg)
		r, ids := partialTree(t, s, perdure.TreeSpec{Config: json.RawMessage(`{"v":1}`)})
		_, err := other.Reopen(t.Context(), r.tree.ID, perdure.ReopenSpec{Config: json.RawMessage(`{"v":2}`)})
		if err != nil {
			t.Fatal(err)
		}
		before := readTask(t, s, ids[1])
		perdure.LookAgain(s)
		var judged []string
		leases, err := r.ss.Claim(t.Context(), perdure.ClaimRequest{Max: 5, Allow: func(x perdure.Tree) bool {
			judged = append(judged, string(x.Config))
			return string(x.Config) == `{"v":1}`
		}})
		if err != nil || len(leases) > 0 {
			t.Fatalf("claimed %d tasks that Allow refuses, %v; it judged %q", len(leases), err, judged)
		}
		if got := readTask(t, s, ids[1]); got.State != perdure.Queued || got.Attempts != before.Attempts {
			t.Errorf("the task is %s at attempt %d, was at %d", got.State, got.Attempts, before.Attempts)
		}
		if !slices.Equal(judged, []string{`{"v":1}`, `{"v":2}`}) {
			t.Errorf("Allow judged %q", judged)
		}
	})
}

// TestReopenConflicts: a tree that another session owns or runs is not reopened, nor a
// cancelled one.
func TestReopenConflicts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r, _ := partialTree(t, s, perdure.TreeSpec{})
		mine, other := openSession(t, s), openSession(t, s)
		if _, err := s.Reopen(ctx, r.tree.ID, perdure.ReopenSpec{Owner: mine}); err != nil {
			t.Fatal(err)
		}
		reopen := func(owner *perdure.Session) error {
			_, err := s.Reopen(ctx, r.tree.ID, perdure.ReopenSpec{Owner: owner, Limits: &perdure.Limits{Calls: 5}})
			return err
		}
		wantCode(t, "reopen a tree of another session", reopen(other), perdure.CodeConflict)
		wantCode(t, "reopen a tree of a session", reopen(nil), perdure.CodeConflict)
		claimOne(t, mine)
		wantCode(t, "reopen a tree that runs", reopen(mine), perdure.CodeConflict)
		if err := mine.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if err := reopen(other); err != nil {
			t.Errorf("reopen a tree whose session is closed: %v", err)
		}
		if _, err := s.CancelTree(ctx, r.tree.ID, ""); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "reopen a cancelled tree", reopen(other), perdure.CodeConflict)
		wantCode(t, "reopen nothing", func() error {
			_, err := s.Reopen(ctx, "tree-00000000", perdure.ReopenSpec{})
			return err
		}(), perdure.CodeNotFound)
		sound(t, s)
	})
}
