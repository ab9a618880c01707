package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/rlm"
)

func (a *app) newStatusCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "status [TREE]",
		Short: "Show the progress of a tree, or list recent trees",
		Long: "Show the progress of a tree: tasks by state, time left, cost and running tasks. Without an argument, list " +
			"recent trees, one a line. With --json the output is one object, or one a line.",
		GroupID:           env.GroupInspect,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return env.UsageError("write a number from 1 to 1000", "--limit is %d", limit)
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error {
				if len(args) == 0 {
					return a.listTrees(cmd.Context(), b, limit)
				}
				return a.showStatus(cmd.Context(), b, args[0])
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "`N` maximum trees to list")
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) showStatus(ctx context.Context, b *env.Backend, arg string) error {
	id, err := b.FindTree(ctx, arg)
	if err != nil {
		return err
	}
	s, err := b.Status(ctx, id)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(s)
	}
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	is := about{name: tree.Name, origin: rlm.Origin(tree.Config), context: storedText(ctx, b, &tree)}
	a.Printf("%s%s%s", statusBox(a.Out, &s, is), activeList(a.Out, s.Active),
		slowLines(a.Out, &s, time.Now()))
	a.noteWaiting(b, &s, &tree)
	return nil
}

// storedText returns how much text the store keeps for a tree, "" if there is none or it cannot be read.
func storedText(ctx context.Context, b *env.Backend, tree *perdure.Tree) string {
	root, err := b.Task(ctx, tree.Root)
	if err != nil || root.Context.Source == "" {
		return ""
	}
	c, err := b.Context(ctx, root.Context.Source)
	if err != nil {
		return ""
	}
	return human.Count(c.Files, "file") + ", " + human.Size(c.Bytes) + " stored"
}

// noteWaiting notes what a tree that is not at its end waits for, if nothing of it runs.
func (a *app) noteWaiting(b *env.Backend, s *client.Status, tree *perdure.Tree) {
	resume := "perdure resume " + string(tree.ID)
	if tree.Kind == perdure.KindLoop {
		resume = "perdure loop resume " + loop.ID(tree)
	}
	switch {
	case s.State.Terminal():
	case a.noteGate(s):
	case tree.Kind == perdure.KindRecord:
		a.Note("imported record; it is not executed")
	case s.Interrupted:
		a.Note("interrupted: `%s` continues", resume)
	case s.Running == 0 && b.Local != nil:
		a.Note("no task is running; if the process has ended, `%s` continues", resume)
	}
}

func (a *app) listTrees(ctx context.Context, b *env.Backend, limit int) error {
	page, err := b.Trees(ctx, perdure.TreeFilter{Limit: limit})
	if err != nil {
		return err
	}
	if len(page.Trees) == 0 && !a.JSON {
		a.Note("no trees; `perdure run` creates one")
	}
	now := time.Now()
	for _, tree := range page.Trees {
		s, err := b.Status(ctx, tree.ID)
		if err != nil {
			return err
		}
		if a.JSON {
			err = a.PrintJSON(s)
		} else {
			err = a.printTreeLine(ctx, b, now, &tree, &s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printTreeLine prints a tree as a line of a list, with its name or prompt before its
// model.
func (a *app) printTreeLine(ctx context.Context, b *env.Backend, now time.Time, tree *perdure.Tree,
	s *client.Status) error {
	p := &s.Progress
	prompt, err := b.Outline(ctx, client.OutlineQuery{Tree: tree.ID, Tasks: []perdure.TaskID{tree.Root}})
	if err != nil {
		return err
	}
	name := tree.Name
	switch {
	case tree.Kind == perdure.KindLoop:
		name = loop.ID(tree)
	case name == "" && len(prompt) > 0:
		name = prompt[0].Label
	}
	line := string(tree.ID) + "  " + a.Out.Mark(p.State) + " " + env.Pad(status.State(s), 11) + " " +
		env.PadLeft(status.Percent(p), 4) + " of " + env.Pad(status.Tasks(p), 12) + " " +
		env.Pad(status.Time(p), 14) + " " + env.Pad(status.Cost(p.Usage), 10) + " " +
		a.Out.Dim(env.Pad(human.Ago(now, tree.CreatedAt), 12))
	model := cmp.Or(modelOf(tree), tree.Kind)
	room := max(a.Out.Width-env.Width(line)-env.Width(model)-4, 30)
	a.Printf("%s\n", env.Clip(line+" "+env.OneLine(name, room)+"  "+a.Out.Dim(env.OneLine(model, 40)), env.MaxWidth+80))
	return nil
}
