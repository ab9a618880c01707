package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/human"
)

// Graph viewers lay out every node: what they can bear is told to the user.
const (
	// mermaidEdges is how many edges mermaid draws unless its page says more.
	mermaidEdges = 500
	// dotNodes is what Graphviz lays out in some seconds.
	dotNodes = 2000
)

// graphLabel bounds the prompt in a node, in cells.
const graphLabel = 48

// graphNode is a box of a drawing: a task, or several that are folded.
type graphNode struct {
	key   string
	state perdure.State
	lines []string
	to    []*graphNode
}

// graph folds a tree as the ascii drawing does and returns its boxes.
func (v treeView) graph(n *node, depth int) *graphNode {
	g := &graphNode{key: "t" + fmt.Sprint(int64(n.id)), state: n.state, lines: []string{
		fmt.Sprintf("%s %s %s", plainMark(n.state), n.id, v.figures(n.active, n.usage)), oneLine(n.label, graphLabel)}}
	if n.note != "" {
		g.lines = append(g.lines, oneLine(n.note, graphLabel))
	}
	if depth == 0 {
		if below := size64(n) - 1; below > 0 {
			g.to = append(g.to, &graphNode{key: g.key + "below", state: perdure.Queued, lines: []string{count(below, "task") + " below"}})
		}
		return g
	}
	for _, run := range v.runs(n.children) {
		if len(run) == 1 {
			g.to = append(g.to, v.graph(run[0], depth-1))
			continue
		}
		active, sum, tasks := sumOf(run)
		folded := &graphNode{key: "f" + fmt.Sprint(int64(run[0].id)), state: run[0].state, lines: []string{
			fmt.Sprintf("%s %d more %s", plainMark(run[0].state), len(run), run[0].state),
			fmt.Sprintf("%s to %s", run[0].id, run[len(run)-1].id), v.figures(active, sum)}}
		if below := tasks - int64(len(run)); below > 0 {
			folded.lines = append(folded.lines, count(below, "task")+" below")
		}
		g.to = append(g.to, folded)
	}
	return g
}

// sumOf adds up the time and the cost of tasks with all below them, and counts
// them.
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

// plainMark is the sign of a state without colour.
func plainMark(state perdure.State) string { return human.Mark(state) }

func (g *graphNode) size() int {
	total := 1
	for _, to := range g.to {
		total += to.size()
	}
	return total
}

// graphStates are the classes of boxes, each with the colour of its border: one
// that is seen on white and on black.
func graphStates() [][2]string {
	return [][2]string{
		{string(perdure.Completed), "#2e8b57"}, {string(perdure.Running), "#1f83c4"}, {string(perdure.Waiting), "#6a6fd0"},
		{string(perdure.Queued), "#888888"}, {string(perdure.Failed), "#d0433b"}, {string(perdure.Cancelled), "#b8860b"},
	}
}

// mermaid writes a flowchart.
func mermaid(root *graphNode) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	var draw func(g *graphNode)
	draw = func(g *graphNode) {
		lines := make([]string, 0, len(g.lines))
		for _, text := range g.lines {
			if text = strings.TrimSpace(text); text != "" {
				lines = append(lines, mermaidText(text))
			}
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]:::%s\n", g.key, strings.Join(lines, "<br/>"), g.state)
		for _, to := range g.to {
			draw(to)
			fmt.Fprintf(&b, "  %s --> %s\n", g.key, to.key)
		}
	}
	draw(root)
	for _, class := range graphStates() {
		fmt.Fprintf(&b, "  classDef %s stroke:%s,stroke-width:2px\n", class[0], class[1])
	}
	return b.String()
}

// mermaidText writes everything that could mean something to mermaid, Markdown
// or HTML as a numbered character.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" .,:/-?!()$…✓✗●◌○⊘", r):
			b.WriteRune(r)
		case unicode.IsPrint(r):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(unicode.ReplacementChar)
		}
	}
	return b.String()
}

// dot writes a graph of Graphviz.
func dot(name string, root *graphNode) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR; node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=10];\n", dotText(name))
	colors := make(map[string]string)
	for _, class := range graphStates() {
		colors[class[0]] = class[1]
	}
	var draw func(g *graphNode)
	draw = func(g *graphNode) {
		lines := make([]string, 0, len(g.lines))
		for _, text := range g.lines {
			if text = strings.TrimSpace(text); text != "" {
				lines = append(lines, text)
			}
		}
		fmt.Fprintf(&b, "  %s [label=%s, color=%q];\n", g.key, dotText(strings.Join(lines, "\n")), colors[string(g.state)])
		for _, to := range g.to {
			draw(to)
			fmt.Fprintf(&b, "  %s -> %s;\n", g.key, to.key)
		}
	}
	draw(root)
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes a text; its backslashes mean nothing any more.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", " ").Replace(text) + `"`
}
