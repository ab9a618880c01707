package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newReplayCommand() *cobra.Command {
	var file string
	var contexts []string
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
			"The code runs in the sandbox, by the rules of the program that wrote the log. A log of several completions is " +
			"replayed run by run. A line that is not of the format is reported with its number; a last line that is cut off " +
			"is left out.",
		Example: "perdure replay tree-1a2b3c4d\n perdure replay tree-1a2b3c4d --json\n perdure replay --file log.jsonl\n" +
			" perdure replay --file log.jsonl.gz --context report.txt",
		GroupID: env.GroupInspect,
		Args: func(cmd *cobra.Command, args []string) error {
			if file == "" && len(contexts) > 0 {
				return env.UsageError("perdure replay --file LOG --context FILE", "--context needs --file")
			}
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
		return a.replayFile(cmd, file, contexts)
	}
	cmd.Flags().StringVar(&file, "file", "", "`FILE` log of the reference implementation to run instead of a tree")
	cmd.Flags().StringArrayVarP(&contexts, "context", "c", nil, "`FILE` context of a log that has none; repeat it for "+
		"each run of the log")
	env.ExecutesStored(cmd)
	env.SettingFlags(cmd, "repl_python", "repl_unsandboxed")
	a.JSONFlag(cmd)
	return cmd
}

// replayFile runs the code of a log again.
func (a *app) replayFile(cmd *cobra.Command, file string, contexts []string) error {
	l, err := a.Load(cmd)
	if err != nil {
		return err
	}
	p := &rlm.LogReplayer{Python: l.ReplPython, Unsandboxed: l.ReplUnsandboxed, Hidden: []string{l.Dir}}
	for _, name := range contexts {
		text, err := a.readText(name)
		if err != nil {
			return err
		}
		p.Contexts = append(p.Contexts, text)
	}
	in, err := os.Open(a.Path(file))
	if err != nil {
		return unreadable(file, err)
	}
	defer in.Close()
	r, err := p.Replay(cmd.Context(), in)
	if err != nil {
		return err
	}
	err = a.Print(r, func() { a.printLogReplay(file, &r) })
	return differ(err, len(r.Differences))
}

// readText reads a file that is UTF-8 text.
func (a *app) readText(name string) (string, error) {
	raw, err := os.ReadFile(a.Path(name))
	if err != nil {
		return "", unreadable(name, err)
	}
	text := strings.TrimPrefix(string(raw), "\ufeff")
	if !utf8.ValidString(text) {
		return "", env.UsageError("convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 "+name,
			"the context %q is not UTF-8", name)
	}
	return text, nil
}

// unreadable is the error of a file that cannot be read.
func unreadable(name string, err error) error {
	return &perdure.Error{Code: perdure.CodeNotFound, Op: "replay", Msg: fmt.Sprintf("cannot read %q", name), Err: err}
}

// printLogReplay prints what came of the replay of a log.
func (a *app) printLogReplay(file string, r *rlm.LogReplay) {
	if r.TornLine > 0 {
		a.Printf("%s:%d: the line is cut off and was left out; the %s before it are used\n", file, r.TornLine,
			human.Count(r.Iterations, "iteration"))
	}
	for i := range r.Runs {
		if run := &r.Runs[i]; len(r.Runs) > 1 {
			a.printLogRun(run)
		}
		for k := range r.Differences {
			if d := &r.Differences[k]; d.Run == r.Runs[i].Run {
				a.Printf("%s:%d: iteration %d, block %d: %s\n", file, d.Line, d.Iteration, d.Block+1,
					human.Visible(d.String()))
			}
		}
	}
	if r.WithoutContext && len(r.Differences) > 0 {
		a.Printf("the log has no context: add --context FILE if the code read one\n")
	}
	of := human.Count(r.Iterations, "iteration")
	if len(r.Runs) > 1 {
		of += " in " + human.Count(len(r.Runs), "run")
	}
	a.printOutcome(r.Blocks, of, len(r.Differences))
}

// printLogRun prints the line of a run of a log.
func (a *app) printLogRun(run *rlm.LogRun) {
	same := "each did what is recorded"
	if run.Differences > 0 {
		same = human.Count(run.Differences, "difference")
	}
	model, on := "", ""
	if run.Model != "" {
		model = ", model " + run.Model
	}
	if run.Continues {
		on = ", with the variables of the run before"
	}
	a.Printf("run %d (from line %d%s%s): %s, %s: %s\n", run.Run, run.Line, human.Visible(model), on,
		human.Count(run.Iterations, "iteration"), human.Count(run.Blocks, "block"), same)
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
