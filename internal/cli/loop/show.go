package loop

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/loop/heldout"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/storage/userdir"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/internal/view/report"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// maxLoops bounds the list of all loops.
const maxLoops = 1000

// load reads the parts of a loop that a view needs.
func (c *commands) load(ctx context.Context, b *env.Backend, l record.Loop, view loopview.View,
	full bool) (loopview.Input, error) {
	in := loopview.Input{Loop: l, Now: time.Now()}
	var err error
	if in.Tree, err = b.Tree(ctx, l.Tree); err != nil {
		return in, err
	}
	status, err := b.Status(ctx, l.Tree)
	if err != nil {
		return in, err
	}
	in.Progress = status.Progress
	if in.Gates, err = b.Gates(ctx, l.Tree); err != nil {
		return in, err
	}
	if in.FalseAlarms, err = b.FalseAlarms(ctx, l.Tree); err != nil {
		return in, err
	}
	in.HeldOut = c.readHeldOut(&in)
	in.Crashed, in.Report = c.crashed(ctx, b, &in), reportOf(b, &in)
	if past, err := l.Past(); err == nil && past != nil && view == loopview.ViewDocument {
		if in.Document, err = b.LoopDocument(ctx, l.Tree); err != nil {
			return in, err
		}
	}
	return in, in.Load(ctx, b, view, full)
}

// readHeldOut returns the held-out check of a loop; nil if there is none, or if an agent or a check of a
// loop runs this command.
func (c *commands) readHeldOut(in *loopview.Input) *loopview.HeldOut {
	cfg, err := config.Of(&in.Tree, &in.Loop)
	if err != nil || cfg.HeldOut == "" || guard.Guarded() || c.Getenv(hook.VarLoop) != "" ||
		c.Getenv(loop.VarCheck) != "" {
		return nil
	}
	book, err := heldout.Open(userdir.HeldOut(c.Getenv), cfg.HeldOut)
	if err != nil {
		book = nil
	}
	return loopview.NewHeldOut(book, cfg.HeldOutGap)
}

// reportOf returns the report that the loop has written at its end, "" without one: the loop has
// not ended, or its folder is on another machine.
func reportOf(b *env.Backend, in *loopview.Input) string {
	if b.Config == nil || !in.Loop.Status.Ended() {
		return ""
	}
	path := filepath.Join(env.LoopDir(b.Config), loop.ID(&in.Tree), "report.md")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// crashed reports whether a loop is running and no process executes it. It checks twice,
// because between two steps no process does.
func (c *commands) crashed(ctx context.Context, b *env.Backend, in *loopview.Input) bool {
	l := &in.Loop
	if !in.Lost() {
		return false
	}
	const moment = 300 * time.Millisecond
	for range 2 {
		status, err := b.Status(ctx, l.Tree)
		if err != nil || status.Running > 0 {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(moment):
		}
	}
	now, err := b.Loop(ctx, l.Tree)
	return err == nil && now.Version == l.Version
}

func (c *commands) newStatusCommand() *cobra.Command {
	var all, persistence, regressions, quality, full bool
	cmd := &cobra.Command{
		Use:   "status [LOOP]",
		Short: "Show the state of a loop",
		Long: "Show the state of a loop: its activity, its last check, and its open gate with the possible answers. " +
			"Without an argument, the loop that has not ended, or else the newest.\n\n" +
			"--persistence shows the metrics of supervision, --regressions the regressions and their recoveries, --quality " +
			"the quality of each iteration. --json prints the loop's state as one document (schema loop-state). With --all, " +
			"the view is shown for each loop, with --json one document a line.\n\n" +
			"For long loops, --quality shows the last 30 iterations, --regressions the last 50 regressions and --json the " +
			"last 200 iterations (omitted_iterations counts the others). --full shows all.",
		Example: "perdure loop status\n perdure loop status make-the-tests-pass-1a2b3c4d --regressions\n" +
			" perdure loop status --json --full > loop.json\n perdure loop status --all\n" +
			" perdure loop status --all --persistence | grep false_positive_rate",
		Args: loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			view := loopview.ViewOverview
			switch {
			case c.JSON:
				view = loopview.ViewDocument
			case persistence:
				view = loopview.ViewPersistence
			case regressions:
				view = loopview.ViewRegressions
			case quality:
				view = loopview.ViewQuality
			}
			switch {
			case all && (persistence || regressions || quality):
				return c.Do(cmd, env.Read, func(b *env.Backend) error { return c.showAll(cmd.Context(), b, view, full) })
			case all:
				return c.Do(cmd, env.Read, func(b *env.Backend) error { return c.list(cmd.Context(), b, maxLoops) })
			}
			return c.on(env.Read, func(ctx context.Context, b *env.Backend, l record.Loop) error {
				in, err := c.load(ctx, b, l, view, full)
				if err != nil {
					return err
				}
				return c.show(in, view, full)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "list all loops; with a view, show it for each loop")
	flags.BoolVar(&persistence, "persistence", false, "show the metrics of supervision")
	flags.BoolVar(&regressions, "regressions", false, "show regressions and their recoveries")
	flags.BoolVar(&quality, "quality", false, "show the quality of each iteration")
	flags.BoolVar(&full, "full", false, "show all iterations and regressions of a long loop")
	c.JSONFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("persistence", "regressions", "quality")
	return cmd
}

// showAll writes a view of each loop, the newest first.
func (c *commands) showAll(ctx context.Context, b *env.Backend, view loopview.View, full bool) error {
	loops, err := b.Loops(ctx, maxLoops)
	if err != nil {
		return err
	}
	for i, l := range loops {
		in, err := c.load(ctx, b, l, view, full)
		if err != nil {
			return err
		}
		if i > 0 && !c.JSON {
			c.Printf("\n")
		}
		if err := c.show(in, view, full); err != nil {
			return err
		}
	}
	return nil
}

// show writes a view of a loop.
func (c *commands) show(in loopview.Input, view loopview.View, full bool) error {
	if view == loopview.ViewDocument {
		return c.PrintJSON(loopview.Document(in))
	}
	sum, style := loopview.New(in), c.style()
	style.All = full
	switch view {
	case loopview.ViewPersistence:
		return sum.Persistence(c.Out, style)
	case loopview.ViewRegressions:
		return sum.Regressions(c.Out, style)
	case loopview.ViewQuality:
		return sum.Quality(c.Out, style)
	}
	return sum.Overview(c.Out, style)
}

func (c *commands) style() loopview.Style {
	return loopview.Style{Bold: c.Out.Bold, Dim: c.Out.Dim, Width: c.Out.Width, Diff: c.Out.Diff}
}

func (c *commands) newListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List loops, the newest first",
		Example: "perdure loop list",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: c.Run(env.Read, func(ctx context.Context, b *env.Backend, _ []string) error {
			return c.list(ctx, b, limit)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "`N` maximum loops to list")
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) list(ctx context.Context, b *env.Backend, limit int) error {
	loops, err := b.Loops(ctx, limit)
	if err != nil {
		return err
	}
	rows := make([]loopview.Row, 0, len(loops))
	for _, l := range loops {
		in, err := c.load(ctx, b, l, loopview.ViewRow, false)
		if err != nil {
			return err
		}
		row := loopview.New(in).Row()
		if err := c.Print(row, func() { rows = append(rows, row) }); err != nil {
			return err
		}
	}
	if c.JSON {
		return nil
	}
	if err := loopview.List(c.Out, c.style(), rows, time.Now()); err != nil {
		return err
	}
	for i := range rows {
		if command := rows[i].Continue(); command != "" {
			if rows[i].EndedByOthers {
				c.Note("the tree of %s ended without the loop; `%s` ends the loop", c.Err.Safe(rows[i].ID), c.Err.Safe(command))
				continue
			}
			c.Note("no process runs %s; `%s` continues", c.Err.Safe(rows[i].ID), c.Err.Safe(command))
		}
	}
	return nil
}

func (c *commands) newReportCommand() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "report [LOOP]",
		Short: "Write a report of a loop as Markdown or HTML",
		Long: "Write a report of a loop: its iterations with quality, tests, cost and time, regressions and recoveries, " +
			"the decisions at gates, and the best iteration next to the last. The HTML page is one file that loads no " +
			"others. --json prints the figures as one object.",
		Example: "perdure loop report -o report.html\n perdure loop report | less",
		Args:    loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			format = cmp.Or(format, report.FormatOf(output))
			if !slices.Contains(loopview.Formats(), format) {
				return env.Unknown("format", format, loopview.Formats())
			}
			return c.on(env.Read, func(ctx context.Context, b *env.Backend, l record.Loop) error {
				in, err := c.load(ctx, b, l, loopview.ViewReport, false)
				if err != nil {
					return err
				}
				sum := loopview.New(in)
				if c.JSON {
					return c.PrintJSON(sum.Analytics())
				}
				return c.WriteOutput(output, func(w io.Writer) error { return sum.Report(w, format) })
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`FORMAT` md or html; default: by the name of --output, else md")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` write to a file instead of standard output")
	c.JSONFlag(cmd)
	return cmd
}
