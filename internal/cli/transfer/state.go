package transfer

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/state"
)

// stateFlags are the flags that select a state.
type stateFlags struct{ state.StateFlags }

func (c *commands) stateFlags(cmd *cobra.Command, s *stateFlags) {
	s.Add(cmd, ", else session", c.CompleteTrees)
}

func (s *stateFlags) given() bool { return *s != stateFlags{} }

// ref returns the state that the flags select. The state of a task is that alone, without
// a session.
func (s *stateFlags) ref(ctx context.Context, store *perdure.Store, getenv func(string) string) (perdure.StateRef,
	error) {
	ref, err := s.Ref(getenv)
	if err != nil || ref.Scope != perdure.ScopeTree {
		return ref, err
	}
	if s.Session != "" {
		return ref, state.NoMeaning("session", ref.Scope)
	}
	ref.Session = ""
	if ref.Task == 0 {
		return ref, nil
	}
	task, err := store.Task(ctx, ref.Task)
	if err != nil {
		return ref, err
	}
	err = state.InTree(&ref, &task)
	return ref, err
}
