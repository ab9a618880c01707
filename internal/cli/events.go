package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newEventsCommand() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print the event log",
		Long: "Print the event log, oldest first. Events are numbered without gaps in the order of their transactions, so " +
			"--since with the number of the last printed event neither skips nor repeats events. With --follow, print " +
			"further events until Ctrl-C.",
		Example: "perdure events --tree tree-1a2b3c4d\n perdure events --follow --since 1200 --json",
		GroupID: env.GroupInspect,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.since < 0 {
				return env.UsageError("write the number of the last printed event", "--since is %d", f.since)
			}
			if f.tree != "" {
				if err := env.CheckTree(f.tree); err != nil {
					return err
				}
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error {
				if f.follow {
					return a.followEvents(cmd.Context(), b, f)
				}
				return a.listEvents(cmd.Context(), b, f)
			})
		},
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "print further events until Ctrl-C")
	cmd.Flags().Int64Var(&f.since, "since", 0, "`N` print only events after this number")
	cmd.Flags().StringVar(&f.tree, "tree", "", "`TREE` print only events of this tree")
	a.JSONFlag(cmd)
	return cmd
}

type eventFlags struct {
	follow bool
	since  int64
	tree   string
}

func (a *app) listEvents(ctx context.Context, b *env.Backend, f eventFlags) error {
	for after := f.since; ; {
		page, err := b.EventPage(ctx, after, perdure.TreeID(f.tree), 0)
		if err != nil {
			return err
		}
		for i := range page.Events {
			if err := a.printEvent(&page.Events[i]); err != nil {
				return err
			}
		}
		if len(page.Events) == 0 || a.Out.Stopped() {
			return nil //nolint:nilerr // the stream keeps its error
		}
		after = page.Next
	}
}

func (a *app) followEvents(ctx context.Context, b *env.Backend, f eventFlags) error {
	for e, err := range b.Events(ctx, f.since, perdure.TreeID(f.tree)) {
		if errors.Is(context.Cause(ctx), env.ErrInterrupted) {
			return &env.Exit{Status: env.StatusInterrupted}
		}
		if err != nil {
			return err
		}
		if err := a.printEvent(&e); err != nil {
			return err
		}
		if a.Out.Stopped() {
			return nil // the reader closed the pipe
		}
	}
	return nil
}

func (a *app) printEvent(e *perdure.Event) error {
	return a.Print(e, func() {
		task, data := "", env.OneLine(string(e.Data), maxEventData)
		if e.Task != 0 {
			task = e.Task.String()
		}
		if data == "{}" || data == "null" {
			data = ""
		}
		text := fmt.Sprintf("%6d  %s  %s  %s  %s  %s", e.Seq, a.Out.Dim(e.Time.UTC().Format("2006-01-02T15:04:05.000Z")),
			e.Tree, env.Pad(task, 10), env.Pad(string(e.Kind), 16), data)
		a.Printf("%s\n", strings.TrimRight(text, " "))
	})
}

// maxEventData bounds the printed data of an event, in cells.
const maxEventData = 120
