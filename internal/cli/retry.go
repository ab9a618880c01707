package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newRetryCommand() *cobra.Command {
	var missing bool
	var flags changeFlags
	cmd := &cobra.Command{
		Use:   "retry TASK | --missing TREE",
		Short: "Retry a failed task, or the missing parts of a tree",
		Long: "Retry a failed task, even if it has no attempts left, with the missing parts below it. Its parents merge " +
			"again. With --missing, take up all missing parts of a tree, as `perdure resume TREE` does with the same flags. " +
			"A daemon runs them at once; without one, `perdure resume` does. The exit status is 5 if the task has not failed, " +
			"or if one of its parents completed without it or was cancelled.",
		Example: "perdure retry task-0007 && perdure resume\n perdure retry --missing tree-1a2b3c4d --budget-calls 500",
		GroupID: env.GroupRun,
		Args:    env.Arguments(1, 1, "one task, or --missing and one tree"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			changes, err := flags.changes(a, cmd, l)
			if err != nil {
				return err
			}
			if len(changes) > 0 && !missing {
				return env.UsageError("perdure retry --missing TREE …",
					"limits and models are changed of a tree, not of a task")
			}
			return a.With(cmd.Context(), l, env.Read, func(b *env.Backend) error {
				if missing {
					return a.retryMissing(cmd.Context(), b, args[0], changes)
				}
				return a.retryTask(cmd.Context(), b, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&missing, "missing", false, "take up all missing parts of a tree")
	flags.register(cmd)
	a.JSONFlag(cmd)
	env.GroupFlags(cmd, env.FlagGroup{Title: "Retry", Flags: "missing json"},
		env.FlagGroup{Title: "With --missing", Flags: strings.Join([]string{"budget-usd budget-tokens budget-calls timeout",
			"max-nodes model sub-model base-url max-attempts search-replies patience max-wait"}, " ")})
	return cmd
}

func (a *app) retryTask(ctx context.Context, b *env.Backend, arg string) error {
	id, err := perdure.ParseTaskID(arg)
	if err != nil {
		if env.CheckTree(arg) == nil {
			return env.UsageError("perdure retry --missing "+arg, "%q is a tree, not a task", arg)
		}
		return err
	}
	t, err := b.RetryTask(ctx, id)
	if err != nil {
		return err
	}
	return a.Print(t, func() { a.Printf("%s is %s; %s\n", t.ID, t.State, runsNext(b, t.Tree)) })
}

func (a *app) retryMissing(ctx context.Context, b *env.Backend, arg string, changes json.RawMessage) error {
	id, err := b.FindTree(ctx, arg)
	if err != nil {
		return err
	}
	if _, err := resumable(ctx, b, id); err != nil {
		return err
	}
	r, err := b.Resume(ctx, id, client.ResumeRequest{Changes: changes})
	if err != nil {
		return err
	}
	return a.Print(r, func() {
		if r.State.Terminal() {
			a.Printf("%s is %s, and nothing is missing\n", id, r.State)
			return
		}
		a.Printf("%s: %s; %s\n", id, recovered(&r), runsNext(b, id))
	})
}

// runsNext returns the text for what runs the queued tasks of a tree.
func runsNext(b *env.Backend, id perdure.TreeID) string {
	if b.Local != nil {
		return "`perdure resume " + string(id) + "` runs it"
	}
	return "the daemon runs it"
}
