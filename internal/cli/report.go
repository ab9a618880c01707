package cli

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/view/report"
)

func (a *app) newReportCommand() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "report [TREE]",
		Short: "Write a report of a tree as Markdown or HTML",
		Long: "Write a report of a tree: summary, answer, failures with their errors, timeline, cost by depth and model, " +
			"slowest tasks, the tree and citations. The HTML page is one file that loads no others and supports dark mode " +
			"and printing. --json prints the figures as one object. The tree can still be running; " +
			"without an argument it is the newest.",
		Example:           "perdure report tree-1a2b3c4d -o report.html\n perdure report tree-1a2b3c4d | less",
		GroupID:           env.GroupInspect,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrees(args); err != nil {
				return err
			}
			format = cmp.Or(format, report.FormatOf(output))
			if !slices.Contains(report.Formats(), format) {
				return env.Unknown("format", format, report.Formats())
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error {
				id, err := a.TreeOrNewest(cmd.Context(), b, args, "")
				if err != nil {
					return err
				}
				if a.JSON {
					return a.reportJSON(cmd.Context(), b, id)
				}
				doc, err := report.Read(cmd.Context(), b.Client, id)
				if err != nil {
					return err
				}
				return a.WriteOutput(output, func(w io.Writer) error { return doc.Write(w, format) })
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`FORMAT` md or html; default: by the name of --output, else md")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` write to a file instead of standard output")
	a.JSONFlag(cmd)
	env.Complete(cmd, "format", report.Formats()...)
	return cmd
}

func (a *app) reportJSON(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	r, err := b.Report(ctx, id)
	if err != nil {
		return err
	}
	return a.PrintJSON(r)
}
