package server_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// TestAnswerWhileGateOpens: callers that answer a gate again and again before it exists are
// not accepted when it opens. Which request the opening meets is chance, so gates open until
// one of them would have been accepted.
func TestAnswerWhileGateOpens(t *testing.T) {
	t.Parallel()
	const gates, callers = 25, 8
	f := newLoops(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[0])
	answer := func(number int, token string) error {
		_, err := f.client.AnswerGate(t.Context(), f.tree.ID, number, perdure.GateDecision{Answer: "abort", Token: token})
		return err
	}
	for number := 1; number <= gates; number++ {
		var polling, ended sync.WaitGroup
		polling.Add(callers)
		for range callers {
			ended.Go(func() {
				err := answer(number, "")
				polling.Done()
				for perdure.CodeOf(err) == perdure.CodeNotFound {
					err = answer(number, "")
				}
				if perdure.CodeOf(err) != perdure.CodeConflict {
					t.Errorf("gate %d, an answer without the token: %v", number, err)
				}
			})
		}
		polling.Wait()
		g := &perdure.Gate{Kind: perdure.GateStuck, Approver: perdure.ApproverToken,
			Question: json.RawMessage(`{"title":"Why?","options":[{"answer":"abort","effect":"it ends"}]}`)}
		token := perdure.NewGateToken()
		g.SetToken(token)
		f.save(t, record.Change{Gate: g})
		ended.Wait()
		if err := answer(number, token); err != nil || g.Number != number {
			t.Fatalf("gate %d as gate %d with the token: %v", g.Number, number, err)
		}
	}
}

// TestReplaceTokenOfAnsweredGate: the token of a gate that was answered is not replaced, and
// the caller learns that.
func TestReplaceTokenOfAnsweredGate(t *testing.T) {
	t.Parallel()
	f := newLoops(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[0])
	f.save(t, record.Change{Gate: &perdure.Gate{Kind: perdure.GateStuck, Approver: perdure.ApproverAny,
		Question: json.RawMessage(`{"title":"Why?","options":[{"answer":"abort","effect":"it ends"}]}`)}})
	lease := f.one(t)
	for _, open := range []bool{true, false} {
		replaced, err := f.records.ReplaceGateToken(t.Context(), lease, 1, perdure.NewGateToken())
		if replaced != open || err != nil {
			t.Errorf("open %v: replaced %v, %v", open, replaced, err)
		}
		if open {
			_, err := f.client.AnswerGate(t.Context(), f.tree.ID, 1, perdure.GateDecision{Answer: "abort"})
			must(t, err)
		}
	}
	must(t, lease.Release(t.Context()))
}
