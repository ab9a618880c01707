package loop

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/loop/record"
)

// Watch follows a loop that another process runs, until it ends or pauses, and
// prints its state and exits as [Command]'s loop run does. Interrupting it does not change the loop.
func Watch(e *env.Env, cmd *cobra.Command, id string) error {
	c := &commands{e}
	return c.on(env.Read, func(ctx context.Context, b *env.Backend, l record.Loop) error {
		watching := *b
		watching.Local = nil // this process does not run it
		how := followConfig{bell: func() {}}
		if l.Iteration > 0 && !l.Status.Ended() {
			how.since = time.Now()
			c.Note("%s is %s, in iteration %d", name(ctx, b, l.Tree), l.Status, l.Iteration)
		}
		err := watching.Follow(ctx, func(ctx context.Context) error { return c.follow(ctx, &watching, l.Tree, &how) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		return c.conclude(ctx, b, l.Tree, how)
	})(cmd, []string{id})
}
