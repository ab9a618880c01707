package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/view/watch"
)

func (a *app) newWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [TREE]",
		Short: "Watch trees on the full screen: tasks, cost, time left, log",
		Long: "Watch a tree while it runs: its tasks to fold and unfold, cost, time left, what is slowest, and the log. " +
			"Filter " +
			"by text and by state, cancel, retry; ? shows the keys. Without a tree, choose one from the list. It needs a " +
			"terminal, and works with a daemon and without. Leaving it stops nothing.",
		Example:           "perdure watch\n perdure watch tree-1a2b3c4d",
		GroupID:           groupSee,
		Args:              arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.completeTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			var id perdure.TreeID
			if len(args) == 1 {
				var err error
				if id, err = perdure.ParseTreeID(args[0]); err != nil {
					return err
				}
			}
			if _, terminal := a.env.Terminal(a.env.Stdin); !terminal || !a.out.terminal {
				return env.UsageError("`perdure status` shows how far trees are, `perdure events --follow` prints what happens "+
					"line by line",
					"watch needs a terminal for input and output")
			}
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.withBackend(cmd.Context(), l, toRead, func(b *backend) error { return a.watch(cmd.Context(), b, id) })
		},
	}
}

func (a *app) watch(ctx context.Context, b *backend, id perdure.TreeID) error {
	if id != "" { // a tree that is not there is told before the screen changes
		if _, err := b.Tree(ctx, id); err != nil {
			return err
		}
	}
	err := watch.Run(ctx, watch.Config{
		Client: b.Client, Tree: id, Input: a.env.Stdin, Output: a.env.Stdout, Environ: a.env.Environ,
		Color: a.out.color, Daemon: b.local == nil,
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
