package rlm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// planning matches the requests for a plan.
const planning = "Do not answer the task yet"

// inner returns the sub-tasks of a tree's root in order.
func (b *bench) inner(tree perdure.Tree) []perdure.Task {
	b.Helper()
	tasks, err := b.store.Tasks(b.Context(), perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root, Limit: 1000})
	b.ok(err)
	return tasks
}

func TestPlanOfParallelTasks(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '`+planning+`(?s:.*)merges: merge, concatenate', text: 'Sure: {"strategy":"parallel","merge":"concatenate","tasks":
      [{"prompt":"Name a river."},{"id":"hill","prompt":"Name a hill."}]}'}
  - {match: 'river', text: Rhine}
  - {match: 'hill', text: Ben Nevis}`)
	b := newBench(t, m)
	tree := b.launch("Name a river and a hill.", "", M{"model": "openai:m", "planner": "model"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial || root.Result != "Rhine\n\nBen Nevis" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 3)
	var prompts []string
	for _, c := range b.inner(tree) {
		prompts = append(prompts, c.Prompt)
	}
	if diff := cmp.Diff([]string{"Name a river.", "Name a hill."}, prompts); diff != "" {
		t.Error(diff)
	}
}

// TestPlanIsCorrected: faults go back to the model with their places, twice at
// most.
func TestPlanIsCorrected(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: 'depend on each other in a circle: a -> b -> a', text: '{"merge":"merge","tasks":[{"prompt":"Go."}]}'}
  - {match: '/tasks/0/prompt: got number, want string', text: '{"tasks":[{"id":"a","prompt":"x","depends_on":["b"]},{"id":"b","prompt":"y","depends_on":["a"]}]}'}
  - {match: '`+planning+`', text: '{"tasks":[{"prompt":7}]}'}
  - {match: '^Go.$', text: went}`)
	b := newBench(t, m)
	tree := b.launch("Do it.", "", M{"model": "openai:m", "planner": "model"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "went" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 4)
	calls, err := b.store.Calls(t.Context(), tree.Root)
	b.ok(err)
	for i, c := range calls {
		if c.Position != i || c.State != perdure.CallCompleted {
			t.Errorf("call %d is %+v", i, c)
		}
	}
}

func TestPlanOfNothingIsADirectAnswer(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{match: '`+planning+
		`', text: '{"tasks":[]}'}, {match: 'Paris is(?s:.*)capital', text: Paris}]`)
	b := newBench(t, m)
	id := b.put(file{"a.txt", "Paris is it.\n"})
	tree := b.launch("Which capital?", id, M{"model": "openai:m", "planner": "model"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "Paris" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 2)
}

// TestPlanThatStaysWrong: what fits is answered directly and says why; what does
// not fit fails, and the replies are kept.
func TestPlanThatStaysWrong(t *testing.T) {
	t.Parallel()
	const replies = `replies: [{match: '` + planning + `', text: 'I would rather not. {{n}}', repeat: -1}, {text: Paris, repeat: -1}]`
	t.Run("it fits", func(t *testing.T) {
		t.Parallel()
		server, m := endpoint(t, replies)
		b := newBench(t, m)
		tree := b.launch("Which capital?", "", M{"model": "openai:m", "planner": "model"})
		got, root := b.finish(tree.ID, 4)
		notes := strings.Join(data(t, &root).Notes, "\n")
		if got.State != perdure.Completed || root.Result != "Paris" ||
			!strings.Contains(notes, "no plan was usable: the reply contains no JSON") {
			t.Errorf("tree is %s with %q, %q: %+v", got.State, root.Result, notes, root.Error)
		}
		b.asks(server, tree.ID, 4)
	})
	t.Run("it does not fit", func(t *testing.T) {
		t.Parallel()
		server, m := endpoint(t, replies)
		b := newBench(t, m)
		id := b.put(file{"a.txt", numbered(4000)})
		tree := b.launch("Which capital?", id, M{"model": "openai:m", "planner": "model", "context_window": 10_000})
		got, root := b.finish(tree.ID, 4)
		parts := len(b.leaves(tree.ID))
		if got.State != perdure.Completed || got.Partial || parts < 4 || !strings.Contains(root.Result, "Paris") {
			t.Fatalf("tree of %d parts is %s with %q: %+v", parts, got.State, root.Result, root.Error)
		}
		notes := strings.Join(data(t, &root).Notes, "\n")
		for _, want := range []string{fmt.Sprintf("split into %d parts, because no plan was usable", parts),
			"contains no JSON", "the context has about 4"} {
			if !strings.Contains(notes, want) {
				t.Errorf("%q is not in the notes: %s", want, notes)
			}
		}
		b.asks(server, tree.ID, 3+parts+1) // the last one merges
	})
	t.Run("neither it nor its parts fit", func(t *testing.T) {
		t.Parallel()
		_, m := endpoint(t, replies)
		b := newBench(t, m)
		id := b.put(file{"a.txt", numbered(4000)})
		tree := b.launch("Which capital?", id, M{"model": "openai:m", "planner": "model", "context_window": 10_000,
			"max_nodes": 3})
		got, root := b.finish(tree.ID, 4)
		if got.State != perdure.Failed || root.Error.Kind != rlm.KindBudget {
			t.Fatalf("tree is %s: %+v", got.State, root.Error)
		}
	})
}

// Where the files are too many to be listed, the request for a plan has the folders with
// sizes and kinds of files, and the best passages instead.
func TestPlanWithKnowledge(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: '`+planning+`(?s:.*)=== folders \(401 files\) ===(?s:.*)"log/", 400 files, 1\.\d MiB \(txt 400\)(?s:.*)a passage for the task: "chart/lights.txt" lines 1-4 ===', text: '{"tasks":[{"prompt":"Look.","files":["chart/**"]}]}'}
- {match: '^=== document 1 of 1: "chart/lights.txt"(?s:.*)\sLook\.$', text: found}`)
	b := newBench(t, m)
	tree := b.launch("Where is the harbour light?", b.put(coast()...), M{"model": "openai:m", "planner": "model",
		"context_window": 12_000})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "found" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 2)
}

// A sub-task that is planned again sees passages of its own files only.
func TestPlanWithKnowledgeOfItsFiles(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: '`+planning+`(?s:.*)a passage for the task: "chart/lights.txt"', text: '{"tasks":[{"prompt":"Which light was seen?","files":["log/**"],"decompose":true}]}'}
- {match: '`+planning+`(?s:.*)=== folders \(400 files\)', text: '{"tasks":[{"prompt":"Look.","files":["log/day001.txt"]}]}'}
- {match: '\sLook\.$', text: none}`)
	b := newBench(t, m)
	tree := b.launch("Where is the harbour light?", b.put(coast()...), M{"model": "openai:m", "planner": "model",
		"context_window": 12_000})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "none" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 3)
}

// TestPlanOfDependentTasks: a task begins when those it depends on have ended,
// and sees their results and no others.
func TestPlanOfDependentTasks(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '`+planning+`', text: '{"merge":"concatenate","tasks":[{"id":"join","prompt":"Join.","depends_on":["one","two"]},
      {"id":"one","prompt":"First."},{"id":"two","prompt":"Second."},{"id":"other","prompt":"Other."}]}'}
  - {match: '^Join.\s+=== results so far ===\s+--- result of "one" ---\s1st\s+--- result of "two" ---\s2nd\s+=== end of results so far ===', text: both}
  - {match: '^First', text: 1st}
  - {match: '^Second', text: 2nd}
  - {match: '^Other.$', text: alone}`)
	b := newBench(t, m)
	tree := b.launch("Do it.", "", M{"model": "openai:m", "planner": "model"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "1st\n\n2nd\n\nboth\n\nalone" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 5)
}

func TestPlanOfSequentialTasks(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '`+planning+`', text: '{"strategy":"sequential","merge":"concatenate","tasks":[{"prompt":"Begin."},{"prompt":"Go on."},{"prompt":"End."}]}'}
  - {match: '^Begin.$', text: alpha}
  - {match: '^Go on.(?s:.*)alpha', text: beta}
  - {match: '^End.(?s:.*)alpha(?s:.*)beta', text: gamma}`)
	b := newBench(t, m)
	tree := b.launch("Do it.", "", M{"model": "openai:m", "planner": "model"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "alpha\n\nbeta\n\ngamma" || server.Ledger().Peak() != 1 {
		t.Errorf("tree is %s with %q, %d calls at once: %+v", got.State, root.Result, server.Ledger().Peak(), root.Error)
	}
	b.asks(server, tree.ID, 4)
}

// TestPlanWithConditions: a task whose condition does not hold is completed
// without a call.
func TestPlanWithConditions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ found, want string }{{"a bug", "a bug\n\nfixed"}, {"nothing", "nothing\n\npraised"}} {
		t.Run(tt.found, func(t *testing.T) {
			t.Parallel()
			server, m := endpoint(t, `replies:
  - {match: '`+planning+`', text: '{"strategy":"conditional","merge":"concatenate","tasks":[{"id":"check","prompt":"Check."},
      {"id":"fix","prompt":"Fix.","when":"check.text contains \"bug\""},
      {"id":"praise","prompt":"Praise.","when":"fix.state == \"skipped\" and len(results) == 2"}]}'}
  - {match: '^Check.$', text: '`+tt.found+`'}
  - {match: '^Fix.', text: fixed}
  - {match: '^Praise.', text: praised}`)
			b := newBench(t, m)
			tree := b.launch("Do it.", "", M{"model": "openai:m", "planner": "model"})
			got, root := b.finish(tree.ID, 4)
			if got.State != perdure.Completed || got.Partial || root.Result != tt.want {
				t.Errorf("tree is %s with %q, want %q: %+v", got.State, root.Result, tt.want, root.Error)
			}
			b.asks(server, tree.ID, 3)
			if n := len(b.inner(tree)); n != 3 {
				t.Errorf("%d tasks below the root, want 3", n)
			}
		})
	}
}

// TestPlanReadsFiles: each sub-task reads the files it names; one that does not
// fit is read in parts, with the sub-task's own prompt.
func TestPlanReadsFiles(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '`+planning+`(?s:.*)=== files \(4\) ===\s"a.md", about 2 tokens\s"big.txt", about 4200 tokens(?s:.*)how "a.md" begins', text: '{"merge":"concatenate",
      "tasks":[{"prompt":"Notes?","files":["*.md"]},{"prompt":"Lines?","files":["big.txt"]},{"prompt":"No text?","files":[]}]}'}
  - {match: '^=== document 1 of 2: "a.md"(?s:.*)first(?s:.*)=== document 2 of 2: "c.md"(?s:.*)third(?s:.*)\sNotes\?$', text: notes}
  - {match: '"big.txt"(?s:.*)part (\d+) of \d+ of a larger text(?s:.*)\sLines\?', text: 'lines {{1}}', repeat: -1}
  - {match: '^No text\?$', text: none}`)
	b := newBench(t, m)
	id := b.put(file{"a.md", "first\n"}, file{"big.txt", numbered(400)}, file{"c.md", "third\n"},
		file{"d.txt", "fourth\n"})
	tree := b.launch("What is there?", id, M{"model": "openai:m", "planner": "model", "context_window": 4000,
		"answer_tokens": 100, "overlap_tokens": -1})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || !strings.HasPrefix(root.Result, "notes\n\nlines 1\n\nlines 2") ||
		!strings.HasSuffix(root.Result, "\n\nnone") {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, len(b.leaves(tree.ID))+1)
}

// TestPlanWithinAPlan: a sub-task that is to be decomposed is planned in turn,
// down to the depth limit.
func TestPlanWithinAPlan(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '`+planning+`(?s:.*)answered directly; decompose has no effect(?s:.*)\sInner\.$', text: '{"tasks":[{"prompt":"Leaf.","decompose":true}]}'}
  - {match: '`+planning+`(?s:.*)\sOuter\.$', text: '{"merge":"merge","tasks":[{"prompt":"Inner.","decompose":true},{"prompt":"Beside."}]}'}
  - {match: '^Leaf\.$', text: leaf}
  - {match: '^Beside\.$', text: beside}`)
	b := newBench(t, m)
	tree := b.launch("Outer.", "", M{"model": "openai:m", "planner": "model", "max_depth": 2})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "leaf\nbeside" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	b.asks(server, tree.ID, 4)
}

// TestPlanRequestHasLimits: fan-out, depth, tasks, budgets and window, and what
// the user fixed.
func TestPlanRequestHasLimits(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, `replies: [{match: '`+planning+`', text: '{"tasks":[]}'}, {text: done}]`)
	b := newBench(t, m)
	tree := b.launch("Do it.", "", M{"model": "openai:m", "planner": "model", "mode": "logged", "max_children": 7,
		"max_nodes":     50,
		"budget_tokens": 100_000, "budget_calls": 30, "context_window": 20_000, "strategy": "sequential", "merge": "vote",
		"agents": M{"editor": M{"system": "Edit."}}})
	b.finish(tree.ID, 1)
	calls, err := b.store.Calls(t.Context(), tree.Root)
	b.ok(err)
	for _, want := range []string{"at most 7 sub-tasks", "49 more tasks", "about 20000 tokens;",
		"100000 tokens are left",
		"30 calls are left", "the strategy is sequential", "the merge is vote", "agents: editor", "may be divided again"} {
		if !strings.Contains(string(calls[0].Data), want) {
			t.Errorf("the request does not have %q", want)
		}
	}
}

// TestPlanIsToldVariables: the nearest value of each name, cut where there is no
// room, and what is not set; nothing that was not named.
func TestPlanIsToldVariables(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, `replies: [{match: '`+planning+`', text: '{"tasks":[]}'}, {text: done}]`)
	b := newBench(t, m)
	session := perdure.StateRef{Scope: perdure.ScopeSession, Session: "me"}
	for name, value := range map[string]string{"style": `"short <b>"`, "limits": `{"depth":2}`, "hidden": `"secret"`,
		"long": `"` + strings.Repeat("é", 3000) + `"`} {
		_, err := b.store.SetVar(t.Context(), session, perdure.VarSpec{Name: name, Value: json.RawMessage(value)})
		b.ok(err)
	}
	_, err := b.store.SetVar(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal},
		perdure.VarSpec{Name: "style", Value: json.RawMessage(`"long"`)})
	b.ok(err)
	config := M{"model": "openai:m", "planner": "model", "mode": "logged", "session": "me",
		"variables": []string{"style", "limits", "long", "missing"}}
	tree := b.launch("Do it.", "", config)
	_, err = b.store.SetVar(t.Context(), perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID},
		perdure.VarSpec{Name: "limits", Value: json.RawMessage(`{"depth":3}`)})
	b.ok(err)
	b.finish(tree.ID, 1)
	calls, err := b.store.Calls(t.Context(), tree.Root)
	b.ok(err)
	data := strings.NewReplacer(`\"`, `"`, `"`, `"`, `\u003c`, "<", `<`, "<", `\u003e`, ">", `>`, ">").Replace(
		string(calls[0].Data))
	for _, want := range []string{`- style (text): "short <b>"`, `- limits (json): {"depth":3}`,
		"- long (text, the first 1999 of 6002 bytes): ", "- missing: not set"} {
		if !strings.Contains(data, want) {
			t.Errorf("the request does not have %q: %.3000s", want, data)
		}
	}
	if strings.Contains(data, "secret") {
		t.Error("it is told what was not named")
	}
	for _, bad := range []M{{"planner": "split", "variables": []string{"a"}},
		{"planner": "model", "variables": []string{"1a"}}} {
		bad["model"] = "openai:m"
		raw, err := json.Marshal(bad)
		b.ok(err)
		if _, err := rlm.ParseConfig(raw); !errors.Is(err, perdure.ErrInvalid) ||
			!strings.Contains(err.Error(), "variables:") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestDeathWhilePlanning kills the process at each request of a planned run: no
// answer is asked for again, plans and corrections included.
func TestDeathWhilePlanning(t *testing.T) {
	t.Parallel()
	const replies = `replies:
  - {match: 'got number(?s:.*)', text: '{"strategy":"conditional","merge":"concatenate","tasks":[{"id":"a","prompt":"Aa."},{"id":"b","prompt":"Bb."},
      {"id":"c","prompt":"Cc.","depends_on":["a"]},{"id":"d","prompt":"Dd.","when":"c.text != \"\""},{"id":"e","prompt":"Ee.","decompose":true}]}', repeat: -1}
  - {match: '` + planning + `(?s:.*)\sEe\.$', text: '{"merge":"merge","tasks":[{"prompt":"Ff."},{"prompt":"Gg."}]}', repeat: -1}
  - {match: '` + planning + `', text: '{"tasks":[{"prompt":7}]}', repeat: -1}
  - {text: 'answer {{short}}', repeat: -1}`
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after the answer %v", after), func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: script(t, replies)}
			b := newBench(t, models{"mock:m": m})
			config := M{"model": "mock:m", "planner": "model", "budget_calls": 1000, "mode": "strict",
				"variables": []string{"deaths"}}
			change := func(deaths int) { // the values of the first request count
				_, err := b.store.SetVar(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal},
					perdure.VarSpec{Name: "deaths", Value: json.RawMessage(strconv.Itoa(deaths))})
				b.ok(err)
			}
			change(0)
			whole := b.launch("Do it.", "", config)
			_, want := b.finish(whole.ID, 2)
			calls := m.Ledger().Totals().Finished
			m.Model = script(t, replies)

			tree := b.launch("Do it.", "", config)
			deaths := 0
			for !b.die(m, tree.ID, 1, after) {
				if deaths++; deaths > 100 {
					t.Fatal("it does not end")
				}
				if !after { // one more is let through each time
					if b.die(m, tree.ID, 2, after) {
						break
					}
					deaths++
				}
				b.close()
				b.open()
				change(deaths)
			}
			root, err := b.store.Task(t.Context(), tree.Root)
			b.ok(err)
			if root.State != perdure.Completed || root.Result != want.Result {
				t.Errorf("after %d deaths the root is %s with %q, want %q", deaths, root.State, root.Result, want.Result)
			}
			if got := m.Ledger().Repeated(); len(got) != 0 {
				t.Errorf("asked again: %+v", got)
			}
			if n := m.Ledger().Totals().Finished; n != calls || calls != 9 {
				t.Errorf("%d answers, %d without deaths, want 9", n, calls)
			}
			if deaths < 5 {
				t.Errorf("only %d deaths", deaths)
			}
		})
	}
}

// TestPlanGoesOnAfterARetry: under policy fail a failed step ends the run; after
// a retry it and what comes after it run, and nothing else.
func TestPlanGoesOnAfterARetry(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies:
  - {match: '`+planning+`', text: '{"merge":"merge","tasks":[{"prompt":"Begin."},{"prompt":"Go on."},{"prompt":"End."}]}', repeat: -1}
  - {match: '^Go on.', status: 400, message: no, repeat: 1}
  - {match: '^(Begin|Go on|End)\.', text: 'did {{1}}', repeat: -1}`)})
	tree := b.launch("Do it.", "", M{"model": "mock:m", "planner": "model", "strategy": "sequential"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindModel || b.usage(tree.ID).Calls != 3 {
		t.Fatalf("tree is %s after %d calls: %+v", got.State, b.usage(tree.ID).Calls, root.Error)
	}
	b.ok(b.store.RetryTask(t.Context(), tree.Root))
	got, root = b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "did Begin\ndid Go on\ndid End" || b.usage(tree.ID).Calls != 5 {
		t.Errorf("after the retry the tree is %s with %q after %d calls: %+v", got.State, root.Result,
			b.usage(tree.ID).Calls, root.Error)
	}
}

// TestPartialPlan: under policy partial the rest goes on, and what is missing is
// told.
func TestPartialPlan(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies:
  - {match: '`+planning+`', text: '{"merge":"merge","tasks":[{"id":"a","prompt":"Begin."},{"id":"b","prompt":"Use.","depends_on":["a"]},{"prompt":"Other."}]}', repeat: -1}
  - {match: '^Begin.', status: 400, message: no, repeat: -1}
  - {match: '^Use.(?s:.*)result of "a" ---\s\(no result: failed', text: used, repeat: -1}
  - {match: '^Other.', text: other, repeat: -1}`)})
	tree := b.launch("Do it.", "", M{"model": "mock:m", "planner": "model"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Partial || root.Result != "used\nother" {
		t.Fatalf("tree is %s, partial %v, with %q: %+v", got.State, got.Partial, root.Result, root.Error)
	}
	if missing := data(t, &root).Missing; len(missing) != 1 || missing[0].Prompt != "Begin." {
		t.Errorf("missing are %+v", missing)
	}
}

func TestPlannerRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		config M
		want   string
	}{
		{M{"planner": "model"}, "cannot write a plan"},
		{M{"planner": "model", "model": "mock:m", "sub_model": "builtin:extract"}, "cannot do the tasks of a plan"},
		{M{"planner": "model", "model": "mock:m", "batch": true}, "a batch has a task for each file"},
		{M{"planner": "model", "model": "mock:m", "when": "true"}, "the plan has the conditions"},
		{M{"strategy": "conditional"}, "when: it is missing"},
		{M{"when": "true"}, "needs strategy conditional"},
		{M{"strategy": "conditional", "when": "len(results) >"}, "when: column 14: "},
		{M{"strategy": "conditional", "when": "len(reslts) > 1"},
			`when: column 5: unknown name reslts, did you mean "results"?`},
		{M{"strategy": "conditional", "when": "len(results)"}, "when: column 1: expected bool, but got int"},
		{M{"strategy": "conditional", "when": "previous.text > 3"}, "when: column 15: "},
		{M{"strategy": "conditional", "when": "previous.txt == ''"}, "when: column 10: "},
		{M{"strategy": "conditional", "when": "true\nor false"}, "when: column 5: it has to be one line"},
		{M{"strategy": "conditional", "when": "now().Year() > 1"}, "when: column 1: unknown name now"},
		{M{"strategy": "map-reduce", "fan_in": 1}, "fan_in: 1 is not between 2 and"},
		{M{"strategy": "tree"}, `"tree" is not one of parallel, sequential, conditional, map-reduce`},
	}
	for _, tt := range tests {
		raw, err := json.Marshal(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = rlm.ParseConfig(raw); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want %q", raw, err, tt.want)
		}
	}
	b := newBench(t, models{"mock:m": echo(t), "mock:small": script(t, "window: 2000\nreplies: [{text: x}]")})
	if _, err := b.tryLaunch("p", "", M{"model": "mock:small", "planner": "model"}); err == nil ||
		!strings.Contains(err.Error(), "no room to plan") {
		t.Errorf("a small window: %v", err)
	}
	if trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) != 0 {
		t.Errorf("%d trees were created, %v", len(trees), err)
	}
}

// TestConditionOfParts: with a condition, reading stops where it does not hold
// any more, and no call is made for the rest.
func TestConditionOfParts(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: 'line 000150 of', text: 'found it'}
  - {match: 'line 0*(\d+) ', text: 'nothing by {{1}}', repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(400)})
	tree := b.launch("Where?", id,
		M{"model": "openai:m", "strategy": "conditional", "when": `none(results, .text contains "found")`,
			"chunk_tokens": 500, "overlap_tokens": -1, "max_children": 3})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial || !strings.HasSuffix(root.Result, "\nfound it") {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	asked := 0
	for _, l := range b.leaves(tree.ID) {
		if !data(t, &l).Skipped {
			asked++
		}
		if l.State != perdure.Completed {
			t.Errorf("task %q is %s", l.ID, l.State)
		}
	}
	b.asks(server, tree.ID, asked)
	if parts := len(b.leaves(tree.ID)); asked < 3 || asked > parts/2 {
		t.Errorf("%d of %d parts were read", asked, parts)
	}
}

// TestMapReduce merges the results of many files in a tree of tasks with a
// bounded fan-in, and loses none.
func TestMapReduce(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{match: '"f(\d+).txt"', text: 'file {{1}}', repeat: -1}]`)
	b := newBench(t, m)
	var files []file
	var want []string
	for i := range 25 {
		files = append(files, file{fmt.Sprintf("f%02d.txt", i), fmt.Sprintf("text %d\n", i)})
		want = append(want, fmt.Sprintf("## f%02d.txt\n\nfile %02d", i, i))
	}
	tree := b.launch("Read {file}.", b.put(files...), M{"model": "openai:m", "batch": true, "strategy": "map-reduce",
		"fan_in": 3})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	if diff := cmp.Diff(strings.Join(want, "\n\n"), root.Result); diff != "" {
		t.Error(diff)
	}
	b.asks(server, tree.ID, 25)
	// 25 files, 9 merges of them, 3 of these, and the root merges those.
	merges := slices.DeleteFunc(b.inner(tree),
		func(c perdure.Task) bool { return !strings.HasPrefix(c.Prompt, "[merge of ") })
	if n := len(b.inner(tree)); n != 37 || len(merges) != 12 {
		t.Errorf("%d tasks below the root, %d of them merges", n, len(merges))
	}
}

// TestMapReduceWithoutRoom: where the limit of tasks leaves no room for a
// reduction tree, the results are merged at once.
func TestMapReduceWithoutRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies: [{match: '"f(\d+).txt"', text: 'file {{1}}', repeat: -1}]`)})
	var files []file
	for i := range 12 {
		files = append(files, file{fmt.Sprintf("f%02d.txt", i), "text\n"})
	}
	tree := b.launch("Read {file}.", b.put(files...), M{"model": "mock:m", "batch": true, "strategy": "map-reduce",
		"fan_in": 3, "max_nodes": 14})
	got, root := b.finish(tree.ID, 4)
	if n := strings.Count(root.Result, "## f"); got.State != perdure.Completed || got.Partial || n != 12 ||
		len(b.tasks(tree.ID)) != 13 {
		t.Errorf("tree is %s with %d of 12 files and %d tasks: %+v", got.State, n, len(b.tasks(tree.ID)), root.Error)
	}
}

// TestMapReduceOfStructuredFiles: the objects of the files become one, in order.
func TestMapReduceOfStructuredFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies: [{match: '"f(\d).txt"', text: '{"n":{{1}}}', repeat: -1}]`)})
	var files []file
	for i := range 5 {
		files = append(files, file{fmt.Sprintf("f%d.txt", i), "text\n"})
	}
	tree := b.launch("Read {file}.", b.put(files...), M{"model": "mock:m", "batch": true, "strategy": "map-reduce",
		"fan_in": 2,
		"schema": M{"type": "object", "required": []string{"n"}}})
	_, root := b.finish(tree.ID, 4)
	want := `{"f0.txt":{"n":0},"f1.txt":{"n":1},"f2.txt":{"n":2},"f3.txt":{"n":3},"f4.txt":{"n":4}}`
	if got := structuredOf(t, &root); got != want {
		t.Errorf("the result is %s: %+v", got, root.Error)
	}
}

// TestMapReduceOfALostMerge: a merge that failed loses nothing.
func TestMapReduceOfALostMerge(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies: [{match: '"f(\d).txt"', text: 'file {{1}}', repeat: -1}]`)})
	var files []file
	for i := range 4 {
		files = append(files, file{fmt.Sprintf("f%d.txt", i), "text\n"})
	}
	tree := b.launch("Read {file}.", b.put(files...), M{"model": "mock:m", "batch": true, "strategy": "map-reduce",
		"fan_in": 3})
	session, err := b.store.OpenSession(t.Context(), "test")
	b.ok(err)
	failed := 0
	for {
		leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
		b.ok(err)
		if len(leases) == 0 {
			break
		}
		if strings.HasPrefix(leases[0].Task.Prompt, "[merge of ") && failed == 0 {
			failed++
			_, err := leases[0].Fail(t.Context(), perdure.Failure{Kind: "test", Message: "no"})
			b.ok(err)
			continue
		}
		b.ok(b.exec.Handle(t.Context(), leases[0]))
	}
	b.ok(session.Close(t.Context()))
	root, err := b.store.Task(t.Context(), tree.Root)
	b.ok(err)
	if want := "## f0.txt\n\nfile 0\n\n## f1.txt\n\nfile 1\n\n## f2.txt\n\nfile 2\n\n## f3.txt\n\nfile 3"; root.Result !=
		want || failed != 1 {
		t.Errorf("after %d lost merges the root is %s with %q: %+v", failed, root.State, root.Result, root.Error)
	}
}

// TestNestedPlanGoesOnAfterARetry: what was done below a planned task counts for
// the one that replaces it, and nothing is planned again.
func TestNestedPlanGoesOnAfterARetry(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies:
  - {match: '`+planning+`(?s:.*)\sInner\.', text: '{"strategy":"sequential","merge":"merge","tasks":[{"prompt":"One.","files":["a.txt","c.txt"]},{"prompt":"Two.","files":["a.txt","c.txt"]}]}', repeat: 1}
  - {match: '`+planning+`', text: '{"merge":"merge","tasks":[{"prompt":"Inner.","decompose":true},{"prompt":"Beside."}]}', repeat: 1}
  - {match: '\sTwo\.', status: 400, message: no, repeat: 1}
  - {match: '"a.txt" lines 1-1 ===\sfirst(?s:.*)"c.txt" lines 1-1 ===\sthird(?s:.*)\s(One|Two)\.', text: 'did {{1}}', repeat: -1}
  - {match: '\sBeside\.$', text: beside}`)})
	id := b.put(file{"a.txt", "first\n"}, file{"b.txt", "second\n"}, file{"c.txt", "third\n"})
	tree := b.launch("Outer.", id, M{"model": "mock:m", "planner": "model", "policy": "fail"})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed {
		t.Fatalf("tree is %s with %q", got.State, root.Result)
	}
	b.ok(b.store.RetryTask(t.Context(), tree.Root))
	got, root = b.finish(tree.ID, 1)
	if got.State != perdure.Completed || !strings.HasPrefix(root.Result, "did One\ndid Two") ||
		!strings.HasSuffix(root.Result, "beside") {
		t.Errorf("after the retry the tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	for _, task := range b.tasks(tree.ID) {
		if strings.Contains(root.Result, "second") {
			t.Errorf("task %q read a file that it did not name", task.ID)
		}
	}
}
