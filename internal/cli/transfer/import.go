package transfer

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
)

type importFlags struct {
	state, dryRun, strict bool
	ref                   state.StateFlags
}

// ImportCommand returns the command import.
func ImportCommand(e *env.Env) *cobra.Command {
	c := &commands{e}
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import PATH",
		Short: "Import an exported tree, a .aiwg folder or a log",
		Long: "Import a .aiwg folder (or the folder that contains it), a tasks.json, a tree.json or a state. Trees are " +
			"imported as records, which are not executed: ended tasks keep their states and results, the others are queued. " +
			"Corrections and unreadable parts are listed with file and line; with unreadable parts the exit status is 3. " +
			"Files outside the folder are not read, except the aiwg.yml next to it. A second import changes nothing and " +
			"completes an interrupted one.\n\n" +
			"Loops (ralph/loops) are imported as records too: a tree whose root contains the documents and whose tasks are " +
			"the iterations. The section agent_persistence of aiwg.yml is kept as text; its settings are listed but not " +
			"applied.\n\n" +
			"An export of a run, as `perdure export TREE` writes it, becomes a record with the same tasks, answers, calls, " +
			"costs and context. Exports of loops and without the text of the context cannot be imported: the exit status is " +
			"2. Another file with the ending .jsonl, and any that begins so, is a log of the reference implementation of " +
			"recursive language models, as `perdure export --format rlm-jsonl` writes it too; gzip may have compressed it. " +
			"Each of its runs becomes a record with the answer, a task for each sub-call, and the turns, which `perdure show` " +
			"prints; `perdure replay` runs its code again.\n\n" +
			"With --strict, nothing is imported if the files are not as the published schemas have them: the exit status is " +
			"5, and each default, correction and unreadable part is listed. `perdure validate` checks single files.\n\n" +
			"With --state, PATH is a state (perdure schema rlm-state). Flags select its place; the default is in the file.",
		Example: "perdure import .aiwg --dry-run\n perdure import .aiwg\n perdure import tree.jsonl\n" +
			" perdure import --state state.json --scope global",
		GroupID: env.GroupManage,
		Args:    env.Arguments(1, 1, "a folder or a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.ref.Given() && !f.state {
				return env.UsageError("add --state", "--scope, --session, --tree, --task and --name need --state")
			}
			l, err := c.Load(cmd)
			if err != nil {
				return err
			}
			switch {
			case f.state:
			case c.isExport(args[0]):
				return c.importExport(cmd.Context(), l, args[0], &f)
			case c.isLog(args[0]):
				return c.importLog(cmd.Context(), l, args[0], &f)
			}
			return c.importPath(cmd.Context(), l, args[0], &f)
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be imported")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "import nothing if a value would be corrected, renumbered, not read "+
		"or not applied, or a default taken")
	cmd.Flags().BoolVar(&f.state, "state", false, "import one state")
	f.ref.Add(cmd, ", else session", c.CompleteTrees)
	c.JSONFlag(cmd)
	return cmd
}

// importGC is the growth of the memory in percent between two collections.
const importGC = 300

// importPath writes to the store itself, also while a daemon runs.
func (c *commands) importPath(ctx context.Context, l *config.Loaded, path string, f *importFlags) error {
	// The records are in memory at once; to collect garbage rarely takes memory of the same
	// order and saves a fourth of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(importGC))
	var report *tree.Report
	l, forget, err := c.temporary(l, f.dryRun)
	if err != nil {
		return err
	}
	defer forget()
	err = c.WithStore(ctx, l, true, func(store *perdure.Store) (err error) {
		cfg := tree.ImportConfig{Path: c.Path(path), State: f.state, DryRun: f.dryRun, Strict: f.strict}
		if f.ref.Given() {
			if cfg.Ref, err = f.ref.Stored(ctx, store, c.Getenv); err != nil {
				return err
			}
		}
		report, err = tree.Import(ctx, store, cfg)
		return err
	})
	if err != nil {
		return err
	}
	report.Path = path
	for i := range report.Settings {
		report.Settings[i].Own = config.Counterpart(report.Settings[i].Name)
	}
	err = c.Print(report, func() { c.printImport(report) })
	if err == nil && report.Refused {
		return &env.Exit{Status: env.StatusConflict}
	}
	if err == nil && report.Count(tree.NotRead) > 0 {
		return &env.Exit{Status: env.StatusIncomplete}
	}
	return err
}

// temporary returns settings with a temporary store for a dry run without a store, so that
// it creates none.
func (c *commands) temporary(l *config.Loaded, dryRun bool) (*config.Loaded, func(), error) {
	if !dryRun || env.HasStore(l) {
		return l, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "perdure-import-")
	if err != nil {
		return nil, nil, fmt.Errorf("create a folder for the dry run: %w", err)
	}
	changed := *l
	changed.Dir = dir
	return &changed, func() { _ = os.RemoveAll(dir) }, nil
}

// shownNotes bounds the printed notes of a kind.
const shownNotes = 100

func (c *commands) printImport(r *tree.Report) {
	verb := "imported"
	if r.Refused {
		c.Printf("nothing was imported: --strict refuses what follows\n")
	}
	if r.DryRun || r.Refused {
		verb = "would import"
	}
	c.Printf("%s %s, %s, %s (%s, %s, %s)\n", verb, human.Count(r.Trees, "tree"), human.Count(r.Tasks, "task"),
		human.Count(r.States, "state"), human.Count(r.Variables, "variable"), human.Count(r.Mutations, "mutation"),
		human.Count(r.Checkpoints, "checkpoint"))
	if r.PresentTrees+r.PresentTasks+r.PresentStates > 0 {
		c.Printf("already present: %s, %s, %s\n", human.Count(r.PresentTrees, "tree"),
			human.Count(r.PresentTasks, "task"), human.Count(r.PresentStates, "state"))
	}
	c.printLoops(r, verb)
	for _, kind := range []struct{ kind, title string }{{tree.NotRead, "not read"}, {tree.Missing, "missing"},
		{tree.Renumbered, "renumbered"}, {tree.Default, "defaults taken"}, {tree.Corrected, "corrected"},
		{tree.NotApplied, "kept, not applied"}, {tree.Kept, "kept without a place of their own"},
		{tree.Differs, "different in the store"}, {tree.Left, "not imported"}} {
		notes := slices.DeleteFunc(slices.Clone(r.Notes), func(n tree.Note) bool { return n.Kind != kind.kind })
		if len(notes) == 0 {
			continue
		}
		c.Printf("\n%s (%d):\n", c.Out.Bold(kind.title), len(notes))
		for _, n := range notes[:min(len(notes), shownNotes)] {
			c.Printf("  %s\n", human.Visible(noteLine(&n)))
		}
		if len(notes) > shownNotes {
			c.Printf("  … and %d more; --json lists all\n", len(notes)-shownNotes)
		}
	}
}

// printLoops prints the loops and their settings.
func (c *commands) printLoops(r *tree.Report, verb string) {
	if r.Loops+r.Documents > 0 {
		c.Printf("%s %s, %s (%s)\n", verb, human.Count(r.Loops, "loop"),
			human.Count(r.Iterations, "iteration"), human.Count(r.Documents, "file"))
	}
	if r.PresentLoops > 0 {
		c.Printf("already present: %s, %s\n", human.Count(r.PresentLoops, "loop"),
			human.Count(r.PresentIterations, "iteration"))
	}
	if len(r.Settings) == 0 {
		return
	}
	c.Printf("\n%s (%d; kept as text, not applied):\n", c.Out.Bold("settings of agent_persistence"), len(r.Settings))
	var without []string
	for i := range r.Settings {
		s := &r.Settings[i]
		line := fmt.Sprintf("%s:%d: %s = %s", s.File, s.Line, s.Name, s.Value)
		switch {
		case s.Problem != "":
			c.Printf("  %s\n", human.Visible(line+" "+s.Problem))
		case s.Own != "":
			c.Printf("  %s\n", human.Visible(line+" corresponds to perdure's "+s.Own))
		default:
			without = append(without, s.Name)
		}
	}
	if len(without) > 0 {
		c.Printf("  no corresponding settings: %s\n", human.Visible(strings.Join(without, ", ")))
	}
}

func noteLine(n *tree.Note) string {
	if n.Line == 0 {
		return fmt.Sprintf("%s: %s", n.File, n.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", n.File, n.Line, n.Column, n.Message)
}
