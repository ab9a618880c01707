package loopcmd

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

func (c *commands) newAnswerCommand() *cobra.Command {
	var id, reason string
	var number int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "answer [ANSWER]",
		Short: "Answer the gate that a loop waits at",
		Long: "Answer the gate that a loop waits at: approve, reject, abort, and what else the gate offers. Without an answer, show what " +
			"it asks, with the whole diff. The reason goes into the record, and into the agent's next prompt.",
		Example: "perdure loop answer\n perdure loop answer reject --reason \"Keep the tests; fix the parser instead\"",
		Args:    c.Arguments(0, 1, "at most one answer"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.Read(cmd, func(s Store) error {
				var which []string
				if id != "" {
					which = []string{id}
				}
				l, err := find(ctx, s, which)
				if err != nil {
					return err
				}
				gates, err := s.Gates(ctx, l.Tree)
				if err != nil {
					return err
				}
				at := slices.IndexFunc(gates, func(g record.Gate) bool { return g.AnsweredAt == nil && (number == 0 || g.Number == number) })
				if at < 0 {
					return &perdure.Error{Code: perdure.CodeNotFound, Op: "answer gate", Msg: fmt.Sprintf("%s: %s", name(ctx, s, l.Tree), errNoGate)}
				}
				if len(args) == 0 {
					return c.ask(&gates[at], name(ctx, s, l.Tree), asJSON)
				}
				g, err := s.AnswerGate(ctx, l.Tree, gates[at].Number, record.Decision{Answer: args[0], By: c.User(), Reason: reason})
				if err != nil {
					return err
				}
				if asJSON {
					return c.PrintJSON(&g)
				}
				c.say("gate %d of %s is answered: %s; where nobody runs the loop, `perdure loop resume` goes on", gates[at].Number, name(ctx, s, l.Tree), args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&id, "loop", "", "the `loop` (default: the one that has not ended)")
	cmd.Flags().IntVar(&number, "gate", 0, "the number of the gate (default: the open one)")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the gate as one JSON object")
	return cmd
}

// ask shows what a gate asks.
func (c *commands) ask(g *record.Gate, id string, asJSON bool) error {
	if asJSON {
		return c.PrintJSON(g)
	}
	q, err := g.Asked()
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, c.gateText(&q, id, c.Colour))
	return err
}
