package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "Retry a failed task",
		Long: "Retry a failed task, even if it has no attempts left. Its parents that failed because of it are queued " +
			"again. A daemon runs it at once; without one, `perdure resume` does. The exit status is 5 if the task has " +
			"not failed, or if one of its parents has completed or was cancelled.",
		Example: "perdure retry task-0007 && perdure resume",
		GroupID: env.GroupRun,
		Args:    env.Arguments(1, 1, "one task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := perdure.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error {
				t, err := b.RetryTask(cmd.Context(), id)
				if err != nil {
					return err
				}
				next := "the daemon runs it"
				if b.Local != nil {
					next = "`perdure resume " + string(t.Tree) + "` runs it"
				}
				return a.Print(t, func() { a.Printf("%s is %s; %s\n", t.ID, t.State, next) })
			})
		},
	}
	a.JSONFlag(cmd)
	return cmd
}
