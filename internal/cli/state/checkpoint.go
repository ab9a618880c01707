package state

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (c *commands) newCheckpointCommand() *cobra.Command {
	return env.Group(&cobra.Command{
		Use:   "checkpoint",
		Short: "Create checkpoints of a state, compare, roll back",
		Long: "Create named checkpoints of a state, compare them and roll back. The checkpoint of a tree includes the " +
			"states " +
			"of its tasks. A checkpoint copies nothing: values that are replaced later are kept. Every state starts with " +
			"the checkpoint initial_state.",
		GroupID: env.GroupState,
	}, c.newCheckpointCreateCommand(), c.newCheckpointListCommand(), c.newDiffCommand(), c.newRollbackCommand())
}

func (c *commands) newCheckpointCreateCommand() *cobra.Command {
	var s scopeFlags
	var description string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a checkpoint of a state",
		Long: "Create a checkpoint of the current state and print its ID. A state has at most 100 checkpoints; retention " +
			"keeps the last 10.",
		Example: "perdure checkpoint create before_cleanup --tree tree-1a2b3c4d",
		Args:    env.Arguments(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				made, err := t.SaveCheckpoint(ctx, t.ref, args[0], description)
				if err != nil {
					return err
				}
				if asJSON {
					return c.PrintJSON(made)
				}
				c.Printf("%s\n", made.ID)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	cmd.Flags().StringVar(&description, "description", "", "`TEXT` description of the checkpoint")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (c *commands) newCheckpointListCommand() *cobra.Command {
	var s scopeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the checkpoints of a state",
		Long:  "List the checkpoints of a state, the oldest first. With --json the output is one object a line.",
		Args:  env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.on(cmd, &s, false, func(ctx context.Context, t *target) error {
				list, err := t.Checkpoints(ctx, t.ref)
				if err != nil {
					return err
				}
				for _, one := range list {
					if !asJSON {
						c.Printf("%s  %s  %s  %s\n", one.ID, human.Stamp(one.Time),
							c.Out.Bold(env.Pad(env.OneLine(one.Name, 40), nameWidth)),
							c.Out.Dim(env.OneLine(one.Description, 60)))
					} else if err := c.PrintJSON(one); err != nil {
						return err
					}
				}
				if len(list) == 0 && !asJSON {
					c.Hint("no variable was ever set in %s", place(t.ref))
				}
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (c *commands) newDiffCommand() *cobra.Command {
	var s scopeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff FROM [TO]",
		Short: "Compare two versions of a state",
		Long: "Compare two versions of a state. Each is a checkpoint by name or ID, or a mutation, which means the state " +
			"before it. Without TO, compare with the current state. With --json the output is one object a line.",
		Example:           "perdure checkpoint diff before_cleanup\n perdure checkpoint diff initial_state ckpt-0000001a",
		Args:              env.Arguments(1, 2, "one or two checkpoints"),
		ValidArgsFunction: c.completeCheckpoints(&s, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := ""
			if len(args) == 2 {
				to = args[1]
			}
			return c.on(cmd, &s, false, func(ctx context.Context, t *target) error {
				changes, err := t.Diff(ctx, t.ref, args[0], to)
				if err != nil {
					return err
				}
				for i := range changes {
					if !asJSON {
						c.Printf("%s\n", c.change(t.ref, &changes[i]))
					} else if err := c.PrintJSON(changes[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// change returns a difference as a line.
func (c *commands) change(ref perdure.StateRef, d *perdure.VarChange) string {
	sign := map[string]string{"added": "+", "removed": "-"}[d.Change]
	if sign == "" {
		sign = "~"
	}
	name := d.Name
	if d.Task != 0 && ref.Task == 0 {
		name = d.Task.String() + " " + name
	}
	return sign + " " + c.Out.Bold(env.Pad(name, nameWidth)) + "  " + c.step(d.Old, d.OldSize, d.New, d.NewSize)
}

func (c *commands) newRollbackCommand() *cobra.Command {
	var s scopeFlags
	var source, reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rollback TO",
		Short: "Restore an earlier version of a state",
		Long: "Restore a state at a checkpoint (by name or ID), or before a mutation: variables that were added since are " +
			"removed, deleted ones are restored. The prompt, and a Final that completed its task, do not change. A rollback " +
			"is a mutation itself and can be undone.",
		Example:           "perdure checkpoint rollback before_cleanup\n perdure checkpoint rollback mut-0000002f",
		Args:              env.Arguments(1, 1, "one checkpoint"),
		ValidArgsFunction: c.completeCheckpoints(&s, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.on(cmd, &s, true, func(ctx context.Context, t *target) error {
				r, err := t.Rollback(ctx, t.ref, args[0], perdure.Cause{Source: source, Reason: reason})
				if err != nil {
					return err
				}
				if asJSON {
					return c.PrintJSON(r)
				}
				c.Printf("%s restored, %d removed; `perdure checkpoint rollback %s` undoes it\n",
					human.Count(r.Restored, "variable"), r.Removed, r.Mutation)
				return nil
			})
		},
	}
	c.scopeFlags(cmd, &s)
	cmd.Flags().StringVar(&source, "source", "user_edit", "`NAME` source of the change, for the history")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` reason, for the history")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// completeCheckpoints offers the checkpoints of the selected state.
func (c *commands) completeCheckpoints(s *scopeFlags, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var found []cobra.Completion
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		err := c.on(cmd, s, false, func(ctx context.Context, t *target) error {
			list, err := t.Checkpoints(ctx, t.ref)
			for _, one := range list {
				found = append(found, cobra.CompletionWithDesc(one.Name, one.ID.String()))
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // no store, no checkpoints
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
