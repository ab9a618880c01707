package rlm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/rlm"
)

// watched is a model that calls before ahead of each request.
type watched struct {
	*mock.Model
	before func()
}

func (m *watched) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	m.before()
	return m.Model.Generate(ctx, req)
}

// states returns the turns of the root in words: number, state, and the blocks with state and
// number of sub-calls.
func (b *bench) states(tree *perdure.Tree) string {
	b.Helper()
	list, err := rlm.TreeTurns(b.Context(), b.store, tree.ID, tree.Root)
	b.ok(err)
	if len(list) != 1 {
		b.Fatalf("%d tasks have turns", len(list))
	}
	var parts []string
	for _, t := range list[0].Turns {
		text := fmt.Sprintf("%d %s", t.Turn, t.State)
		for _, k := range t.Blocks {
			text += fmt.Sprintf(", %s %d", k.State, k.SubCalls)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Turns have the state of their blocks, and while the last one has not ended, that of the task.
func TestTurnsOfARun(t *testing.T) {
	t.Parallel()
	m := &watched{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok\"}\n",
		block("x = 5", "1/0"),
		block("y = llm_query('q 1')")+"\n"+block("z = llm_query_batched(['q 2', 'q 3'])", "FINAL(z)")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	var seen []string
	m.before = func() { seen = append(seen, b.states(&tree)) }
	if got := b.states(&tree); got != "" {
		t.Errorf("before the run: %s", got)
	}
	b.finish(tree.ID, 1)
	want := []string{
		"1 running",
		"1 failed, failed 0; 2 running",
		"1 failed, failed 0; 2 running, running 1",
		"1 failed, failed 0; 2 waiting, completed 1, waiting 2",
		"1 failed, failed 0; 2 waiting, completed 1, waiting 2",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if got := b.states(&tree); got != "1 failed, failed 0; 2 completed, completed 1, completed 2" {
		t.Errorf("after the run: %s", got)
	}
	list, err := rlm.TreeTurns(t.Context(), b.store, tree.ID, 0)
	b.ok(err)
	var sum perdure.Usage
	for _, one := range list[0].Turns {
		sum.Calls += one.Usage.Calls
		sum.InputTokens += one.Usage.InputTokens
		sum.OutputTokens += one.Usage.OutputTokens
		sum.CostUSD += one.Usage.CostUSD
	}
	if diff := cmp.Diff(b.usage(tree.ID), sum); diff != "" || sum.Calls != 5 {
		t.Errorf("the turns took something else than the tree: %s", diff)
	}
	first, last := list[0].Turns[0], list[0].Turns[1]
	if first.Reply != "" || first.Blocks[0].Code != "x = 5" ||
		first.Blocks[0].Failure != "ZeroDivisionError: division by zero" ||
		last.SubCalls != 3 || last.Blocks[1].Final != "['ok', 'ok']" {
		t.Errorf("turns %+v", list[0].Turns)
	}
}

// A turn that a limit has ended is partial, and a turn counts what the REPLs of its sub-calls
// took.
func TestTurnsOfPartialAndInnerRuns(t *testing.T) {
	t.Parallel()
	ok := "- {match: '^q', repeat: -1, text: \"ok\"}\n"
	b := newBench(t, models{"mock:m": script(t, turns(ok, block("x = llm_query_batched(['q'] * 5)")))})
	config := replConfig("mock:m")
	config["budget_calls"] = 3
	tree := b.launch("What?", "", config)
	b.finish(tree.ID, 1)
	if got := b.states(&tree); !strings.HasPrefix(got, "1 partial, partial ") {
		t.Errorf("after the budget has ended: %s", got)
	}
	script := script(t, "replies:\n"+ok+"- {match: 'inner text[\\s\\S]*Turn 1/', repeat: -1, "+
		"text: \"```repl\\nFINAL(llm_query('q'))\\n```\"}\n"+
		"- {match: 'Which letters', text: \"```repl\\nFINAL(rlm_query_batched(['inner text', 'inner text 2']))\\n```\"}\n")
	b = newBench(t, models{"mock:m": script})
	config = replConfig("mock:m")
	config["max_depth"] = 3
	tree = b.launch("Which letters?", "", config)
	b.finish(tree.ID, 2)
	list, err := rlm.TreeTurns(t.Context(), b.store, tree.ID, 0)
	b.ok(err)
	if len(list) != 3 || list[0].Turns[0].SubCalls != 2 || list[0].Turns[0].Usage != b.usage(tree.ID) {
		t.Errorf("the turns are %+v, and the tree took %+v", list, b.usage(tree.ID))
	}
	for _, one := range list[1:] {
		if one.Turns[0].SubCalls != 1 || one.Turns[0].Usage.Calls != 2 {
			t.Errorf("the turns of %q are %+v", one.Task, one.Turns)
		}
	}
	other := b.launch("Read.", b.put(file{"b.txt", "text"}), M{"model": "mock:m"})
	if list, err := rlm.TreeTurns(t.Context(), b.store, other.ID, 0); err != nil || len(list) > 0 {
		t.Errorf("turns of a run without a REPL: %+v, %v", list, err)
	}
}
