// Package transfer implements the commands export and import.
package transfer

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/export"
	"github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/internal/view/report"
	"github.com/perdure/perdure/rlm"
)

type commands struct{ *env.Env }

// ExportCommand returns the command export.
func ExportCommand(e *env.Env) *cobra.Command {
	c := &commands{e}
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export [TREE]",
		Short: "Export a tree, a .aiwg folder or a state",
		Long: "Write a tree, the newest one without an argument, as JSON Lines in a fixed order: " +
			"configuration, context, tasks with results, calls, events and " +
			"gates, for a loop also iterations, test results and false alarms (perdure schema export-line). The last line " +
			"contains the number and the SHA-256 of the others; if it is missing, the file is truncated. The output contains " +
			"prompts, results and contexts unchanged. `perdure import` reads the export of a run, but not one of a loop or " +
			"--without-context.\n\n" +
			"With --layout aiwg, the first argument is a new folder and the others are trees; without trees, all trees and " +
			"states are written: daemon/tasks.json, rlm/ and ralph/loops/ (perdure schema tasks-file, rlm-task-tree, " +
			"loop-state). `perdure import` reads them. With --state, one state is written with variables, history and " +
			"checkpoints (perdure schema rlm-state).\n\n" +
			"With --format rlm-jsonl, a run of planner repl is written as a log of the reference implementation of recursive " +
			"language models, which its public viewer opens: a line with the settings, then one for each turn with its code, " +
			"sub-calls and results. `perdure replay --file` runs such a log again.",
		Example: "perdure export tree-1a2b3c4d -o tree.jsonl\n" +
			"perdure export tree-1a2b3c4d | jq -r 'select(.type == \"task\").task.prompt'\n" +
			" perdure export tree-1a2b3c4d --format rlm-jsonl -o run.jsonl\n" +
			" perdure export --layout aiwg out/.aiwg\n perdure export --state --tree tree-1a2b3c4d -o state.json",
		GroupID:           env.GroupInspect,
		Args:              func(cmd *cobra.Command, args []string) error { return f.check(c, cmd, args) },
		ValidArgsFunction: c.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.Load(cmd)
			if err != nil {
				return err
			}
			switch {
			case f.layout != "":
				return c.exportLayout(cmd.Context(), l, args[0], args[1:])
			case f.state:
				return c.exportState(cmd.Context(), l, &f)
			case f.format != "":
				return c.exportLog(cmd.Context(), l, args, &f)
			}
			return c.export(cmd.Context(), l, args, &f)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` write to a file instead of standard output")
	cmd.Flags().BoolVar(&f.withoutContext, "without-context", false, "omit the text of the context's files; such an "+
		"export cannot be imported")
	cmd.Flags().StringVar(&f.layout, "layout", "", "`LAYOUT` write a folder in this layout: aiwg")
	cmd.Flags().BoolVar(&f.state, "state", false, "write one state, selected by the flags below")
	f.ref.Add(cmd, ", else session", c.CompleteTrees)
	cmd.Flags().StringVar(&f.format, "format", "", "`FORMAT` write a run of planner repl in this format: rlm-jsonl")
	env.Complete(cmd, "layout", layoutAiwg)
	env.Complete(cmd, "format", formatLog)
	return cmd
}

type exportFlags struct {
	output         string
	withoutContext bool
	layout         string
	format         string
	state          bool
	ref            state.StateFlags
}

// layoutAiwg is the only layout.
const layoutAiwg = "aiwg"

// formatLog is the only format of --format.
const formatLog = "rlm-jsonl"

// check checks arguments and flags for each of the three forms.
func (f *exportFlags) check(c *commands, cmd *cobra.Command, args []string) error {
	switch {
	case f.format != "" && f.format != formatLog:
		return env.UsageError("write --format rlm-jsonl, or omit it for perdure's own format", "unknown format %q", f.format)
	case f.format != "" && (f.layout != "" || f.state):
		return env.UsageError("omit one of them", "--format excludes --layout and --state")
	case f.layout != "" && f.layout != layoutAiwg:
		return env.UsageError("write --layout aiwg", "unknown layout %q", f.layout)
	case f.layout != "" && f.state:
		return env.UsageError("omit one of them", "--layout and --state exclude each other")
	case f.layout != "" && f.output != "":
		return env.UsageError("write the folder as the first argument", "--output and --layout exclude each other")
	case f.layout == "" && !f.state && f.ref.Given():
		return env.UsageError("add --state", "--scope, --session, --tree, --task and --name need --state")
	case f.layout != "" && f.ref.Given():
		return env.UsageError("write trees after the folder", "--scope, --session, --tree, --task and --name need --state")
	case f.layout != "":
		if len(args) > 0 {
			if env.CheckTree(args[0]) == nil {
				return env.UsageError("write the folder first: perdure export --layout aiwg FOLDER "+args[0],
					"%s is a tree, not a folder", args[0])
			}
		}
		return env.Arguments(1, -1, "a folder and trees")(cmd, args)
	case f.state:
		return env.Arguments(0, 0, "no arguments with --state")(cmd, args)
	}
	return env.Arguments(0, 1, "at most one tree")(cmd, args)
}

// export writes a tree from the store itself, also while a daemon runs.
func (c *commands) export(ctx context.Context, l *config.Loaded, args []string, f *exportFlags) error {
	if err := checkTree(args); err != nil {
		return err
	}
	return c.WithStore(ctx, l, false, func(store *perdure.Store) error {
		id, err := c.treeOrNewest(ctx, store, args)
		if err != nil {
			return err
		}
		return c.WriteOutput(f.output, func(w io.Writer) error {
			return export.Write(ctx, store, w, export.Config{Tree: id, WithoutContext: f.withoutContext})
		})
	})
}

// checkTree checks the argument for a tree, if there is one.
func checkTree(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return env.CheckTree(args[0])
}

// treeOrNewest returns the tree that the argument names, or else the newest one, and notes which one
// that is.
func (c *commands) treeOrNewest(ctx context.Context, store *perdure.Store, args []string) (perdure.TreeID, error) {
	if len(args) > 0 {
		return store.FindTree(ctx, args[0])
	}
	trees, err := store.Trees(ctx, perdure.TreeFilter{Limit: 1})
	if err != nil {
		return "", err
	}
	if len(trees) == 0 {
		return "", env.NotFound("`perdure run` creates one", "there are no trees")
	}
	c.Note("the newest tree: %s", trees[0].ID)
	return trees[0].ID, nil
}

// exportLog writes the log of a run of planner repl.
func (c *commands) exportLog(ctx context.Context, l *config.Loaded, args []string, f *exportFlags) error {
	if err := checkTree(args); err != nil {
		return err
	}
	return c.WithStore(ctx, l, false, func(store *perdure.Store) error {
		id, err := c.treeOrNewest(ctx, store, args)
		if err != nil {
			return err
		}
		log := &rlm.Log{Store: store, Tree: id, WithoutContext: f.withoutContext}
		return c.WriteOutput(f.output, func(w io.Writer) error { return log.Write(ctx, w) })
	})
}

// exportLayout writes a folder, with the reports of trees as `perdure report` writes them.
func (c *commands) exportLayout(ctx context.Context, l *config.Loaded, dir string, names []string) error {
	cfg := tree.ExportConfig{Dir: c.Path(dir)}
	for _, name := range names {
		if err := env.CheckTree(name); err != nil {
			return err
		}
	}
	return c.WithStore(ctx, l, false, func(store *perdure.Store) error {
		for _, name := range names {
			id, err := store.FindTree(ctx, name)
			if err != nil {
				return err
			}
			cfg.Trees = append(cfg.Trees, id)
		}
		return c.With(ctx, l, env.Read, func(b *env.Backend) error {
			cfg.Report = func(ctx context.Context, id perdure.TreeID, w io.Writer) error {
				doc, err := report.Read(ctx, b.Client, id)
				if err != nil {
					return err
				}
				return doc.Write(w, "md")
			}
			cfg.Loop = loop.Layout(ctx, store, env.LoopDir(l))
			r, err := tree.Export(ctx, store, cfg)
			if err != nil {
				return err
			}
			c.Note("wrote %s: %s, %s, %s, %s in %s, %s", dir, human.Count(r.Trees, "tree"), human.Count(r.Tasks, "task"),
				human.Count(r.States, "state"), human.Count(r.Loops, "loop"), human.Count(r.Files, "file"), human.Size(r.Bytes))
			c.noteRenumbered(r.Renumbered)
			if r.Settings > 1 {
				c.Note("aiwg.yml contains the settings of the last import; those of %s are omitted",
					human.Count(r.Settings-1, "earlier import"))
			}
			return nil
		})
	})
}

func (c *commands) exportState(ctx context.Context, l *config.Loaded, f *exportFlags) error {
	return c.WithStore(ctx, l, false, func(store *perdure.Store) error {
		ref, err := f.ref.Stored(ctx, store, c.Getenv)
		if err != nil {
			return err
		}
		return c.WriteOutput(f.output, func(w io.Writer) error { return tree.ExportState(ctx, store, ref, w) })
	})
}

// noteRenumbered lists the tasks that are called otherwise in the files.
func (c *commands) noteRenumbered(list []tree.Renumbering) {
	for i := range list[:min(len(list), shownNotes)] {
		c.Note("%s is %s in the files", list[i].Task, list[i].File)
	}
	if more := len(list) - shownNotes; more > 0 {
		c.Note("%d more tasks have another ID in the files", more)
	}
}
