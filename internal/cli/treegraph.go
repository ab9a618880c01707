package cli

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/graph"
	"github.com/perdure/perdure/internal/view/status"
)

// graphLabel bounds the prompt in a node of the graph, in cells.
const graphLabel = 48

// graph returns a tree as a graph, folded as in the drawing.
func (v treeView) graph(n *node, depth int) *graph.Node {
	g := &graph.Node{Key: "t" + fmt.Sprint(int64(n.id)), State: n.state, Lines: []string{
		fmt.Sprintf("%s %s %s", status.Mark(n.state), n.id, v.figures(n.active, n.usage)), env.OneLine(n.label, graphLabel)}}
	if n.note != "" {
		g.Lines = append(g.Lines, env.OneLine(n.note, graphLabel))
	}
	if depth == 0 {
		if below := size(n) - 1; below > 0 {
			g.To = append(g.To, &graph.Node{Key: g.Key + "below", State: perdure.Queued,
				Lines: []string{human.Count(below, "task") + " below"}})
		}
		return g
	}
	for _, run := range v.runs(n.children) {
		if len(run) == 1 {
			g.To = append(g.To, v.graph(run[0], depth-1))
			continue
		}
		active, sum, tasks := sumOf(run)
		folded := &graph.Node{Key: "f" + fmt.Sprint(int64(run[0].id)), State: run[0].state, Lines: []string{
			fmt.Sprintf("%s %d more %s", status.Mark(run[0].state), len(run), run[0].state),
			fmt.Sprintf("%s to %s", run[0].id, run[len(run)-1].id), v.figures(active, sum)}}
		if below := tasks - int64(len(run)); below > 0 {
			folded.Lines = append(folded.Lines, human.Count(below, "task")+" below")
		}
		g.To = append(g.To, folded)
	}
	return g
}

// sumOf returns the time, the usage and the number of tasks and their descendants.
func sumOf(run []*node) (active time.Duration, sum perdure.Usage, tasks int64) {
	for _, n := range run {
		below, u, m := sumOf(n.children)
		active += n.active + below
		tasks += 1 + m
		sum.Calls += n.usage.Calls + u.Calls
		sum.CostUSD += n.usage.CostUSD + u.CostUSD
		sum.UnpricedCalls += n.usage.UnpricedCalls + u.UnpricedCalls
	}
	return active, sum, tasks
}
