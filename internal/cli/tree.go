package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func (a *app) newTreeCommand() *cobra.Command {
	v := treeView{s: a.out}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tree TREE",
		Short: "Draw the tasks of a tree with state, time and cost",
		Long: "Draw the tasks of a tree with their state, the time they ran and their cost. A long run of siblings that " +
			"ended the same way is folded; failures never are. With --json one task a line, by ID, in the shape of " +
			"perdure show.",
		GroupID:           groupSee,
		Args:              arguments(1, 1, "one tree"),
		ValidArgsFunction: a.completeTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := perdure.ParseTreeID(args[0])
			if err != nil {
				return err
			}
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.withBackend(cmd.Context(), l, toRead, func(b *backend) error {
				if asJSON {
					return a.listTasks(cmd.Context(), b, id)
				}
				return a.drawTree(cmd.Context(), b, id, v)
			})
		},
	}
	cmd.Flags().BoolVar(&v.all, "all", false, "fold nothing")
	cmd.Flags().IntVar(&v.depth, "depth", -1, "how many `levels` below the root to draw; -1: all")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// taskPage is how many tasks one request asks for.
const taskPage = 1000

func (a *app) listTasks(ctx context.Context, b *backend, id perdure.TreeID) error {
	for t, err := range b.AllTasks(ctx, client.TaskQuery{Tree: id, Limit: taskPage}) {
		if err != nil {
			return err
		}
		if err := a.printJSON(t); err != nil {
			return err
		}
		if a.out.err != nil {
			return nil
		}
	}
	return nil
}

func (a *app) drawTree(ctx context.Context, b *backend, id perdure.TreeID, v treeView) error {
	var nodes []*node
	for t, err := range b.AllTasks(ctx, client.TaskQuery{Tree: id, Limit: taskPage, Brief: true}) {
		if err != nil {
			return err
		}
		nodes = append(nodes, newNode(t))
	}
	s, err := b.Status(ctx, id)
	if err != nil {
		return err
	}
	a.printf("%s  %s %s, %s, %s\n", a.out.bold(string(id)), a.out.mark(s.State), s.State, count(s.Total, "task"), usage(s.Usage))
	for _, root := range grow(nodes) {
		v.draw(root)
	}
	legend(a.out, a.out)
	return nil
}
