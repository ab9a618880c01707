package rlm_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// replConfig is a run by a REPL.
func replConfig(name string) M {
	return M{"model": name, "planner": "repl"}
}

// counting is a root that counts with sub-calls, and a sub-model that answers them.
const counting = `replies:
- {match: '^count the a in', repeat: -1, text: "3"}
- {match: 'Turn 3/30', text: "FINAL_VAR(total)"}
- {match: 'Turn 2/30', text: "I ask about the parts.\n` + "```repl\\nanswers = llm_query_batched(['count the a in ' + p for p in parts])\\ntotal = sum(int(a) for a in answers)\\nprint(total)\\n```" + `"}
- {match: 'Turn 1/30', text: "` + "```repl\\nprint(type(context).__name__, len(context))\\nparts = [context[i:i+10] for i in range(0, len(context), 10)]\\n```" + `"}
`

func TestRepl(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, counting)
	b := newBench(t, m)
	tree := b.launch("How many a are there?", b.put(file{"a.txt", strings.Repeat("banana and ", 10)}),
		replConfig("openai:m"))
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "33" {
		t.Fatalf("tree is %s with %q: %+v %s", got.State, root.Result, root.Error, root.Data)
	}
	b.asks(server, tree.ID, 3+11)
	list, err := b.store.Vars(t.Context(), perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}, perdure.VarFilter{})
	b.ok(err)
	for _, v := range list {
		t.Logf("%s = %s", v.Name, v.Value)
	}
}

// TestDeathInARepl kills the process at each request of a REPL: the answer is that of a run
// without deaths, and no request whose answer arrived is made again.
func TestDeathInARepl(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; at <= 14; at++ {
			t.Run(fmt.Sprintf("at %d, after the answer %v", at, after), func(t *testing.T) {
				t.Parallel()
				m := &mortal{Model: script(t, counting)}
				b := newBench(t, models{"mock:m": m})
				tree := b.launch("How many a are there?", b.put(file{"a.txt", strings.Repeat("banana and ", 10)}),
					replConfig("mock:m"))
				for !b.die(m, tree.ID, at, after) {
					b.close()
					b.open()
					at = -1
				}
				root, err := b.store.Task(t.Context(), tree.Root)
				b.ok(err)
				if u := b.usage(tree.ID); root.Result != "33" || u.Calls != 14+u.UncertainCalls {
					t.Errorf("the result is %q after %+v, %+v", root.Result, b.usage(tree.ID), root.Error)
				}
				if got := m.Ledger().Repeated(); len(got) != 0 {
					t.Errorf("asked again: %+v", got)
				}
				events, err := b.store.Events(t.Context(), perdure.EventFilter{Tree: tree.ID})
				b.ok(err)
				for _, e := range events {
					if e.Kind == "repl.diverged" || e.Kind == perdure.EventCallDiverged {
						t.Errorf("%s %s", e.Kind, e.Data)
					}
				}
			})
		}
	}
}

// change changes the database behind the store's back.
func (b *bench) change(statement string) {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.dir, "perdure.db")+"?_pragma=busy_timeout(60000)")
	b.ok(err)
	_, err = db.ExecContext(b.Context(), statement)
	b.ok(err)
	b.ok(db.Close())
}

// The code of a finished run is run again with the recorded answers: the same comes out, and no
// model is asked. An answer that was changed in the store shows.
func TestReplay(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, counting)
	b := newBench(t, m)
	tree := b.launch("How many a are there?", b.put(file{"a.txt", strings.Repeat("banana and ", 10)}),
		replConfig("openai:m"))
	b.finish(tree.ID, 4)
	b.asks(server, tree.ID, 3+11)
	got, err := b.exec.Replay(t.Context(), tree.ID)
	b.ok(err)
	if got.Tasks != 1 || got.Blocks != 3 || len(got.Differences) != 0 {
		t.Errorf("replay of an unchanged run: %+v", got)
	}
	b.asks(server, tree.ID, 3+11)
	b.change("UPDATE task_end SET result = '9' WHERE id = 5")
	got, err = b.exec.Replay(t.Context(), tree.ID)
	b.ok(err)
	if len(got.Differences) == 0 || got.Differences[0].Turn != 2 || !strings.Contains(got.Differences[0].What, "output") {
		t.Errorf("replay of a changed answer: %+v", got)
	}
	other := b.launch("Read.", b.put(file{"b.txt", "text"}), M{"model": "openai:m"})
	if _, err := b.exec.Replay(t.Context(), other.ID); perdure.CodeOf(err) != perdure.CodeInvalid {
		t.Errorf("replay of a run without a REPL: %v", err)
	}
}
