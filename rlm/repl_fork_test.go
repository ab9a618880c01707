package rlm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// A fork takes over the turns up to one of them with their sub-calls: only what follows is asked,
// of the model that the fork names. The other tree stays as it is.
func TestFork(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, turns("- {match: '^q', repeat: -1, text: \"ok {{n}}\"}\n",
		block("r = llm_query_batched([f'q {i}' for i in range(10)])"),
		block("s = llm_query('q again')", "print(s)"), block("FINAL((sorted(r)[0], s))")))
	other, n := endpoint(t, turns("- {match: '^q', repeat: -1, text: \"other\"}\n", block("r = 1"),
		block("FINAL(llm_query('q again'))"), block("FINAL((sorted(r)[0], s))")))
	m["openai:other"] = n["openai:m"]
	b := newBench(t, m)
	id := b.put(file{"a.txt", "one\n"})
	config := replConfig("openai:m")
	tree := b.launch("What?", id, config)
	_, root := b.finish(tree.ID, 4)
	b.asks(server, tree.ID, 3+11)
	for at, want := range map[int]struct {
		result string
		asked  int
	}{1: {"other", 2}, 2: {root.Result, 1}, 3: {root.Result, 0}} {
		config["model"], config["fork"] = "openai:other", rlm.Fork{Tree: tree.ID, At: at}
		asked := other.Ledger().Totals().Started
		fork := b.launch("What?", id, config)
		_, got := b.finish(fork.ID, 4)
		asked = other.Ledger().Totals().Started - asked
		if got.Result != want.result || asked != want.asked {
			t.Errorf("at %d: %q after %d requests, want %q after %d: %+v", at, got.Result, asked, want.result,
				want.asked, got.Error)
		}
		if u := b.usage(fork.ID); u.Calls != int64(want.asked) {
			t.Errorf("at %d: %+v", at, u)
		}
		if r, err := b.exec.Replay(t.Context(), fork.ID); err != nil || len(r.Differences) > 0 {
			t.Errorf("replay: %+v, %v", r, err)
		}
	}
	b.asks(server, tree.ID, 3+11)
}

// A fork whose process dies goes on from the other tree all the same.
func TestDeathInAFork(t *testing.T) {
	t.Parallel()
	for _, at := range []int{1, 2, 3} {
		m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok {{n}}\"}\n",
			block("r = llm_query_batched([f'q {i}' for i in range(3)])"), block("s = llm_query('q again')"),
			block("FINAL((sorted(r), s))")))}
		b := newBench(t, models{"mock:m": m})
		config := replConfig("mock:m")
		tree := b.launch("What?", "", config)
		_, was := b.finish(tree.ID, 4)
		config["fork"] = rlm.Fork{Tree: tree.ID, At: 1}
		fork := b.launch("What?", "", config)
		for !b.die(m, fork.ID, at, at == 2) {
			b.close()
			b.open()
			at = -1
		}
		root, err := b.store.Task(t.Context(), fork.Root)
		b.ok(err)
		batch, _, _ := strings.Cut(was.Result, "]")
		if !strings.HasPrefix(root.Result, batch+"], 'ok ") || root.Result == was.Result {
			t.Errorf("the result is %q, %+v", root.Result, root.Error)
		}
	}
}

// A fork needs the other tree for what it has not taken over yet, and not after that.
func TestForkOfARemovedTree(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 2} {
		m := &mortal{Model: script(t, turns("- {match: '^q', repeat: -1, text: \"ok {{n}}\"}\n",
			block("r = llm_query('q 1')"), block("s = llm_query('q 2')"), block("FINAL((r, s))")))}
		b := newBench(t, models{"mock:m": m})
		config := replConfig("mock:m")
		tree := b.launch("What?", "", config)
		_, was := b.finish(tree.ID, 4)
		taken, _, _ := strings.Cut(was.Result, ",")
		config["fork"] = rlm.Fork{Tree: tree.ID, At: 1}
		fork := b.launch("What?", "", config)
		if at > 0 {
			b.die(m, fork.ID, at, true)
			b.close()
			b.open()
		}
		b.ok(b.store.RemoveTree(t.Context(), tree.ID))
		_, root := b.finish(fork.ID, 4)
		switch {
		case at > 0 && (root.State != perdure.Completed || !strings.HasPrefix(root.Result, taken+", 'ok ")):
			t.Errorf("%q, %+v", root.Result, root.Error)
		case at == 0 && (root.Error == nil || root.Error.Kind != rlm.KindPlan ||
			!strings.Contains(root.Error.Message, "turn 1 was not taken over before tree")):
			t.Errorf("%q, %+v", root.Result, root.Error)
		}
		if r, err := b.exec.Replay(t.Context(), fork.ID); err != nil || len(r.Differences) > 0 {
			t.Errorf("replay: %+v, %v", r, err)
		}
	}
}

// What cannot be taken over is refused before a tree exists.
func TestForkRefused(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("", block("FINAL(1)")))
	b := newBench(t, m)
	tree := b.launch("What?", "", replConfig("openai:m"))
	b.finish(tree.ID, 1)
	for want, fork := range map[string]M{
		"the last turn of tree":          {"fork": rlm.Fork{Tree: tree.ID, At: 2}},
		"turn 0 is not between":          {"fork": rlm.Fork{Tree: tree.ID}},
		"no tree":                        {"fork": rlm.Fork{Tree: "tree-00000000", At: 1}},
		"not the ID of a tree":           {"fork": rlm.Fork{Tree: "x", At: 1}},
		"only runs with planner repl go": {"fork": rlm.Fork{Tree: tree.ID, At: 1}, "planner": "split"},
	} {
		config := replConfig("openai:m")
		for k, v := range fork {
			config[k] = v
		}
		raw, err := json.Marshal(config)
		b.ok(err)
		_, err = b.exec.Launch(t.Context(), rlm.LaunchRequest{Prompt: "What?", Config: raw})
		if code := perdure.CodeOf(err); err == nil || code != perdure.CodeInvalid && code != perdure.CodeNotFound ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
