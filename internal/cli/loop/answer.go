package loop

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/gate"
	loopview "github.com/perdure/perdure/internal/view/loop"
)

func (c *commands) newAnswerCommand() *cobra.Command {
	var id string
	var f gate.Flags
	cmd := &cobra.Command{
		Use:   "answer [ANSWER]",
		Short: "Answer the gate that a loop waits at",
		Long: "Answer the gate that a loop waits at: approve, reject, abort, or another answer that the gate lists. " +
			"Without an answer, show the gate with its diff. The reason is kept with the loop and added to the agent's " +
			"next prompt.",
		Example: "perdure loop answer\n perdure loop answer reject --reason \"Keep the tests; fix the parser instead\"",
		Args:    env.Arguments(0, 1, "at most one answer"),
		RunE: c.Run(env.Read, func(ctx context.Context, b *env.Backend, args []string) error {
			l, err := Find(ctx, b.Client, id)
			if err != nil {
				return err
			}
			f.Answer = strings.Join(args, "")
			return gate.Answer(ctx, c.Env, b, c.target(ctx, b, l.Tree), &f)
		}),
	}
	cmd.Flags().StringVar(&id, "loop", "", "`LOOP` loop; default: the one that has not ended")
	f.Register(c.Env, cmd)
	return cmd
}

// target returns the loop as the target of an answer.
func (c *commands) target(ctx context.Context, b *env.Backend, id perdure.TreeID) *gate.Target {
	t := gate.Loop(id, name(ctx, b, id))
	t.Note = c.heldOutNote(ctx, b, id)
	return t
}

// heldOutNote returns the last result of the held-out check of a loop; empty if there is none.
func (c *commands) heldOutNote(ctx context.Context, b *env.Backend, id perdure.TreeID) string {
	var in loopview.Input
	var err error
	if in.Tree, err = b.Tree(ctx, id); err == nil {
		in.Loop, err = b.Loop(ctx, id)
	}
	if err != nil {
		return "" // the gate is shown without it
	}
	if text := c.readHeldOut(&in).Text(); text != "" {
		return "Held-out check, " + text
	}
	return ""
}
