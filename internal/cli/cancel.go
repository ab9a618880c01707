package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// cancelled is the output of cancel --json.
type cancelled struct {
	ID        string `json:"id"`
	Cancelled int64  `json:"cancelled"`
}

func (a *app) newCancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel [TREE|TASK]",
		Short: "Cancel a tree, or a task and its descendants",
		Long: "Cancel the tasks of a tree that have not ended, or a task and its descendants. Running calls are stopped, " +
			"results are kept. A cancelled task cannot be resumed. " +
			"Without an argument, cancel the only tree that has not ended.",
		Example:           "perdure cancel tree-1a2b3c4d --reason \"wrong model\"",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(0, 1, "at most one tree or task"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: a.Run(env.Read, func(ctx context.Context, b *env.Backend, args []string) error {
			name, err := cancelArgument(ctx, b, args)
			if err != nil {
				return err
			}
			n, err := cancel(ctx, b, name, reason)
			if err != nil {
				return err
			}
			return a.Print(cancelled{ID: name, Cancelled: n}, func() {
				if n == 0 {
					a.Printf("%s has already ended; nothing was cancelled\n", name)
				} else {
					a.Printf("cancelled %s of %s\n", human.Count(n, "task"), name)
				}
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` reason, kept with the tree")
	a.JSONFlag(cmd)
	return cmd
}

// cancelArgument returns the ID of what is to be cancelled: the only active tree if none is
// named.
func cancelArgument(ctx context.Context, b *env.Backend, args []string) (string, error) {
	if len(args) > 0 && (strings.HasPrefix(args[0], "tree-") || env.CheckTree(args[0]) == nil) {
		id, err := b.FindTree(ctx, args[0])
		return string(id), err
	}
	if len(args) > 0 {
		return args[0], nil
	}
	page, err := b.Trees(ctx, perdure.TreeFilter{Active: true, Limit: 6})
	var active []string
	for _, t := range page.Trees {
		if t.Kind != perdure.KindRecord {
			active = append(active, string(t.ID))
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(active) == 0:
		return "", env.NotFound("`perdure status` lists recent trees", "there is no tree to cancel: all have ended")
	case len(active) > 1:
		return "", env.UsageError("perdure cancel TREE", "several trees have not ended: %s", strings.Join(active, ", "))
	}
	return active[0], nil
}

func cancel(ctx context.Context, b *env.Backend, id, reason string) (int64, error) {
	if strings.HasPrefix(id, "tree-") {
		tree, err := perdure.ParseTreeID(id)
		if err != nil {
			return 0, err
		}
		return b.CancelTree(ctx, tree, reason)
	}
	task, err := perdure.ParseTaskID(id)
	if err != nil {
		return 0, env.UsageError("IDs look like tree-1a2b3c4d and task-0001",
			"%q is not the ID of a tree or task", id)
	}
	return b.CancelTask(ctx, task, reason)
}
