package cli

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (a *app) newVerifyLogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify-log [TREE...]",
		Short: "Verify that the event log was not changed",
		Long: "Compare the events of the trees, all without arguments, with their hash chain, with the heads of it that " +
			"were recorded in the user's state folder, and rows with their digests in the log: loops with their " +
			"iterations, gates and false alarms, prompts, results and calls of tasks, variables, and handoff ledgers. " +
			"The exit status is 1 if something was changed outside of perdure. The command reads the store itself, " +
			"also while a daemon runs.",
		Example:           "perdure verify-log\n perdure verify-log tree-1a2b3c4d --json",
		GroupID:           env.GroupInspect,
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			trees := make([]perdure.TreeID, len(args))
			for i, arg := range args {
				var err error
				if trees[i], err = perdure.ParseTreeID(arg); err != nil {
					return err
				}
			}
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), l, false, func(s *perdure.Store) error {
				r, err := s.VerifyLog(cmd.Context(), trees...)
				if err != nil {
					return err
				}
				err = a.Print(r, func() { a.printVerified(&r) })
				if err == nil && !r.Intact {
					return &env.Exit{Status: env.StatusFailed, Msg: "the log was changed outside of perdure",
						Hint: "if you restored a backup yourself, remove " + cmp.Or(r.Heads, "the recorded heads") +
							" to accept it"}
				}
				return err
			})
		},
	}
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) printVerified(r *perdure.LogReport) {
	for _, t := range r.Trees {
		mark := a.Out.Mark(perdure.Completed)
		if !t.Intact {
			mark = a.Out.Mark(perdure.Failed)
		}
		a.Printf("%s %s  %s", mark, cmp.Or(string(t.Tree), "store"), human.Count(t.Events, "event"))
		switch {
		case t.Recorded > 0:
			a.Printf(", %d recorded outside of the store at %s", t.Recorded, t.RecordedAt.Format(time.RFC3339))
		case t.Events > 0:
			a.Printf(", none recorded outside of the store")
		}
		if t.Unchained > 0 {
			a.Printf("; events up to %d are from before the chain and not verified", t.Unchained)
		}
		a.Printf("\n")
		for _, f := range t.Faults {
			a.Printf("  %s: %s\n", f.Kind, human.Visible(f.Detail))
		}
	}
	if r.Intact {
		a.Printf("the log is intact: %s\n", human.Count(len(r.Trees), "chain"))
	}
}
