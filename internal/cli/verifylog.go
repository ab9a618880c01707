package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (a *app) newVerifyLogCommand() *cobra.Command {
	var accept acceptance
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
			if err := checkTrees(args); err != nil {
				return err
			}
			if err := accept.check(args, a.JSON); err != nil {
				return err
			}
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), l, false, func(s *perdure.Store) error {
				trees := make([]perdure.TreeID, len(args))
				for i, arg := range args {
					var err error
					if trees[i], err = s.FindTree(cmd.Context(), arg); err != nil {
						return err
					}
				}
				r, err := s.VerifyLog(cmd.Context(), trees...)
				if err != nil {
					return err
				}
				if accept.wanted && !r.Intact {
					return a.acceptLog(cmd.Context(), s, &r, accept.yes)
				}
				err = a.Print(r, func() { a.printVerified(&r) })
				if err == nil && !r.Intact {
					return &env.Exit{Status: env.StatusFailed, Msg: "the log was changed outside of perdure",
						Hint: "if you restored a backup or began a new store yourself, `perdure verify-log --accept` accepts its state"}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&accept.wanted, acceptFlag, false,
		"accept the state of a restored backup or a new store; asks on a terminal")
	cmd.Flags().BoolVar(&accept.yes, "yes", false, "with --accept: do not ask")
	a.JSONFlag(cmd)
	return cmd
}

const acceptFlag = "accept"

// acceptance are the flags to accept a restored backup.
type acceptance struct{ wanted, yes bool }

func (f acceptance) check(trees []string, json bool) error {
	switch {
	case !f.wanted && f.yes:
		return env.UsageError("add --accept", "--yes is only for --accept")
	case f.wanted && len(trees) > 0:
		return env.UsageError("omit the IDs of trees", "--accept is for the whole store, which a backup restores")
	case f.wanted && json && !f.yes:
		return env.UsageError("add --yes", "--accept with --json cannot ask")
	}
	return nil
}

// acceptLog shows the faults and records the state of the store as the right one if the user
// agrees.
func (a *app) acceptLog(ctx context.Context, s *perdure.Store, r *perdure.LogReport, yes bool) error {
	if !yes {
		a.printVerified(r)
		if !a.Agrees("did you restore a backup or begin a new store, and accept this state?") {
			return &env.Exit{Status: env.StatusFailed, Msg: "the log was changed outside of perdure",
				Hint: "answer y on a terminal, or use --yes, to accept the state of a restored backup"}
		}
	}
	if err := s.AcceptLog(ctx, r); err != nil {
		return err
	}
	return a.Print(r, func() {
		if yes {
			a.printVerified(r)
		}
		a.Note("accepted; later changes are found from this state on")
	})
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
		for _, line := range faultLines(t.Faults) {
			a.Printf("  %s\n", line)
		}
	}
	if r.Intact {
		a.Printf("the log is intact: %s\n", human.Count(len(r.Trees), "chain"))
	}
}

// faultLines returns faults one a line, repeated ones once with their number.
func faultLines(faults []perdure.LogFault) []string {
	var lines []string
	for from := 0; from < len(faults); {
		f, to := faults[from], from
		for to < len(faults) && faults[to].Kind == f.Kind && faults[to].Detail == f.Detail {
			to++
		}
		line := f.Kind + ": " + human.Visible(f.Detail)
		if n := to - from; n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		}
		lines, from = append(lines, line), to
	}
	return lines
}
