package perdure_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestInterrupted: a tree whose process died is interrupted until another one continues it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		interrupted := func(id perdure.TreeID) bool {
			t.Helper()
			p, err := s.Progress(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			return p.Interrupted
		}
		owner := openSession(t, s)
		owned := createTree(t, s, perdure.TreeSpec{Owner: owner})
		shared := createTree(t, s, perdure.TreeSpec{})
		if interrupted(owned.ID) || interrupted(shared.ID) {
			t.Error("trees that wait for their process are interrupted")
		}
		claimOf(t, owner, shared.ID)
		if err := owner.Die(ctx); err != nil {
			t.Fatal(err)
		}
		if !interrupted(owned.ID) || !interrupted(shared.ID) {
			t.Error("trees of a dead process are not interrupted")
		}
		next := openSession(t, s)
		for _, id := range []perdure.TreeID{owned.ID, shared.ID} {
			if _, err := s.Recover(ctx, id, next); err != nil {
				t.Fatal(err)
			}
			l := claimOf(t, next, id)
			if interrupted(id) {
				t.Errorf("%s runs again and is interrupted", id)
			}
			complete(t, l, "done")
			if interrupted(id) {
				t.Errorf("%s is completed and interrupted", id)
			}
		}
	})
}
