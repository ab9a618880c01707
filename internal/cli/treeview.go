package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/graph"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/rlm"
)

// More than foldOver successive siblings with the same state are folded: only the first
// foldHead and the last foldTail are shown.
const (
	foldOver = 8
	foldHead = 3
	foldTail = 1
)

// node is a task with its children.
type node struct {
	*client.OutlineRow
	note     string // its error, or the task that it waits for
	children []*node
	turns    []rlm.Turn
	// even reports whether all descendants have its state and none failed.
	even bool
}

func newNode(row *client.OutlineRow) *node {
	n := &node{OutlineRow: row}
	switch {
	case row.Error != nil:
		n.note = human.OneLine(row.Error.Kind + ": " + row.Error.Message)
	case row.Lost:
		n.note = "its process has ended"
	}
	return n
}

// grow links nodes to trees and returns the roots.
func grow(nodes []*node) []*node {
	byID := make(map[perdure.TaskID]*node, len(nodes))
	for _, n := range nodes {
		byID[n.Task] = n
	}
	var roots []*node
	for _, n := range nodes {
		if parent := byID[n.Parent]; parent != nil {
			parent.children = append(parent.children, n)
		} else {
			roots = append(roots, n)
		}
	}
	for _, n := range nodes {
		slices.SortFunc(n.children, func(a, b *node) int { return a.Position - b.Position })
		n.noteWaits()
		if n.note == "" && len(n.children) == 0 {
			n.note = status.RowNote(n.OutlineRow)
		}
	}
	for _, root := range roots {
		root.setEven()
	}
	return roots
}

// noteWaits notes at the children that wait for their turn the task before them that has not
// ended. In an imported record all before them may have ended.
func (n *node) noteWaits() {
	var before *node
	for _, c := range n.children {
		if c.Blocked && before != nil {
			c.note = "waits for " + before.Task.String()
		}
		if !c.State.Terminal() {
			before = c
		}
	}
}

// setEven sets even in a node and its descendants.
func (n *node) setEven() {
	n.even = n.State != perdure.Failed
	for _, c := range n.children {
		c.setEven()
		n.even = n.even && c.even && c.shown() == n.shown()
	}
}

// treeView draws a tree.
type treeView struct {
	s *env.Stream
	// all turns folding off; depth is the number of levels below the root, -1 for all.
	all   bool
	depth int
}

func (v treeView) draw(root *node) {
	fmt.Fprintln(v.s, v.line("", "", root))
	v.drawChildren("", root, v.depth)
}

func (v treeView) drawChildren(indent string, n *node, depth int) {
	if len(n.children) == 0 && len(n.turns) == 0 {
		return
	}
	if depth == 0 {
		if below := size(n) - 1; below > 0 {
			fmt.Fprintln(v.s, v.s.Dim(indent+"└─ … "+human.Count(below, "task")+" below"))
		}
		return
	}
	if groups := n.groups(); groups != nil {
		v.drawTurns(indent, n, groups, depth)
		return
	}
	v.drawRuns(indent, v.runs(n.children), depth)
}

// branches returns what precedes the line of a child, and the lines below it.
func branches(last bool) (branch, below string) {
	if last {
		return "└─ ", "   "
	}
	return "├─ ", "│  "
}

// drawRuns draws siblings.
func (v treeView) drawRuns(indent string, runs [][]*node, depth int) {
	for i, run := range runs {
		branch, below := branches(i == len(runs)-1)
		if len(run) > 1 {
			fmt.Fprintln(v.s, v.s.Dim(indent+branch)+v.folded(run))
			continue
		}
		fmt.Fprintln(v.s, v.line(indent+branch, indent+below, run[0]))
		v.drawChildren(indent+below, run[0], depth-1)
	}
}

// runs splits siblings into single tasks and runs that are folded into one line.
func (v treeView) runs(siblings []*node) [][]*node {
	var out [][]*node
	single := func(list []*node) {
		for _, n := range list {
			out = append(out, []*node{n})
		}
	}
	for start := 0; start < len(siblings); {
		end := start + 1
		for end < len(siblings) && alike(siblings[start], siblings[end]) {
			end++
		}
		run := siblings[start:end]
		if v.all || len(run) <= foldOver {
			single(run)
		} else {
			single(run[:foldHead])
			out = append(out, run[foldHead:len(run)-foldTail])
			single(run[len(run)-foldTail:])
		}
		start = end
	}
	return out
}

// alike reports whether two siblings can be folded into one line. Failed tasks can if they
// have no children and the same error.
func alike(a, b *node) bool {
	if a.Error != nil && b.Error != nil {
		return *a.Error == *b.Error && len(a.children) == 0 && len(b.children) == 0
	}
	return a.shown() == b.shown() && a.even && b.even
}

// shown returns the state that the view shows.
func (n *node) shown() perdure.State { return status.OfRow(n.OutlineRow) }

// more describes the tasks of a folded run.
func more(run []*node) string {
	text := humanize.Comma(int64(len(run))) + " more " + string(run[0].shown())
	if run[0].Error != nil {
		text += ": same error"
	}
	return text
}

// line returns a task after indent, and its note on a second line after below.
func (v treeView) line(indent, below string, n *node) string {
	tail := "  " + v.figures(n.Active(), n.Usage)
	head := n.Task.String() + "  "
	room := v.s.Width - env.Width(indent) - 2 - env.Width(head) - env.Width(tail)
	text := v.s.Dim(indent) + v.s.Mark(n.shown()) + " " + v.s.Bold(head) + env.OneLine(n.Label, max(room, 24)) +
		v.s.Dim(tail)
	if n.note != "" {
		text += "\n" + v.s.Dim(below) + "  " + env.OneLine(n.note, max(v.s.Width-env.Width(indent)-2, 24))
	}
	return text
}

func (v treeView) folded(run []*node) string {
	active, sum, tasks := sumOf(run)
	below := ""
	if tasks > int64(len(run)) {
		below = ", " + human.Count(tasks-int64(len(run)), "task") + " below"
	}
	return fmt.Sprintf("%s %s", v.s.Mark(run[0].shown()), v.s.Dim(fmt.Sprintf("… %s, %s to %s%s  %s", more(run),
		run[0].Task, run[len(run)-1].Task, below, v.figures(active, sum))))
}

// figures returns the time and the cost of a task.
func (v treeView) figures(active time.Duration, u perdure.Usage) string {
	switch {
	case u.CostUSD > 0: // an unknown price is named once, in the sums
		return human.Duration(active) + ", " + human.Dollars(u.CostUSD)
	case active > 0 || u.Calls > 0:
		return human.Duration(active)
	}
	return ""
}

// size returns the number of tasks of a node and its descendants.
func size(n *node) int64 {
	total := int64(1)
	for _, c := range n.children {
		total += size(c)
	}
	return total
}

// legend prints the signs of the states.
func legend(s *env.Stream) {
	states := []perdure.State{perdure.Completed, perdure.Partial, status.Skipped, perdure.Running, perdure.Waiting,
		perdure.Queued, perdure.Failed, perdure.Cancelled}
	parts := make([]string, len(states))
	for i, state := range states {
		parts[i] = s.Mark(state) + " " + s.Dim(string(state))
	}
	fmt.Fprintln(s, strings.Join(parts, "  "))
}

// graphLabel bounds the prompt in a node of the graph, in cells.
const graphLabel = 48

// graph returns a tree as a graph, folded as in the drawing.
func (v treeView) graph(n *node, depth int) *graph.Node {
	g := &graph.Node{Key: "t" + fmt.Sprint(int64(n.Task)), State: n.shown(), Lines: []string{
		fmt.Sprintf("%s %s %s", status.Mark(n.shown()), n.Task, v.figures(n.Active(), n.Usage)),
		env.OneLine(n.Label, graphLabel)}}
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
	groups := n.groups()
	if groups == nil {
		g.To = v.graphRuns(n.children, depth)
	}
	for i := range groups {
		g.To = append(g.To, turnBox(g.Key, &n.turns[i], v.graphRuns(groups[i], depth)))
	}
	return g
}

// graphRuns returns siblings as boxes.
func (v treeView) graphRuns(siblings []*node, depth int) (boxes []*graph.Node) {
	for _, run := range v.runs(siblings) {
		if len(run) == 1 {
			boxes = append(boxes, v.graph(run[0], depth-1))
			continue
		}
		active, sum, tasks := sumOf(run)
		folded := &graph.Node{Key: "f" + fmt.Sprint(int64(run[0].Task)), State: run[0].shown(), Lines: []string{
			status.Mark(run[0].shown()) + " " + more(run),
			fmt.Sprintf("%s to %s", run[0].Task, run[len(run)-1].Task), v.figures(active, sum)}}
		if below := tasks - int64(len(run)); below > 0 {
			folded.Lines = append(folded.Lines, human.Count(below, "task")+" below")
		}
		boxes = append(boxes, folded)
	}
	return boxes
}

// sumOf returns the time, the usage and the number of tasks and their descendants.
func sumOf(run []*node) (active time.Duration, sum perdure.Usage, tasks int64) {
	for _, n := range run {
		below, u, m := sumOf(n.children)
		active += n.Active() + below
		tasks += 1 + m
		sum.Calls += n.Usage.Calls + u.Calls
		sum.CostUSD += n.Usage.CostUSD + u.CostUSD
		sum.UnpricedCalls += n.Usage.UnpricedCalls + u.UnpricedCalls
	}
	return active, sum, tasks
}
