package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newReplayCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "replay [TREE]",
		Short: "Run the code of a REPL again and compare it with the records",
		Long: "Run the code of all REPLs of a tree again with the recorded replies, answers and times, and " +
			"compare the output, " +
			"exceptions and variables of each block with the record. No model is asked, and nothing " +
			"changes. The exit status " +
			"is 1 if something differs.\n\n" +
			"With --file, the code of a log of the reference implementation of recursive language models is run, with the " +
			"context and the answers to sub-calls that the log has, and the output of each block is compared with the log. " +
			"The code runs in the sandbox. A line that is not of the format is reported with its number.",
		Example: "perdure replay tree-1a2b3c4d\n perdure replay tree-1a2b3c4d --json\n perdure replay --file log.jsonl",
		GroupID: env.GroupInspect,
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return env.Arguments(0, 0, "no tree with --file")(cmd, args)
			}
			return env.Arguments(1, 1, "one tree")(cmd, args)
		},
		ValidArgsFunction: a.CompleteTrees,
	}
	replayTree := a.Run(env.Execute, func(ctx context.Context, b *env.Backend, args []string) error {
		id, err := b.FindTree(ctx, args[0])
		if err != nil && strings.HasSuffix(args[0], ".jsonl") {
			return env.UsageError("perdure replay --file "+args[0]+" runs the code of a log", "%q is not the ID of a tree",
				args[0])
		}
		if err != nil {
			return err
		}
		r, err := b.Replay(ctx, id)
		if err != nil {
			return err
		}
		return differ(a.Print(r, func() { a.printReplay(&r) }), len(r.Differences))
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if file == "" {
			return replayTree(cmd, args)
		}
		return a.replayFile(cmd, file)
	}
	cmd.Flags().StringVar(&file, "file", "", "`FILE` log of the reference implementation to run instead of a tree")
	env.ExecutesStored(cmd)
	env.SettingFlags(cmd, "repl_python", "repl_unsandboxed")
	a.JSONFlag(cmd)
	return cmd
}

// replayFile runs the code of a log again.
func (a *app) replayFile(cmd *cobra.Command, file string) error {
	l, err := a.Load(cmd)
	if err != nil {
		return err
	}
	in, err := os.Open(a.Path(file))
	if err != nil {
		return &perdure.Error{Code: perdure.CodeNotFound, Op: "replay", Msg: fmt.Sprintf("cannot read %q", file), Err: err}
	}
	defer in.Close()
	p := &rlm.LogReplayer{Python: l.ReplPython, Unsandboxed: l.ReplUnsandboxed, Hidden: []string{l.Dir}}
	r, err := p.Replay(cmd.Context(), in)
	if err != nil {
		return err
	}
	err = a.Print(r, func() {
		for _, d := range r.Differences {
			a.Printf("%s:%d: iteration %d, block %d: %s\n", file, d.Line, d.Iteration, d.Block+1, human.Visible(d.What))
		}
		a.printOutcome(r.Blocks, human.Count(r.Iterations, "iteration"), len(r.Differences))
	})
	return differ(err, len(r.Differences))
}

// differ makes differences a failure of the command.
func differ(err error, differences int) error {
	if err == nil && differences > 0 {
		return &env.Exit{Status: env.StatusFailed}
	}
	return err
}

func (a *app) printReplay(r *rlm.Replay) {
	for _, d := range r.Differences {
		a.Printf("%s  turn %d, block %d: %s\n", d.Task, d.Turn, d.Block+1, human.Visible(d.What))
	}
	a.printOutcome(r.Blocks, human.Count(r.Tasks, "task"), len(r.Differences))
}

// printOutcome prints how many blocks were run again, of what, and whether they differed.
func (a *app) printOutcome(blocks int, of string, differences int) {
	same := "each did what is recorded"
	if differences > 0 {
		same = human.Count(differences, "difference")
	}
	a.Printf("%s of %s run again: %s\n", human.Count(blocks, "block"), of, same)
}
