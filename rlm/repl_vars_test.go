package rlm_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// A variable that a person sets while a block is interrupted is set before the next block: the
// interrupted one is run again with what it had, and asks nothing twice.
func TestVariableEditedInABlock(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok\"}\n", block("limit = 1"),
		block("x = llm_query(f'q 1 {limit}')", "x += llm_query(f'q 2 {limit}')"), block("FINAL(limit)")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	if b.die(m, tree.ID, 3, true) { // after the first sub-call
		t.Fatal("the tree ended")
	}
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
	_, err := b.store.SetVar(t.Context(), ref, perdure.VarSpec{Name: "limit", Value: []byte("7")})
	b.ok(err)
	b.close()
	b.open()
	_, root := b.finish(tree.ID, 2)
	if root.Result != "7" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
	if n, calls := b.count(tree.ID, "repl.diverged"), b.usage(tree.ID).Calls; n != 0 || calls != 5 {
		t.Errorf("%d divergences and %d calls, want none and 5", n, calls)
	}
	if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || len(r.Differences) > 0 {
		t.Errorf("replay: %+v, %v", r, err)
	}
}

// Names that the state of a task does not have are variables of the code like any others.
func TestVariablesOutsideTheState(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"prompt", "Final", "é", strings.Repeat("x", 200)} {
		b := newBench(t, models{"mock:m": script(t, turns("", block(name+" = 1"), block("del "+name, "FINAL(2)")))})
		tree := b.launch("What?", "", replConfig("mock:m"))
		if _, root := b.finish(tree.ID, 1); root.Result != "2" {
			t.Errorf("%q: the result is %q, %+v", name, root.Result, root.Error)
		}
	}
}

// A variable that a person made read-only keeps its value in the state, whatever the code does to
// its own one.
func TestReadOnlyVariable(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: script(t, turns("", block("limit = 1"), block("limit += 1"), block("seen = limit", "del limit"),
		block("FINAL(seen)")))}
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What?", "", replConfig("mock:m"))
	if b.die(m, tree.ID, 2, true) { // after the second reply
		t.Fatal("the tree ended")
	}
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
	_, err := b.store.SetVar(t.Context(), ref, perdure.VarSpec{Name: "limit", Value: []byte("7"), ReadOnly: true})
	b.ok(err)
	b.close()
	b.open()
	if _, root := b.finish(tree.ID, 1); root.Result != "8" {
		t.Errorf("the result is %q, %+v", root.Result, root.Error)
	}
	v, err := b.store.Var(t.Context(), ref, "limit")
	b.ok(err)
	if string(v.Value) != "7" {
		t.Errorf("the variable is %s", v.Value)
	}
}
