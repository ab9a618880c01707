// Package graph writes trees for programs that draw graphs: Mermaid
// (https://mermaid.js.org) and Graphviz (https://graphviz.org).
package graph

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/perdure/perdure"
)

// Graph viewers lay out every node: the user gets a warning when they are too many.
const (
	// MermaidEdges is how many edges mermaid draws unless its page says more.
	MermaidEdges = 500
	// DotNodes is what Graphviz lays out in some seconds.
	DotNodes = 2000
)

// Node is a box of a drawing with what hangs below it. Lines may be any text:
// nothing in them means anything to the programs.
type Node struct {
	Key   string
	State perdure.State
	Lines []string
	To    []*Node
}

// Size counts the boxes.
func (g *Node) Size() int {
	total := 1
	for _, to := range g.To {
		total += to.Size()
	}
	return total
}

// draw calls box for each node with its lines that are not empty, and edge for each edge.
func (g *Node) draw(box func(g *Node, lines []string), edge func(from, to *Node)) {
	var lines []string
	for _, text := range g.Lines {
		if text = strings.TrimSpace(text); text != "" {
			lines = append(lines, text)
		}
	}
	box(g, lines)
	for _, to := range g.To {
		to.draw(box, edge)
		edge(g, to)
	}
}

// states are the classes of boxes, each with the colour of its border: one
// that is seen on white and on black.
func states() [][2]string {
	return [][2]string{
		{string(perdure.Completed), "#2e8b57"}, {string(perdure.Running), "#1f83c4"}, {string(perdure.Waiting), "#6a6fd0"},
		{string(perdure.Partial), "#b8860b"}, {"skipped", "#888888"},
		{string(perdure.Queued), "#888888"}, {string(perdure.Failed), "#d0433b"}, {string(perdure.Cancelled), "#b8860b"},
	}
}

// Mermaid writes a flowchart.
func Mermaid(root *Node) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	root.draw(func(g *Node, lines []string) {
		for i := range lines {
			lines[i] = mermaidText(lines[i])
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]:::%s\n", g.Key, strings.Join(lines, "<br/>"), g.State)
	}, func(from, to *Node) { fmt.Fprintf(&b, "  %s --> %s\n", from.Key, to.Key) })
	for _, class := range states() {
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
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" .,:/-?!()$…✓◐↷✗●◌○⊘", r):
			b.WriteRune(r)
		case unicode.IsPrint(r):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(unicode.ReplacementChar)
		}
	}
	return b.String()
}

// Dot writes a graph of Graphviz.
func Dot(name string, root *Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR; node [shape=box, style=rounded, fontname=\"sans-serif\", "+
		"fontsize=10];\n", dotText(name))
	colors := make(map[string]string)
	for _, class := range states() {
		colors[class[0]] = class[1]
	}
	root.draw(func(g *Node, lines []string) {
		fmt.Fprintf(&b, "  %s [label=%s, color=%q];\n", g.Key, dotText(strings.Join(lines, "\n")), colors[string(g.State)])
	}, func(from, to *Node) { fmt.Fprintf(&b, "  %s -> %s;\n", from.Key, to.Key) })
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes a text; its backslashes mean nothing any more.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", " ").Replace(text) + `"`
}
