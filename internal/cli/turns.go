package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/view/graph"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/rlm"
)

// showTurns prints the turns of a REPL.
func (a *app) showTurns(raw json.RawMessage) {
	list := turns.Parse(raw)
	for i := range list {
		t := &list[i]
		a.Printf("\n%s  %s\n", a.Out.Bold(fmt.Sprintf("Turn %d", t.Turn)), a.Out.Dim(turns.Figures(t)))
		if len(t.Blocks) == 0 {
			a.indented("", t.Reply)
		}
		if t.Unrecorded {
			a.Printf("    %s\n", a.Out.Dim(turns.NoRecord))
		}
		for k := range t.Blocks {
			a.showBlock(&t.Blocks[k])
		}
	}
}

// showBlock prints a block of code with what it did.
func (a *app) showBlock(b *rlm.TurnBlock) {
	a.indented("> ", b.Code)
	a.indented("", turns.Output(b))
	a.Printf("    %s\n", a.Out.Dim(env.OneLine(turns.Facts(b), a.Out.Width-5)))
}

// indented prints text of several lines with a mark before each.
func (a *app) indented(mark, text string) {
	text = strings.Trim(text, "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	for line := range strings.SplitSeq(a.Out.Safe(text), "\n") {
		a.Printf("  %s%s\n", a.Out.Dim(mark), line)
	}
}

// groups returns the children of a task with a REPL by the turn that made them, nil for other
// tasks. Children are made in the order of the turns.
func (n *node) groups() [][]*node {
	if len(n.turns) == 0 {
		return nil
	}
	groups, rest := make([][]*node, len(n.turns)), n.children
	for i := range n.turns {
		made := min(n.turns[i].SubCalls, len(rest))
		groups[i], rest = rest[:made], rest[made:]
	}
	last := len(groups) - 1
	groups[last] = append(groups[last], rest...)
	return groups
}

// drawTurns draws the turns of a REPL, each with the tasks of its sub-calls.
func (v treeView) drawTurns(indent string, n *node, groups [][]*node, depth int) {
	for i := range n.turns {
		branch, below := branches(i == len(n.turns)-1)
		mark := v.s.Mark(n.turns[i].State)
		for k, l := range turns.Lines(&n.turns[i]) {
			front := indent + branch
			if k > 0 {
				front, mark = indent+below, " "
				if l.State != perdure.Completed {
					mark = v.s.Mark(l.State)
				}
			}
			tail := ""
			if l.Cost != "" {
				tail = "  " + l.Cost
			}
			room := v.s.Width - env.Width(front) - env.Width(l.Name()) - env.Width(tail) - 4
			fmt.Fprintln(v.s, v.s.Dim(front)+mark+" "+v.s.Bold(l.Name())+"  "+l.Text(max(room, 24))+v.s.Dim(tail))
		}
		v.drawRuns(indent+below, v.runs(groups[i]), depth)
	}
}

// turnBox returns a turn of the REPL of a task as a box of a graph, with the boxes of its
// sub-calls.
func turnBox(task string, t *rlm.Turn, below []*graph.Node) *graph.Node {
	box := &graph.Node{Key: fmt.Sprintf("%sturn%d", task, t.Turn), State: t.State, To: below}
	for k, l := range turns.Lines(t) {
		if k == 0 {
			box.Lines = []string{fmt.Sprintf("%s %s %s", status.Mark(t.State), strings.TrimSpace(l.Name()), l.Cost)}
		}
		box.Lines = append(box.Lines, l.Text(graphLabel))
	}
	return box
}

// turnsOf returns the turns of the tasks of a tree that are answered by a REPL, in brief. It
// returns none if there is no such tree, or from a daemon that does not list them.
func (a *app) turnsOf(ctx context.Context, b *env.Backend, id perdure.TreeID) (map[perdure.TaskID][]rlm.Turn, error) {
	list, err := b.Turns(ctx, id, 0)
	if err != nil && !errors.Is(err, perdure.ErrNotFound) {
		return nil, err
	}
	made := make(map[perdure.TaskID][]rlm.Turn, len(list))
	for _, one := range list {
		made[one.Task] = one.Turns
	}
	return made, nil
}

// taskWithTurns is a task in JSON with the turns of its REPL.
type taskWithTurns struct {
	task  *perdure.Task
	turns []rlm.Turn
}

// MarshalJSON adds the member turns to the form of a task, if there are turns.
func (t taskWithTurns) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(t.task)
	if err != nil || len(t.turns) == 0 {
		return raw, err
	}
	added, err := json.Marshal(t.turns)
	if err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(raw, []byte("}")), []byte(`,"turns":`), added, []byte("}")), nil
}
