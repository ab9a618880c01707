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
		Use:   "cancel TREE|TASK",
		Short: "Cancel a tree, or a task and its descendants",
		Long: "Cancel the tasks of a tree that have not ended, or a task and its descendants. Running calls are stopped, " +
			"results are kept. A cancelled task cannot be resumed.",
		Example:           "perdure cancel tree-1a2b3c4d --reason \"wrong model\"",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(1, 1, "one tree or task"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: a.Run(env.Read, func(ctx context.Context, b *env.Backend, args []string) error {
			n, err := cancel(ctx, b, args[0], reason)
			if err != nil {
				return err
			}
			return a.Print(cancelled{ID: args[0], Cancelled: n}, func() {
				if n == 0 {
					a.Printf("%s has already ended; nothing was cancelled\n", args[0])
				} else {
					a.Printf("cancelled %s of %s\n", human.Count(n, "task"), args[0])
				}
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` reason, kept with the tree")
	a.JSONFlag(cmd)
	return cmd
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
