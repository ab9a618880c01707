package rlm_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// An answer that the server cut at the limit for answers makes the run partial, whatever made it, and
// with a higher limit it is asked for again. A reply that is no answer, or valid JSON, makes no difference.
func TestCutAnswersArePartial(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("The boats went out and came back again.\n", 2000)
	const cut, whole = `text: "The light is on the", stop_reason: length}`, `text: "The light is on the mole."}`
	const value = `text: '{"where": "mole"}', stop_reason: length}`
	const searched = "ANSWER\\nOn the mole. [^1]\\n[^1]: a.txt:1\\n" +
		"> The boats went out and came back again."
	where := M{"type": "object", "properties": M{"where": M{"type": "string"}}}
	repl := M{"planner": "repl", "repl_engine": "starlark", "repl_turns": 2}
	for name, c := range map[string]struct {
		replies string // the first that matches is used
		config  M
		context string
		result  string // of a run that is partial if it is cut
		partial bool
	}{
		"an answer": {"{" + cut, M{"planner": "none"}, "a\n", "The light is on the", true},
		"a part": {"{repeat: -1, " + cut, M{"merge": "concatenate", "context_window": 8000}, lines,
			"The light", true},
		"a file of a batch": {"{repeat: -1, " + cut, M{"batch": true}, "a\n", "The light is on the", true},
		"a summary": {"{match: '=== results ===', repeat: -1, " + cut + ", {repeat: -1, " + whole,
			M{"merge": "summarize", "context_window": 8000}, lines, "The light is on the", true},
		"a search": {`{text: "ANSWER\nOn the", stop_reason: length, repeat: -1}`, M{"planner": "search"}, lines,
			"On the", true},
		"a reply after the last turn": {"{match: 'no more code|more turns', " + cut + `, {repeat: 2, text: "` +
			"```repl\\nx = 1\\n```\"}, {" + cut, repl, "a\n", "The light is on the", true},
		"a whole answer": {"{" + whole, M{"planner": "none"}, "a\n", "The light is on the mole.", false},
		"valid JSON":     {"{" + value, M{"planner": "none", "schema": where}, "a\n", `{"where":"mole"}`, false},
		"JSON that is asked for again": {`{text: '{"where": "mo', stop_reason: length}, {text: '{"where": "mole"}'}`,
			M{"planner": "none", "schema": where}, "a\n", `{"where":"mole"}`, false},
		"requests of a search": {`{text: "SEARCH boats", stop_reason: length}, {repeat: -1, text: "` + searched + `"}`,
			M{"planner": "search"}, lines, "On the mole. [^1]", false},
		"code of a turn": {`{text: "` + "```repl\\nx = 1\", stop_reason: length}, {text: \"```repl\\nFINAL('done')\\n```\"}",
			repl, "a\n", "done", false},
		"a sub-call": {"{match: 'ask me', " + cut + `, {text: "` +
			"```repl\\nanswer = {'content': llm_query('ask me'), 'ready': True}\\n```\"}", repl, "a\n",
			"The light is on the\n[cut: the answer ends at the limit for answers]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m := endpoint(t, "replies: ["+c.replies+"]")
			b := newBench(t, m)
			config := M{"model": "openai:m"}
			for k, v := range c.config {
				config[k] = v
			}
			tree := b.launch("Where is the light?", b.put(file{"a.txt", c.context}), config)
			got, root := b.finish(tree.ID, 1)
			if (got.State == perdure.Partial) != c.partial || !strings.Contains(root.Result, c.result) {
				t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
			}
			d := data(t, &root)
			if notes := strings.Join(d.Notes, "\n"); strings.Contains(notes, "a higher --max-output-tokens") != c.partial {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// The last reply of a REPL that was cut is asked for again with a higher limit, and no other.
func TestCutReplyIsAskedForAgain(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{text: "`+"```repl\\nx = 1\\n```"+`"}, `+
		`{text: "The light is", stop_reason: length}, {text: "The light is on the mole."}]`)
	b := newBench(t, m)
	tree := b.launch("Where is the light?", b.put(file{"a.txt", "a\n"}), M{"model": "openai:m", "planner": "repl",
		"repl_engine": "starlark", "repl_turns": 1})
	if got, _ := b.finish(tree.ID, 1); got.State != perdure.Partial {
		t.Fatalf("tree is %s", got.State)
	}
	if root := b.resumed(tree.ID, M{"answer_tokens": 9000}); root.Result != "The light is on the mole." {
		t.Errorf("with a higher limit, the result is %q: %+v", root.Result, root.Error)
	}
	if n := server.Ledger().Totals().Started; n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// A cut answer is asked for again with a higher limit, and not without a change.
func TestCutAnswersAreAskedForAgain(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{text: "The light is", stop_reason: length}, {text: "The light is on the mole."}]`)
	b := newBench(t, m)
	tree := b.launch("Where is the light?", b.put(file{"a.txt", "a\n"}), M{"model": "openai:m", "planner": "none"})
	if got, _ := b.finish(tree.ID, 1); got.State != perdure.Partial {
		t.Fatalf("tree is %s", got.State)
	}
	_, err := b.resume(tree.ID, M{})
	b.ok(err)
	if got, root := b.finish(tree.ID, 1); root.Result != "The light is" || got.State != perdure.Partial {
		t.Errorf("without a change, the tree is %s with %q", got.State, root.Result)
	}
	if root := b.resumed(tree.ID, M{"answer_tokens": 9000}); root.Result != "The light is on the mole." || root.Partial {
		t.Errorf("with a higher limit, the result is %q: %+v", root.Result, root.Error)
	}
	if n := server.Ledger().Totals().Started; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}
