package rlm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/rlm"
)

// resume continues a tree with changes.
func (b *bench) resume(id perdure.TreeID, changes M) (perdure.RecoverReport, error) {
	b.Helper()
	raw, err := json.Marshal(changes)
	b.ok(err)
	return b.exec.Resume(b.Context(), rlm.ResumeRequest{Tree: id, Changes: raw})
}

// resumed continues a tree, finishes it and wants it completed.
func (b *bench) resumed(id perdure.TreeID, changes M) perdure.Task {
	b.Helper()
	_, err := b.resume(id, changes)
	b.ok(err)
	tree, root := b.finish(id, 1)
	if tree.State != perdure.Completed || tree.Partial || root.Partial {
		b.Fatalf("after resume the tree is %s: %+v %s", tree.State, root.Error, root.Data)
	}
	b.sound()
	return root
}

// sound wants a store without faults.
func (b *bench) sound() {
	b.Helper()
	faults, err := b.store.Check(b.Context())
	b.ok(err)
	logged, err := b.store.VerifyLog(b.Context())
	b.ok(err)
	if !logged.Intact || len(faults) > 0 {
		b.Errorf("faults %v, log %+v", faults, logged)
	}
}

// TestResumeAfterEachBudget ends runs of each shape at each number of calls, resumes them
// without a limit, and wants the answer of a run that was never limited, with no request
// sent twice.
func TestResumeAfterEachBudget(t *testing.T) {
	t.Parallel()
	const answers = `replies:
  - {match: 'from 0 \(worthless\)', text: '{"score": 50, "critique": "good"}', repeat: -1}
  - {match: 'Do not answer the task yet', text: '{"tasks":[{"id":"a","prompt":"First."},{"id":"b","prompt":"Use.","depends_on":["a"]},{"prompt":"Third."}]}', repeat: -1}
  - {text: '{{hash}}', repeat: -1}`
	text := numbered(100)
	for name, config := range map[string]M{
		"merge":       {"chunk_tokens": 250, "max_children": 3},
		"concatenate": {"chunk_tokens": 250, "merge": "concatenate"},
		"summarize":   {"chunk_tokens": 250, "max_children": 2, "merge": "summarize"},
		"sequential":  {"chunk_tokens": 250, "max_children": 2, "strategy": "sequential"},
		"map-reduce":  {"chunk_tokens": 250, "strategy": "map-reduce", "fan_in": 2, "merge": "summarize"},
		"vote":        {"merge": "vote", "samples": 4},
		"best-of-n":   {"merge": "best-of-n", "samples": 3},
		"gate":        {"chunk_tokens": 250, "min_score": 40},
		"planned":     {"planner": "model"},
		"structured":  {"schema": M{"type": "object", "required": []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(calls int64) (b *bench, tree perdure.Tree, sent func() (total, twice int)) {
				script := answers
				if name == "structured" { // two corrections
					script = `replies: [{text: "no JSON", repeat: 2}, {text: '{"a": 1}', repeat: -1}]`
				}
				server, ms := endpoint(t, script)
				b = newBench(t, ms)
				config := mergeOf(config, M{"model": "openai:m", "overlap_tokens": -1, "budget_calls": calls})
				if name == "vote" || name == "best-of-n" || name == "planned" || name == "structured" {
					tree = b.launch("Read.", "", config)
				} else {
					tree = b.launch("Read.", b.put(file{"text.txt", text}), config)
				}
				return b, tree, func() (int, int) {
					twice := 0
					for _, e := range server.Ledger().Entries() {
						if e.Started > 1 && name != "vote" && name != "best-of-n" && name != "structured" { // which repeat
							twice++
						}
					}
					return server.Ledger().Totals().Started, twice
				}
			}
			whole, tree, sent := run(0)
			_, want := whole.finish(tree.ID, 1)
			all, _ := sent()
			if want.State != perdure.Completed || all < 3 {
				t.Fatalf("the run without a limit is %s after %d requests: %+v", want.State, all, want.Error)
			}
			for calls := int64(1); calls < int64(all); calls++ {
				b, tree, sent := run(calls)
				got, _ := b.finish(tree.ID, 1)
				if got.State != perdure.Partial && got.State != perdure.Failed {
					t.Fatalf("with %d of %d calls the tree is %s", calls, all, got.State)
				}
				if _, err := b.resume(tree.ID, M{}); !slices.Contains([]string{"best-of-n", "gate", "summarize", "planned",
					"map-reduce"}, name) && !errors.Is(err, perdure.ErrBudgetExceeded) {
					t.Errorf("resume with the limit that is used up: %v", err)
				}
				root := b.resumed(tree.ID, M{"budget_calls": 0})
				if root.Result != want.Result && name != "map-reduce" { // which merges other groups
					t.Errorf("resumed after %d of %d calls, the answer is\n%s, want\n%s", calls, all, root.Result, want.Result)
				}
				n, twice := sent()
				if n != all && name != "best-of-n" || // equal candidates are scored once
					twice != 0 || b.usage(tree.ID).Calls != int64(n) {
					t.Errorf("%d requests were sent after a limit of %d, %d of them twice, and %d are counted; want %d", n, calls,
						twice, b.usage(tree.ID).Calls, all)
				}
			}
		})
	}
}

func mergeOf(all ...M) M {
	out := M{}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// TestResumeAfterTheNodeLimit: parts that could not be divided within the limit of tasks are
// done after resume with a higher one. Each reopening reports the limit again.
func TestResumeAfterTheNodeLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, fmt.Sprintf(limited, 1200))})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(800)}),
		M{"model": "mock:m", "chunk_tokens": 4000, "overlap_tokens": -1, "max_nodes": 4})
	exceeded := func(want int) {
		t.Helper()
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Partial && got.State != perdure.Failed {
			t.Fatalf("within the limit the tree is %s: %+v", got.State, root.Error)
		}
		if n := b.events(tree.ID)[perdure.EventBudgetExceeded]; n != want {
			t.Errorf("%d events of the limit, want %d", n, want)
		}
	}
	exceeded(1)
	_, err := b.resume(tree.ID, M{"max_nodes": 5})
	b.ok(err)
	exceeded(2)
	b.resumed(tree.ID, M{"max_nodes": 100})
	p, err := b.store.Progress(t.Context(), tree.ID)
	b.ok(err)
	for _, use := range p.Limits {
		if use.Limit == "nodes" && (use.Value != 100 || use.Exceeded) {
			t.Errorf("after resume the limit is %+v", use)
		}
	}
}

// TestResumeArithmetic: a limit that pays for no missing part is refused with the numbers,
// and changes nothing.
func TestResumeArithmetic(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(100)}),
		M{"model": "mock:m", "chunk_tokens": 250, "budget_calls": 2})
	b.finish(tree.ID, 1)
	for _, tt := range []struct {
		changes M
		want    string
	}{
		{M{}, "budget_calls: 2 of 2 calls are used, and 1 is needed for the smallest of "},
		{M{"budget_calls": 1}, "budget_calls: 2 of 1 calls are used"},
		{M{"budget_calls": 0, "budget_tokens": 100}, "of 100 tokens are used, and up to "},
		{M{"model": "mock:other"}, "there is no model mock:other"},
		{M{"max_attempts": 1000}, "max_attempts: 1000 is not between 1 and 100"},
		{M{"modle": "m"}, "field modle: unknown field"},
	} {
		_, err := b.resume(tree.ID, tt.changes)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("resume with %v: %v, want %q", tt.changes, err, tt.want)
		}
		if got, err := b.store.Tree(t.Context(), tree.ID); err != nil || got.State != perdure.Partial || got.Reopened != 0 {
			t.Errorf("after a refused resume the tree is %s, reopened %d times: %v", got.State, got.Reopened, err)
		}
	}
}

// TestResumeWithAnotherModel: parts that the first model refused are answered by the
// second one; costs show both, and the parts of the first are not asked again.
func TestResumeWithAnotherModel(t *testing.T) {
	t.Parallel()
	first, second := failing(t, `line 0000[258]0`)["mock:m"].(*mock.Model), echo(t)
	b := newBench(t, models{"mock:m": first, "mock:n": second})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(100)}),
		M{"model": "mock:m", "chunk_tokens": 250, "overlap_tokens": -1, "max_children": 2})
	got, _ := b.finish(tree.ID, 2)
	asked := first.Ledger().Totals().Started
	if got.State != perdure.Partial {
		t.Fatalf("tree is %s", got.State)
	}
	b.resumed(tree.ID, M{"model": "mock:n"})
	if n := second.Ledger().Totals().Started; n != 3 || first.Ledger().Totals().Started != asked {
		t.Errorf("the second model was asked %d times, the first %d times more", n,
			first.Ledger().Totals().Started-asked)
	}
	p, err := b.store.Progress(t.Context(), tree.ID)
	b.ok(err)
	calls := make(map[string]int64)
	for _, c := range p.Costs {
		calls[c.Model] += c.Calls
	}
	if calls["mock:n"] != 3 || calls["mock:m"] != int64(asked) || p.Percent != 100 || p.Failed != 0 {
		t.Errorf("calls by model are %v, %+v", calls, p)
	}
	if again, err := b.resume(tree.ID, M{"model": "mock:m"}); err != nil || again.Reopened != 0 {
		t.Errorf("resume of a completed tree: %+v, %v", again, err)
	}
}

// TestResumeKeepsFailing: a part that fails again leaves the tree partial, with the same
// answer and as many tasks, however often it is resumed.
func TestResumeKeepsFailing(t *testing.T) {
	t.Parallel()
	m := failing(t, `line 000020`)["mock:m"].(*mock.Model)
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(100)}),
		M{"model": "mock:m", "chunk_tokens": 250, "overlap_tokens": -1, "max_children": 2})
	_, before := b.finish(tree.ID, 2)
	tasks, asked := len(b.tasks(tree.ID)), m.Ledger().Totals().Started
	for i := 1; i < 4; i++ {
		_, err := b.resume(tree.ID, M{})
		b.ok(err)
		got, root := b.finish(tree.ID, 2)
		if got.State != perdure.Partial || got.Reopened != i || root.Result != before.Result ||
			len(b.tasks(tree.ID)) != tasks || m.Ledger().Totals().Started != asked+i {
			t.Errorf("after resume %d the tree is %s with %d tasks and %d requests", i, got.State, len(b.tasks(tree.ID)),
				m.Ledger().Totals().Started)
		}
		if d := data(t, &root); len(d.Missing) != 1 {
			t.Errorf("missing are %+v", d.Missing)
		}
	}
	b.sound()
}

// TestDeathWhileResuming kills the process at each request of a resumed run.
func TestDeathWhileResuming(t *testing.T) {
	t.Parallel()
	for _, merge := range []string{"merge", "summarize"} {
		t.Run(merge, func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: echo(t)}
			b := newBench(t, models{"mock:m": m})
			tree := b.launch("Read.", b.put(file{"text.txt", numbered(150)}),
				M{"model": "mock:m", "chunk_tokens": 250, "merge": merge, "max_children": 3, "budget_calls": 2})
			if got, _ := b.finish(tree.ID, 1); got.State != perdure.Partial {
				t.Fatalf("tree is %s", got.State)
			}
			_, err := b.resume(tree.ID, M{"budget_calls": 0})
			b.ok(err)
			deaths := 0
			for !b.die(m, tree.ID, 2, true) {
				deaths++
				b.close()
				b.open()
			}
			root, err := b.store.Task(t.Context(), tree.Root)
			b.ok(err)
			if root.State != perdure.Completed || root.Partial || deaths < 2 {
				t.Errorf("after %d deaths the root is %s: %+v", deaths, root.State, root.Error)
			}
			if got := m.Ledger().Repeated(); len(got) != 0 {
				t.Errorf("asked again: %+v", got)
			}
			b.sound()
		})
	}
}

// TestResumeAfterTheTimeLimit: the time limit counts anew.
func TestResumeAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, "replies: [{text: '{{hash}}', delay: 60ms, repeat: -1}]")})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(100)}),
		M{"model": "mock:m", "chunk_tokens": 250, "timeout": "100ms"})
	if got, _ := b.finish(tree.ID, 1); got.State != perdure.Partial && got.State != perdure.Failed {
		t.Fatalf("tree is %s", got.State)
	}
	b.resumed(tree.ID, M{"timeout": "1h"})
}

// TestResumeBatch: in a batch only the files without an answer are asked about.
func TestResumeBatch(t *testing.T) {
	t.Parallel()
	m := echo(t)
	b := newBench(t, models{"mock:m": m})
	var files []file
	for i := range 6 {
		files = append(files, file{fmt.Sprintf("%d.txt", i), fmt.Sprintf("text %d\n", i)})
	}
	tree := b.launch("Sum up {file}.", b.put(files...), M{"model": "mock:m", "batch": true, "budget_calls": 2})
	if got, _ := b.finish(tree.ID, 1); got.State != perdure.Partial {
		t.Fatalf("tree is %s", got.State)
	}
	root := b.resumed(tree.ID, M{"budget_calls": 6})
	if strings.Count(root.Result, "## ") != 6 || m.Ledger().Totals().Started != 6 {
		t.Errorf("after %d requests the answer is\n%s", m.Ledger().Totals().Started, root.Result)
	}
	p, err := b.store.Progress(t.Context(), tree.ID)
	b.ok(err)
	for _, l := range p.Limits {
		if l.Exceeded {
			t.Errorf("the limit that was raised is shown as exceeded: %+v", l)
		}
	}
}

// TestResumeFailedTree: the executor that ran a failed tree runs it with the new model.
func TestResumeFailedTree(t *testing.T) {
	t.Parallel()
	second := echo(t)
	b := newBench(t, models{"mock:m": failing(t, `line 0\d+`)["mock:m"], "mock:n": second})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(100)}), M{"model": "mock:m", "chunk_tokens": 250})
	if got, _ := b.finish(tree.ID, 2); got.State != perdure.Failed {
		t.Fatalf("tree is %s", got.State)
	}
	b.resumed(tree.ID, M{"model": "mock:n"})
	if n, parts := second.Ledger().Totals().Started, len(b.leaves(tree.ID)); n != parts {
		t.Errorf("the second model was asked %d times about %d parts", n, parts)
	}
}

// TestResumeMapReduce: parts in front of those that were merged take part in the next level
// of the reduction tree.
func TestResumeMapReduce(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": failing(t, `line 000001|line 000026|line 000051|line 000076`)["mock:m"],
		"mock:n": script(t, `replies: [{match: 'line 0*(\d+) ', text: 'part from {{1}}', repeat: -1}]`)})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(300)}), M{"model": "mock:m", "chunk_tokens": 250,
		"overlap_tokens": -1, "max_children": 100, "strategy": "map-reduce", "fan_in": 2})
	if got, _ := b.finish(tree.ID, 2); got.State != perdure.Partial {
		t.Fatalf("tree is %s", got.State)
	}
	root := b.resumed(tree.ID, M{"model": "mock:n"})
	parts := 0
	for _, task := range b.leaves(tree.ID) {
		if task.Context.Length > 0 {
			parts++
		}
	}
	if n := strings.Count(root.Result, "part from"); n != parts || !strings.HasPrefix(root.Result, "part from 1\n") {
		t.Errorf("%d of %d parts are in the answer:\n%s", n, parts, root.Result)
	}
}

// A part of a sequence that is reopened after the parts before it sees their results. A note
// counts only those that did not.
func TestResumeSequence(t *testing.T) {
	t.Parallel()
	const refused = "- {match: 'The harbour of the %s', status: 400, message: no, repeat: 1}\n"
	for failed, note := range map[string]string{"south": "2 of 4 parts below ", "south west dull": ""} {
		script := "replies:\n"
		for name := range strings.FieldsSeq(failed) {
			script += fmt.Sprintf(refused, name)
		}
		_, m := endpoint(t, script+"- {text: 'Five.', repeat: -1}")
		b := newBench(t, m)
		tree := b.launch("How deep are they?", b.put(harbours()...), M{"model": "openai:m", "strategy": "sequential",
			"chunk_tokens": 350, "planner": "split", "policy": "partial"})
		if got, root := b.finish(tree.ID, 1); !got.Partial {
			t.Fatalf("%s: the tree is %s: %s %+v", failed, got.State, root.Data, root.Error)
		}
		root := b.resumed(tree.ID, M{})
		notes := strings.Join(data(t, &root).Notes, "\n")
		if strings.Contains(notes, "without the results of parts before") != (note != "") || !strings.Contains(notes, note) {
			t.Errorf("%s: notes %q, want %q", failed, notes, note)
		}
	}
}
