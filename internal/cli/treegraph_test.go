package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/graph"
)

func graphOf(v treeView, tasks []perdure.Task) *graph.Node {
	v.s, _ = screen(80)
	var nodes []*node
	for _, task := range tasks {
		nodes = append(nodes, newNode(rowOf(&task)))
	}
	return v.graph(grow(nodes)[0], v.depth)
}

func TestMermaid(t *testing.T) {
	t.Parallel()
	tasks := testTasks("f" + strings.Repeat("c", 12))
	tasks[1].Prompt = "end \"]; click t2 <img src=x onerror=alert(1)> #quot; `x`\x1b[2J%%{init}"
	same(t, graph.Mermaid(graphOf(treeView{depth: -1}, tasks)), `
flowchart LR
  t1["◌ task-0001 1.5s<br/>the root"]:::waiting
  t2["✗ task-0002 1.0s, $0.0010<br/>end #34;#93;#59; click t2 #60;img src#61;x onerror#61;alert(1)#62; #35;…<br/>timeout: no answer after 300s"]:::failed
  t1 --> t2
  t3["✓ task-0003 1.0s, $0.0010<br/>part 1"]:::completed
  t1 --> t3
  t4["✓ task-0004 1.0s, $0.0010<br/>part 2"]:::completed
  t1 --> t4
  t5["✓ task-0005 1.0s, $0.0010<br/>part 3"]:::completed
  t1 --> t5
  f6["✓ 8 more completed<br/>task-0006 to task-0013<br/>8.0s, $0.0080"]:::completed
  t1 --> f6
  t14["✓ task-0014 1.0s, $0.0010<br/>part 12"]:::completed
  t1 --> t14
  classDef completed stroke:#2e8b57,stroke-width:2px
  classDef running stroke:#1f83c4,stroke-width:2px
  classDef waiting stroke:#6a6fd0,stroke-width:2px
  classDef partial stroke:#b8860b,stroke-width:2px
  classDef skipped stroke:#888888,stroke-width:2px
  classDef queued stroke:#888888,stroke-width:2px
  classDef failed stroke:#d0433b,stroke-width:2px
  classDef cancelled stroke:#b8860b,stroke-width:2px
`)
}

func TestDot(t *testing.T) {
	t.Parallel()
	tasks := testTasks("r")
	tasks[1].Prompt = `a"]; x [label=<b>, URL="javascript:1"] \N \` + "\nnext"
	same(t, graph.Dot("tree-12345678", graphOf(treeView{depth: -1}, tasks)), `
digraph "tree-12345678" {
  rankdir=LR; node [shape=box, style=rounded, fontname="sans-serif", fontsize=10];
  t1 [label="◌ task-0001 1.5s\nthe root", color="#6a6fd0"];
  t2 [label="● task-0002 1.0s, $0.0010\na\"]; x [label=<b>, URL=\"javascript:1\"] \\N \\ next", color="#1f83c4"];
  t1 -> t2;
}
`)
}

func TestGraphDepth(t *testing.T) {
	t.Parallel()
	tasks := testTasks("cc")
	tasks = append(tasks, perdure.Task{ID: 9, Parent: 2, State: perdure.Completed, Prompt: "deeper"})
	g := graphOf(treeView{depth: 1}, tasks)
	if g.Size() != 4 || g.To[0].To[0].Lines[0] != "1 task below" {
		t.Errorf("%d boxes: %s", g.Size(), graph.Dot("x", g))
	}
	if n := graphOf(treeView{depth: -1, all: true}, testTasks(strings.Repeat("c", 300))).Size(); n != 301 {
		t.Errorf("%d boxes with all, want 301", n)
	}
}
