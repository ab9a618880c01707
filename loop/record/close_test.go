package record_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// TestTreeEndedWithoutLoop: a loop whose tree was cancelled, as older versions allowed, takes only
// a request to end, which ends it at once.
func TestTreeEndedWithoutLoop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := newBench(t, s)
		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Pause))
		_, err := s.CancelTree(t.Context(), b.tree.ID, "by the user")
		b.ok(err)
		for _, req := range []record.Control{record.Pause, record.PauseNow, record.Resume, record.Revert} {
			err := b.records.Ask(t.Context(), b.tree.ID, req)
			if perdure.CodeOf(err) != perdure.CodeConflict || !strings.Contains(perdure.HintOf(err), "perdure loop abort") ||
				!strings.Contains(err.Error(), "although the loop has not ended") {
				t.Errorf("%s: %v, hint %q", req, err, perdure.HintOf(err))
			}
		}
		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Abort))
		l, err := b.records.Loop(t.Context(), b.tree.ID)
		if err != nil || l.Status != record.Aborted || l.Control != record.NoControl ||
			!strings.Contains(string(l.State), "not checked") || !strings.Contains(string(l.State), `"n":1`) {
			t.Errorf("%+v, %v", l, err)
		}
		if err := b.records.Ask(t.Context(), b.tree.ID, record.Abort); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("again: %v", err)
		}
		problems, err := s.Check(t.Context())
		if err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// TestFolderOfEndedTree: another loop can start in the folder of a loop whose tree was cancelled,
// which is ended then.
func TestFolderOfEndedTree(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := newBench(t, s)
		next := b.loop
		next.Tree = b.create().ID
		if err := b.records.Create(t.Context(), next); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("beside a loop that works: %v", err)
		}
		_, err := s.CancelTree(t.Context(), b.tree.ID, "by the user")
		b.ok(err)
		b.ok(b.records.Create(t.Context(), next))
		l, err := b.records.Loop(t.Context(), b.tree.ID)
		if err != nil || l.Status != record.Aborted {
			t.Errorf("%+v, %v", l, err)
		}
	})
}
