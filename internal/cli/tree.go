package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/graph"
	"github.com/perdure/perdure/internal/view/status"
)

func (a *app) newTreeCommand() *cobra.Command {
	v := treeView{s: a.Out}
	format := formatASCII
	cmd := &cobra.Command{
		Use:   "tree [TREE]",
		Short: "Draw the tasks of a tree with state, time and cost",
		Long: "Draw the tasks of a tree with state, running time and cost. Many successive siblings with the same state, " +
			"or the same error, are folded. A task that is answered by a REPL (planner repl) has its turns, each with its " +
			"sub-calls and its cost with them. --format mermaid and dot write a graph for Mermaid and Graphviz; json, or " +
			"--json, prints one task a line, by ID, as `perdure show --json` does. Without an argument, draw the newest tree.",
		Example: "perdure tree tree-1a2b3c4d --depth 2\n" +
			"perdure tree tree-1a2b3c4d --format dot | dot -Tsvg > tree.svg",
		GroupID:           env.GroupInspect,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrees(args); err != nil {
				return err
			}
			if !slices.Contains(treeFormats(), format) {
				return env.Unknown("format", format, treeFormats())
			}
			if a.JSON && cmd.Flags().Changed("format") && format != formatJSON {
				return env.UsageError("omit one of them", "--json and --format %s exclude each other", format)
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error {
				id, err := a.TreeOrNewest(cmd.Context(), b, args, "")
				if err != nil {
					return err
				}
				if a.JSON || format == formatJSON {
					return a.listTasks(cmd.Context(), b, id)
				}
				return a.drawTree(cmd.Context(), b, id, v, format)
			})
		},
	}
	cmd.Flags().BoolVar(&v.all, "all", false, "fold no siblings")
	cmd.Flags().StringVar(&format, "format", format, "`FORMAT` output format: "+strings.Join(treeFormats(), ", "))
	cmd.Flags().IntVar(&v.depth, "depth", -1, "`N` levels below the root to draw; -1: all")
	a.JSONFlag(cmd)
	env.Complete(cmd, "format", treeFormats()...)
	return cmd
}

// checkTrees returns an error for an argument that cannot name a tree.
func checkTrees(args []string) error {
	for _, arg := range args {
		if err := env.CheckTree(arg); err != nil {
			return err
		}
	}
	return nil
}

// The formats of a drawn tree.
const (
	formatASCII   = "ascii"
	formatMermaid = "mermaid"
	formatDot     = "dot"
	formatJSON    = "json"
)

func treeFormats() []string { return []string{formatASCII, formatMermaid, formatDot, formatJSON} }

// taskPage is the number of tasks in a request.
const taskPage = 1000

func (a *app) listTasks(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	made, err := a.turnsOf(ctx, b, id)
	if err != nil {
		return err
	}
	for t, err := range b.AllTasks(ctx, client.TaskQuery{Tree: id, Limit: taskPage}) {
		if err != nil {
			return err
		}
		if err := a.PrintJSON(taskWithTurns{&t, made[t.ID]}); err != nil {
			return err
		}
		if a.Out.Stopped() {
			return nil
		}
	}
	return nil
}

func (a *app) drawTree(ctx context.Context, b *env.Backend, id perdure.TreeID, v treeView, format string) error {
	made, err := a.turnsOf(ctx, b, id)
	if err != nil {
		return err
	}
	var nodes []*node
	for row, err := range b.WholeOutline(ctx, id) {
		if err != nil {
			return err
		}
		n := newNode(&row)
		n.turns = made[row.Task]
		nodes = append(nodes, n)
	}
	s, err := b.Status(ctx, id)
	if err != nil {
		return err
	}
	if format != formatASCII {
		a.drawGraph(id, nodes, v, format)
		return nil
	}
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	a.Printf("%s  %s %s, %s, %s\n", a.Out.Bold(string(id)), a.Out.Mark(s.State), status.State(&s),
		human.Count(s.Total, "task"), status.Usage(s.Usage))
	for _, root := range grow(nodes) {
		v.draw(root)
	}
	legend(a.Out)
	a.noteWaiting(b, &s, &tree)
	return nil
}

// drawGraph prints a tree as a graph. It notes if the graph is too large for Mermaid or
// Graphviz.
func (a *app) drawGraph(id perdure.TreeID, nodes []*node, v treeView, format string) {
	for _, root := range grow(nodes) {
		g := v.graph(root, v.depth)
		size := g.Size()
		const advice = "; use --depth 2 for a smaller graph"
		switch format {
		case formatMermaid:
			if size > graph.MermaidEdges {
				a.Note("the graph has %d edges; Mermaid draws %d unless maxEdges is raised"+advice, size-1,
					graph.MermaidEdges)
			}
			a.Printf("%s", graph.Mermaid(g))
		default:
			if size > graph.DotNodes {
				a.Note("Graphviz needs very long for %s"+advice, human.Count(size, "node"))
			}
			a.Printf("%s", graph.Dot(string(id), g))
		}
	}
}
