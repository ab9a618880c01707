// Package state implements the commands on variables and checkpoints: var,
// checkpoint and repl.
package state

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
)

// VarCommand returns the command var.
func VarCommand(e *env.Env) *cobra.Command { return (&commands{e}).newVarCommand() }

// CheckpointCommand returns the command checkpoint.
func CheckpointCommand(e *env.Env) *cobra.Command { return (&commands{e}).newCheckpointCommand() }

// ReplCommand returns the command repl.
func ReplCommand(e *env.Env) *cobra.Command { return (&commands{e}).newReplCommand() }

type commands struct{ *env.Env }

// target is a state of a store.
type target struct {
	*client.Client
	ref perdure.StateRef
	dir string
}

// on opens a backend for do with the state that the flags select.
func (c *commands) on(cmd *cobra.Command, s *scopeFlags, write bool,
	do func(ctx context.Context, t *target) error) error {
	ref, err := c.ref(s)
	if err != nil {
		return err
	}
	why := env.Read
	if write {
		why = env.Write
	}
	return c.Do(cmd, why, func(b *env.Backend) error {
		t := &target{Client: b.Client, ref: ref, dir: b.Config.Dir}
		if err := s.climb(cmd.Context(), t); err != nil {
			return err
		}
		return do(cmd.Context(), t)
	})
}
