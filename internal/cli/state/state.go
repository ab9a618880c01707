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

// commands builds the commands and holds their common flags.
type commands struct {
	*env.Env
	scope scopeFlags
	cause causeFlags
}

// complete offers words of the selected state for the first most arguments.
func (c *commands) complete(most int,
	list func(ctx context.Context, t *target, add func(word, about string)) error) cobra.CompletionFunc {
	return env.Completions(most, func(cmd *cobra.Command, add func(word, about string)) error {
		return c.run(env.Read, func(ctx context.Context, t *target, _ []string) error { return list(ctx, t, add) })(cmd, nil)
	})
}

// target is a state of a store.
type target struct {
	*client.Client
	ref perdure.StateRef
	// cause is the cause of a change.
	cause perdure.Cause
	dir   string
}

// run returns the function of a command on the state that the flags select.
func (c *commands) run(why env.Purpose,
	do func(ctx context.Context, t *target, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cause, err := c.cause.cause()
		if err != nil {
			return err
		}
		ref, err := c.ref()
		if err != nil {
			return err
		}
		return c.Do(cmd, why, func(b *env.Backend) error {
			if err := resolve(cmd.Context(), b, &ref); err != nil {
				return err
			}
			t := &target{Client: b.Client, ref: ref, cause: cause, dir: b.Config.Dir}
			if err := c.scope.climb(cmd.Context(), t); err != nil {
				return err
			}
			return do(cmd.Context(), t, args)
		})
	}
}

// resolve replaces the beginnings of IDs in a state by the IDs.
func resolve(ctx context.Context, b *env.Backend, ref *perdure.StateRef) (err error) {
	if ref.Tree != "" {
		if ref.Tree, err = b.FindTree(ctx, string(ref.Tree)); err != nil {
			return err
		}
	}
	ref.Task, err = b.FindTask(ctx, ref.Task)
	return err
}
