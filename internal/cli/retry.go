package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newRetryCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "Give a failed task another attempt",
		Long: "Give a failed task another attempt, also when it has none left. Parents that failed because of it are " +
			"queued again with it. A daemon runs it at once; without one, perdure resume does. Only failed tasks can be " +
			"retried, and only while everything above them has not completed or been cancelled: exit status 5 otherwise.",
		Example: "perdure retry task-0007 && perdure resume",
		GroupID: env.GroupRun,
		Args:    env.Arguments(1, 1, "one task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := perdure.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			return a.With(cmd.Context(), l, env.Read, func(b *env.Backend) error {
				t, err := b.RetryTask(cmd.Context(), id)
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(t)
				}
				next := "the daemon runs it"
				if b.Local != nil {
					next = "`perdure resume " + string(t.Tree) + "` runs it"
				}
				a.Printf("%s is %s again; %s\n", t.ID, t.State, next)
				return nil
			})
		},
	}
	env.JSONFlag(cmd, &asJSON)
	return cmd
}
