package rlm_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// A REPL in Starlark does the same as one in Python: its code is recorded, and goes on after a death.
func TestStarlark(t *testing.T) {
	t.Parallel()
	for _, at := range []int{-1, 1, 2, 6, 14} {
		m := &mortal{Model: script(t, turns("- {match: '^count the a in', repeat: -1, text: \"3\"}\n",
			block("parts = [context[i:i+10] for i in range(0, len(context), 10)]", "print(type(context), len(parts))"),
			block("answers = llm_query_batched(['count the a in ' + p for p in parts])",
				"total = sum([int(a) for a in answers])", "print(total)"),
			block("try: pass"), block("FINAL(re.sub('x', str(total), 'x in all'))")))}
		b := newBench(t, models{"mock:m": m})
		config := replConfig("mock:m")
		config["repl_engine"] = rlm.EngineStarlark
		tree := b.launch("How many a are there?", b.put(file{"a.txt", strings.Repeat("banana and ", 10)}), config)
		for !b.die(m, tree.ID, at, at == 6) {
			b.close()
			b.open()
			at = -1
		}
		root, err := b.store.Task(t.Context(), tree.Root)
		b.ok(err)
		if root.State != perdure.Completed || root.Result != "33 in all" {
			t.Fatalf("the result is %q, %+v", root.Result, root.Error)
		}
		if got := m.Ledger().Repeated(); len(got) != 0 {
			t.Errorf("asked again: %+v", got)
		}
		if r, err := b.exec.Replay(t.Context(), tree.ID); err != nil || r.Blocks != 4 || len(r.Differences) > 0 {
			t.Errorf("replay: %+v, %v", r, err)
		}
	}
}
