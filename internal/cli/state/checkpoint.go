package state

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// CheckpointCommand returns the command checkpoint.
func CheckpointCommand(e *env.Env) *cobra.Command {
	c := &commands{Env: e}
	return env.Group(&cobra.Command{
		Use:   "checkpoint",
		Short: "Create checkpoints of a state, compare, roll back",
		Long: "Create named checkpoints of a state, compare them and roll back. The checkpoint of a tree includes the " +
			"states of its tasks. A checkpoint copies nothing: values that are replaced later are kept. Every state starts " +
			"with the checkpoint initial_state.",
		GroupID: env.GroupState,
	}, c.newCheckpointCreateCommand(), c.newCheckpointListCommand(), c.newCheckpointDeleteCommand(),
		c.newDiffCommand(), c.newRollbackCommand())
}

func (c *commands) newCheckpointCreateCommand() *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create a checkpoint of a state",
		Long: "Create a checkpoint of the current state and print its ID. A state has at most 100 checkpoints: the next " +
			"one removes the oldest without a name, and is refused if all have names; `perdure checkpoint delete` removes " +
			"one. Retention keeps the last 10.",
		Example: "perdure checkpoint create before_cleanup --tree tree-1a2b3c4d",
		Args:    env.Arguments(0, 1, "at most one name"),
		RunE: c.run(env.Write, func(ctx context.Context, t *target, args []string) error {
			if len(args) > 0 && strings.TrimSpace(args[0]) == "" { // a variable of a script that is not set
				return env.UsageError("leave it out for a checkpoint without a name", "the name of the checkpoint is empty")
			}
			made, err := t.SaveCheckpoint(ctx, t.ref, strings.Join(args, ""), description)
			if err != nil {
				return err
			}
			return c.Print(made, func() { c.Printf("%s\n", made.ID) })
		}),
	}
	c.scopeFlags(cmd)
	cmd.Flags().StringVar(&description, "description", "", "`TEXT` description of the checkpoint")
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) newCheckpointDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete CHECKPOINT",
		Short: "Remove a checkpoint of a state",
		Long: "Remove a checkpoint of a state, by name or ID; of several with the name the newest. The variables do not " +
			"change.",
		Example:           "perdure checkpoint delete before_cleanup --tree tree-1a2b3c4d",
		Args:              env.Arguments(1, 1, "one checkpoint"),
		ValidArgsFunction: c.completeCheckpoints(1),
		RunE: c.run(env.Write, func(ctx context.Context, t *target, args []string) error {
			if err := t.DeleteCheckpoint(ctx, t.ref, args[0]); err != nil {
				return err
			}
			return c.Print(map[string]string{"deleted": args[0]}, func() {})
		}),
	}
	c.scopeFlags(cmd)
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) newCheckpointListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the checkpoints of a state",
		Long:  "List the checkpoints of a state, the oldest first. With --json the output is one object a line.",
		Args:  env.Arguments(0, 0, "no arguments"),
		RunE: c.run(env.Read, func(ctx context.Context, t *target, _ []string) error {
			list, err := t.Checkpoints(ctx, t.ref)
			if err != nil {
				return err
			}
			for _, one := range list {
				err := c.Print(one, func() {
					c.Printf("%s  %s  %s  %s\n", one.ID, human.Stamp(one.Time),
						c.Out.Bold(env.Pad(env.OneLine(one.Name, 40), nameWidth)), c.Out.Dim(env.OneLine(one.Description, 60)))
				})
				if err != nil {
					return err
				}
			}
			if len(list) == 0 && !c.JSON {
				c.Hint("no variable was ever set in %s", place(t.ref))
			}
			return nil
		}),
	}
	c.scopeFlags(cmd)
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) newDiffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff FROM [TO]",
		Short: "Compare two versions of a state",
		Long: "Compare two versions of a state. Each is a checkpoint by name or ID, or a mutation, which means the state " +
			"before it. Without TO, compare with the current state. With --json the output is one object a line.",
		Example:           "perdure checkpoint diff before_cleanup\n perdure checkpoint diff initial_state ckpt-0000001a",
		Args:              env.Arguments(1, 2, "one or two checkpoints"),
		ValidArgsFunction: c.completeCheckpoints(2),
		RunE: c.run(env.Read, func(ctx context.Context, t *target, args []string) error {
			changes, err := t.Diff(ctx, t.ref, args[0], strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			for _, d := range changes {
				if err := c.Print(d, func() { c.Printf("%s\n", c.change(t.ref, &d)) }); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	c.scopeFlags(cmd)
	c.JSONFlag(cmd)
	return cmd
}

// change returns a difference as a line.
func (c *commands) change(ref perdure.StateRef, d *perdure.VarChange) string {
	sign := cmp.Or(map[string]string{"added": "+", "removed": "-"}[d.Change], "~")
	name := d.Name
	if d.Task != 0 && ref.Task == 0 {
		name = d.Task.String() + " " + name
	}
	return sign + " " + c.Out.Bold(env.Pad(name, nameWidth)) + "  " + c.step(d.Old, d.OldSize, d.New, d.NewSize)
}

func (c *commands) newRollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback TO",
		Short: "Restore an earlier version of a state",
		Long: "Restore a state at a checkpoint (by name or ID), or before a mutation: variables that were added since are " +
			"removed, deleted ones are restored. The prompt, and a Final that completed its task, do not change. A rollback " +
			"is a mutation itself and can be undone.",
		Example:           "perdure checkpoint rollback before_cleanup\n perdure checkpoint rollback mut-0000002f",
		Args:              env.Arguments(1, 1, "one checkpoint"),
		ValidArgsFunction: c.completeCheckpoints(1),
		RunE: c.run(env.Write, func(ctx context.Context, t *target, args []string) error {
			r, err := t.Rollback(ctx, t.ref, args[0], t.cause)
			if err != nil {
				return err
			}
			return c.Print(r, func() {
				c.Printf("%s restored, %d removed; `perdure checkpoint rollback %s` undoes it\n",
					human.Count(r.Restored, "variable"), r.Removed, r.Mutation)
			})
		}),
	}
	c.scopeFlags(cmd)
	c.causeFlags(cmd)
	c.JSONFlag(cmd)
	return cmd
}

// completeCheckpoints offers the checkpoints of the selected state.
func (c *commands) completeCheckpoints(most int) cobra.CompletionFunc {
	return c.complete(most, func(ctx context.Context, t *target, add func(word, about string)) error {
		list, err := t.Checkpoints(ctx, t.ref)
		for _, one := range list {
			add(one.Name, one.ID.String())
		}
		return err
	})
}
