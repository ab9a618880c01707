package rlm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// ask asks a further question.
func (b *bench) ask(tree perdure.TreeID, prompt string, changes M) (perdure.Tree, error) {
	b.Helper()
	raw, err := json.Marshal(changes)
	b.ok(err)
	return b.exec.Launch(b.Context(), rlm.LaunchRequest{Ask: tree, Prompt: prompt, Config: raw})
}

// conversing is a model of three questions in a row, each of which uses what the code of the ones
// before has bound.
const conversing = "replies:\n- {match: '^q fails', repeat: -1, status: 400, message: no}\n" +
	"- {match: '^q', repeat: -1, text: 'ok {{n}}'}\n" +
	"- {match: 'Third\\?\\n\\nTurn 1/', text: \"```repl\\nFINAL((double(n), words, s, bad[:5], t, r))\\n```\"}\n" +
	"- {match: 'Second\\?\\n\\nTurn 1/', text: \"```repl\\nt = llm_query('q more')\\nn = double(n)\\nFINAL(n)\\n```\"}\n" +
	"- {match: 'Turn 2/', text: \"```repl\\nFINAL_VAR('n')\\n```\"}\n" +
	"- {match: 'Turn 1/', text: \"```repl\\nimport random\\ndef double(x): return 2 * x\\nwords = set(['a'])\\nn = 4\\n" +
	"r = random.random()\\ns = llm_query('q one')\\nbad = llm_query('q fails')\\nprint(s)\\n```\"}\n"

// A further question goes on with the conversation: functions and values that JSON does not hold
// are there, nothing that was answered is asked again, also of a question about a question.
func TestFurtherQuestion(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, conversing)
	b := newBench(t, m)
	tree := b.launch("First?", b.put(file{"a.txt", "one\n"}), replConfig("openai:m"))
	_, first := b.finish(tree.ID, 2)
	before := server.Ledger().Totals().Started
	second, err := b.ask(tree.ID, "Second?", nil)
	b.ok(err)
	_, root := b.finish(second.ID, 2)
	if first.Result != "4" || root.Result != "8" || root.Context.Hash != first.Context.Hash {
		t.Fatalf("%q, %q: %+v %+v", first.Result, root.Result, first.Error, root.Error)
	}
	third, err := b.ask(second.ID, "Third?", nil)
	b.ok(err)
	_, root = b.finish(third.ID, 2)
	got := root.Result
	if !strings.HasPrefix(got, "(16, {'a'}, 'ok ") || !strings.Contains(got, "'Error', 'ok ") {
		t.Errorf("%q, %+v", got, root.Error)
	}
	if asked := server.Ledger().Totals().Started - before; asked != 3 {
		t.Errorf("%d requests for two further questions, want 3", asked)
	}
	random, err := b.store.Var(t.Context(), perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}, "r")
	b.ok(err)
	if !strings.HasSuffix(got, ", "+string(random.Value)+")") {
		t.Errorf("%q, and the random number was %s", got, random.Value)
	}
	for _, id := range []perdure.TreeID{second.ID, third.ID} {
		if r, err := b.exec.Replay(t.Context(), id); err != nil || len(r.Differences) > 0 {
			t.Errorf("replay: %+v, %v", r, err)
		}
	}
	b.ok(b.store.RemoveTree(t.Context(), tree.ID))
	if _, err := b.store.Context(t.Context(), root.Context.Source); err != nil {
		t.Errorf("the context: %v", err)
	}
}

// A further question begins with the variables as they are, also with those that the user has
// changed after the end, and with any planner.
func TestVariablesOfAFurtherQuestion(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, "replies:\n- {match: 'Second', text: \"```repl\\nFINAL((n, f(1), extra))\\n```\"}\n"+
		"- {match: 'Turn 1/', text: \"```repl\\nn = 4\\nf = lambda x: x + n\\nFINAL(n)\\n```\"}\n"+
		"- {match: 'Plain', repeat: -1, text: 'plain answer'}\n")
	b := newBench(t, m)
	tree := b.launch("First?", b.put(file{"a.txt", "one\n"}), replConfig("openai:m"))
	b.finish(tree.ID, 2)
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
	for name, value := range map[string]string{"n": "5", "extra": `"mine"`} {
		_, err := b.store.SetVar(t.Context(), ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value)})
		b.ok(err)
	}
	second, err := b.ask(tree.ID, "Second?", nil)
	b.ok(err)
	if _, root := b.finish(second.ID, 2); root.Result != "(5, 6, 'mine')" {
		t.Errorf("%q, %+v", root.Result, root.Error)
	}
	plain, err := b.ask(second.ID, "Plain?", M{"planner": "none"})
	b.ok(err)
	if _, root := b.finish(plain.ID, 2); root.Result != "plain answer" {
		t.Errorf("%q, %+v", root.Result, root.Error)
	}
	for _, id := range []perdure.TreeID{second.ID, plain.ID} {
		ref.Tree = id
		if v, err := b.store.Var(t.Context(), ref, "n"); err != nil || string(v.Value) != "5" {
			t.Errorf("n is %s, %v", v.Value, err)
		}
	}
}

// The process of a further question can die anywhere, before its first request too.
func TestDeathInAFurtherQuestion(t *testing.T) {
	t.Parallel()
	for at := range 3 {
		m := &mortal{Model: script(t, strings.Replace(conversing, "status: 400, message: no", "text: no", 1))}
		b := newBench(t, models{"mock:m": m})
		tree := b.launch("First?", "", replConfig("mock:m"))
		b.finish(tree.ID, 4)
		second, err := b.ask(tree.ID, "Second?", nil)
		b.ok(err)
		for n := at; !b.die(m, second.ID, max(n, -1), true); n = -1 {
			b.close()
			b.open()
		}
		root, err := b.store.Task(t.Context(), second.Root)
		b.ok(err)
		if root.Result != "8" {
			t.Errorf("death %d: %q, %+v", at, root.Result, root.Error)
		}
		if u := b.usage(second.ID); u.Calls > 3 {
			t.Errorf("death %d: %+v", at, u)
		}
	}
}

// What cannot be asked is refused with the code that says why.
func TestFurtherQuestionRefused(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("", block("FINAL(1)")))
	b := newBench(t, m)
	tree := b.launch("What?", b.put(file{"a.txt", "one\n"}), replConfig("openai:m"))
	try := func(id perdure.TreeID, changes M, want perdure.Code, text string) {
		t.Helper()
		if _, err := b.ask(id, "And?", changes); perdure.CodeOf(err) != want || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%s %v: %v, want %s", id, changes, err, want)
		}
	}
	try(tree.ID, nil, perdure.CodeConflict, "is queued")
	try("tree-00000000", nil, perdure.CodeNotFound, "tree-00000000")
	b.finish(tree.ID, 1)
	try(tree.ID, M{"repl_engine": "starlark"}, perdure.CodeInvalid, "is run by python")
	try(tree.ID, M{"modle": "x"}, perdure.CodeInvalid, "modle")
	_, err := b.exec.Launch(t.Context(), rlm.LaunchRequest{Ask: tree.ID, Prompt: "And?", ContextID: "ctx-1"})
	if perdure.CodeOf(err) != perdure.CodeInvalid {
		t.Errorf("another context: %v", err)
	}
}
