package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/view/watch"
)

func (a *app) newWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [TREE|LOOP]",
		Short: "Watch trees in full-screen mode, or follow a loop",
		Long: "Watch a tree while it runs: its tasks, cost, time left, slowest task and log. Filter tasks by text and " +
			"state, fold, cancel and retry them; press ? for the keys. Without an argument, choose a tree from the list. " +
			"Quitting stops no tree.\n\n" +
			"The ID of a loop follows the loop in lines, as `perdure loop run` prints them: what its agent does, the results " +
			"of iterations, gates. That needs no terminal. Ctrl-C stops watching, not the loop.",
		Example:           "perdure watch\n perdure watch tree-1a2b3c4d\n perdure watch make-the-tests-pass-1a2b3c4d",
		GroupID:           env.GroupInspect,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && env.CheckTree(args[0]) != nil {
				return loop.Watch(a.Env, cmd, args[0])
			}
			if !a.StdinTerminal() || !a.Out.Terminal {
				return env.UsageError("use `perdure status` or `perdure events --follow` instead",
					"watch needs a terminal for input and output")
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error { return a.watch(cmd.Context(), b, args) })
		},
	}
}

func (a *app) watch(ctx context.Context, b *env.Backend, args []string) error {
	var id perdure.TreeID
	if len(args) > 0 { // an unknown tree is an error before the screen changes
		var err error
		if id, err = b.FindTree(ctx, args[0]); err == nil {
			_, err = b.Tree(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	err := watch.Run(ctx, watch.Config{
		Client: b.Client, Tree: id, Input: a.Stdin, Output: a.Stdout, Environ: a.Environ,
		Color: a.Out.Color, Daemon: b.Local == nil,
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
