package record_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// A block is recorded when it begins, with the answers it gets, and when it ends, together with
// the variables; it is in the log.
func TestBlocks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "test", Root: perdure.TaskSpec{Prompt: "p"}})
		ok(t, err)
		session, err := s.OpenSession(t.Context(), "test")
		ok(t, err)
		leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
		ok(t, err)
		l, r := leases[0], record.New(s)
		b := &record.Block{Turn: 1, Index: 0, CodeSHA256: "c", Seed: 1<<63 + 5,
			Edits: []engine.Var{{Name: "e", Value: json.RawMessage(`1`), Type: "int", SHA256: "h"}}}
		ok(t, r.Begin(t.Context(), l, b))
		ok(t, r.Tell(t.Context(), l, b, record.Told{Ordinal: 2, Value: json.RawMessage(`"Error: no"`)}))
		want := *b
		blocks, err := r.Blocks(t.Context(), tree.ID, tree.Root)
		ok(t, err)
		if diff := cmp.Diff([]record.Block{want}, blocks); diff != "" {
			t.Errorf("a running block: %s", diff)
		}
		res := &record.Result{Output: "out\n", OutputBytes: 4, OutputSHA256: "o", Draft: "d",
			Failure: &engine.Failure{Type: "E", Message: "m"}, Vars: []engine.Var{{Name: "x", Value: json.RawMessage(`[1]`),
				Type: "list", SHA256: "v", Bytes: 3}}, Gone: []string{"never"}}
		ok(t, r.End(t.Context(), l, b, res, record.Changes{Set: []perdure.VarSpec{{Name: "x", Value: json.RawMessage(`[1]`)}},
			Gone: res.Gone}))
		blocks, err = r.Blocks(t.Context(), tree.ID, tree.Root)
		ok(t, err)
		want = *b
		kept := *res
		kept.Vars = []engine.Var{{Name: "x", Type: "list", SHA256: "v", Bytes: 3}} // the state has the value
		want.Result = &kept
		if diff := cmp.Diff([]record.Block{want}, blocks); diff != "" {
			t.Errorf("an ended block: %s", diff)
		}
		x, err := s.Var(t.Context(), l.Var(), "x")
		ok(t, err)
		if string(x.Value) != "[1]" {
			t.Errorf("the variable is %s", x.Value)
		}
		if err := r.Tell(t.Context(), l, b, record.Told{}); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("an answer for a block that has ended: %v", err)
		}
		report, err := s.VerifyLog(t.Context(), tree.ID)
		if err != nil || !report.Intact {
			t.Errorf("the log: %+v, %v", report, err)
		}
		ok(t, l.Release(t.Context()))
		if err := r.Begin(t.Context(), l, &record.Block{Number: 1, Turn: 2}); !errors.Is(err, perdure.ErrLeaseLost) {
			t.Errorf("a block after the lease: %v", err)
		}
	})
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
