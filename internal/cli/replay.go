package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newReplayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay TREE",
		Short: "Run the code of a REPL again and compare it with the records",
		Long: "Run the code of all REPLs of a tree again with the recorded replies, answers and times, and " +
			"compare the output, " +
			"exceptions and variables of each block with the record. No model is asked, and nothing " +
			"changes. The exit status " +
			"is 1 if something differs.",
		Example:           "perdure replay tree-1a2b3c4d\n perdure replay tree-1a2b3c4d --json",
		GroupID:           env.GroupInspect,
		Args:              env.Arguments(1, 1, "one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: a.Run(env.Execute, func(ctx context.Context, b *env.Backend, args []string) error {
			id, err := perdure.ParseTreeID(args[0])
			if err != nil {
				return err
			}
			r, err := b.Replay(ctx, id)
			if err != nil {
				return err
			}
			err = a.Print(r, func() { a.printReplay(&r) })
			if err == nil && len(r.Differences) > 0 {
				err = &env.Exit{Status: env.StatusFailed}
			}
			return err
		}),
	}
	env.ExecutesStored(cmd)
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) printReplay(r *rlm.Replay) {
	for _, d := range r.Differences {
		a.Printf("%s  turn %d, block %d: %s\n", d.Task, d.Turn, d.Block+1, human.Visible(d.What))
	}
	same := "each did what is recorded"
	if n := len(r.Differences); n > 0 {
		same = human.Count(n, "difference")
	}
	a.Printf("%s of %s run again: %s\n", human.Count(r.Blocks, "block"), human.Count(r.Tasks, "task"), same)
}
