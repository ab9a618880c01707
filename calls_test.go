package perdure_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// The answer to a call and the result of its task are durable together, and refused together.
func TestCompleteCall(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "p"}})
		l := claimOne(t, openSession(t, s))
		call := begin(t, l, 0, "hash")
		answer := perdure.CallResult{Response: "42", Tries: 1, InputTokens: 3, OutputTokens: 1}
		below, err := s.Submit(t.Context(), tree.Root, perdure.TaskSpec{Prompt: "open"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.CompleteCall(t.Context(), call.ID, answer,
			perdure.Result{Text: "42"}); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("with an open child: %v", err)
		}
		if calls, err := s.Calls(t.Context(), tree.Root); err != nil || calls[0].State != perdure.CallStarted {
			t.Errorf("a refusal settled the call: %+v, %v", calls, err)
		}
		if _, err := s.CancelTask(t.Context(), below[0], "test"); err != nil {
			t.Fatal(err)
		}
		if err := l.CompleteCall(t.Context(), call.ID, answer, perdure.Result{Text: "42"}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Task(t.Context(), tree.Root)
		if err != nil || got.State != perdure.Completed || got.Result != "42" || got.Usage.InputTokens != 3 {
			t.Errorf("task %+v, %v", got, err)
		}
		calls, err := s.Calls(t.Context(), tree.Root)
		if err != nil || len(calls) != 1 || calls[0].State != perdure.CallCompleted || calls[0].Response != "42" {
			t.Errorf("calls %+v, %v", calls, err)
		}
		if err := l.CompleteCall(t.Context(), call.ID, answer, perdure.Result{}); !errors.Is(err,
			perdure.ErrLeaseLost) {
			t.Errorf("a second time: %v", err)
		}
	})
}
