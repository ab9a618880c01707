package loop

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/loop/state"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/internal/view/report"
	"github.com/perdure/perdure/loop/record"
)

// maxLoops is how many loops a list of all has at most.
const maxLoops = 1000

// look reads what is known of a loop, as far as a view needs it.
func (c *commands) look(ctx context.Context, b *env.Backend, l record.Loop, view loopview.View, full bool) (
	loopview.Input,
	error) {
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
	in.Crashed = c.crashed(ctx, b, &in)
	if past, err := l.Past(); err == nil && past != nil && view == loopview.ViewDocument {
		if in.Document, err = b.LoopDocument(ctx, l.Tree); err != nil {
			return in, err
		}
	}
	return in, in.Load(ctx, b, view, full)
}

// crashed tells whether a loop is running and nobody works on it, also not a
// moment later: between two steps nobody does.
func (c *commands) crashed(ctx context.Context, b *env.Backend, in *loopview.Input) bool {
	l := &in.Loop
	standing, err := state.Read(l.State)
	asked := slices.ContainsFunc(in.Gates, func(g perdure.Gate) bool { return g.AnsweredAt == nil })
	if err != nil || l.Status != record.Running && l.Status != record.Completing || asked || standing.Run.Waits > 0 ||
		in.Tree.State.Terminal() {
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
	var all, persistence, regressions, quality, asJSON, full bool
	cmd := &cobra.Command{
		Use:   "status [LOOP]",
		Short: "Tell where a loop stands",
		Long: "Tell where a loop stands: what it does now, how its last check ended, what it asks and how that is " +
			"answered. " +
			"Without a loop it is the one that has not ended, or else the latest.\n\n" +
			"--persistence shows what the watching came to, --regressions what got worse and what was done about it, " +
			"--quality " +
			"how good each iteration was. --json prints the loop's state as one document (schema loop-state).\n\n" +
			"Of a long loop each shows the last part and sums up the rest: --quality the last 30 iterations, --regressions " +
			"the last " +
			"50 regressions, --json the last 200 iterations (omitted_iterations says how many are not there). --full shows all.",
		Example: "perdure loop status\n perdure loop status make-the-tests-pass-1a2b3c4d --regressions\n" +
			" perdure loop status --json --full > loop.json\n " +
			"perdure loop status --all",
		Args: loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.Do(cmd, env.Read, func(b *env.Backend) error {
				if all {
					return c.list(ctx, b, maxLoops, asJSON)
				}
				l, err := Find(ctx, b.Client, args)
				if err != nil {
					return err
				}
				view := loopview.ViewOverview
				switch {
				case asJSON:
					view = loopview.ViewDocument
				case persistence:
					view = loopview.ViewPersistence
				case regressions:
					view = loopview.ViewRegressions
				case quality:
					view = loopview.ViewQuality
				}
				in, err := c.look(ctx, b, l, view, full)
				if err != nil {
					return err
				}
				return c.show(in, view, full)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "list all loops instead")
	flags.BoolVar(&persistence, "persistence", false, "show what the watching came to")
	flags.BoolVar(&regressions, "regressions", false, "show what got worse, and what was done about it")
	flags.BoolVar(&quality, "quality", false, "show how good each iteration was")
	flags.BoolVar(&asJSON, "json", false, "print the state of the loop as one JSON object")
	flags.BoolVar(&full, "full", false, "leave out nothing of a long loop")
	cmd.MarkFlagsMutuallyExclusive("all", "persistence", "regressions", "quality")
	return cmd
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
	return loopview.Style{Bold: c.Out.Bold, Dim: c.Out.Dim, Width: c.Out.Width,
		Diff: c.Out.Diff}
}

func (c *commands) newListCommand() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List loops, the newest first",
		Example: "perdure loop list",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Do(cmd, env.Read, func(b *env.Backend) error { return c.list(cmd.Context(), b, limit, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return cmd
}

func (c *commands) list(ctx context.Context, b *env.Backend, limit int, asJSON bool) error {
	loops, err := b.Loops(ctx, limit)
	if err != nil {
		return err
	}
	rows := make([]loopview.Row, 0, len(loops))
	for _, l := range loops {
		in, err := c.look(ctx, b, l, loopview.ViewRow, false)
		if err != nil {
			return err
		}
		row := loopview.New(in).Row()
		if rows = append(rows, row); asJSON {
			if err := c.PrintJSON(row); err != nil {
				return err
			}
		}
	}
	if asJSON {
		return nil
	}
	return loopview.List(c.Out, c.style(), rows, time.Now())
}

func (c *commands) newReportCommand() *cobra.Command {
	var format, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report [LOOP]",
		Short: "Write a report of a loop: Markdown, or one HTML page",
		Long: "Write what became of a loop: its iterations with quality, tests, cost and time, what got worse and what " +
			"was done " +
			"about it, what people decided, and the best iteration beside the last. The HTML page needs nothing else and " +
			"loads " +
			"nothing. With --json the figures as one object.",
		Example: "perdure loop report -o report.html\n perdure loop report | less",
		Args:    loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if format == "" {
				format = report.FormatOf(output)
			}
			if !slices.Contains(loopview.Formats(), format) {
				return &perdure.Error{Code: perdure.CodeInvalid, Op: "write report",
					Msg:  fmt.Sprintf("there is no format %q", format),
					Hint: "formats are " + strings.Join(loopview.Formats(), " and ")}
			}
			return c.Do(cmd, env.Read, func(b *env.Backend) error {
				l, err := Find(ctx, b.Client, args)
				if err != nil {
					return err
				}
				in, err := c.look(ctx, b, l, loopview.ViewReport, false)
				if err != nil {
					return err
				}
				sum := loopview.New(in)
				if asJSON {
					return c.PrintJSON(sum.Analytics())
				}
				return c.WriteOutput(output, func(w io.Writer) error { return sum.Report(w, format) })
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "md or html; by default what the name of the file says, else md")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `file` instead of standard output")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures as one JSON object")
	return cmd
}
