package rlm_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// TestEachStrategy runs every strategy, planned by the model and over the parts
// of a context, against an HTTP endpoint whose answers take 1000 and 10 tokens:
// the answer, the number of calls and the cost are right.
func TestEachStrategy(t *testing.T) {
	t.Parallel()
	const parts = `
  - {match: 'part (\d) of 4 of a larger text', text: 'part {{1}}', usage: {input: 1000, output: 10}, repeat: -1}`
	plan := func(text string) string {
		return `
  - {match: '` + planning + `', text: '` + text + `', usage: {input: 1000, output: 10}}
  - {match: '^(\w+)\.(?s:.*)result of "(\w+)" ---\s(.*)', text: '{{1}} after {{3}}', usage: {input: 1000, output: 10}, repeat: -1}
  - {match: '^(\w+)\.$', text: 'did {{1}}', usage: {input: 1000, output: 10}, repeat: -1}`
	}
	tests := []struct {
		name, script string
		config       M
		want         string
		calls        int
	}{
		{"parallel parts", parts, M{"strategy": "parallel"}, "part 1\npart 2\npart 3\npart 4", 4},
		{"sequential parts", parts, M{"strategy": "sequential"}, "part 1\npart 2\npart 3\npart 4", 4},
		{"conditional parts", parts, M{"strategy": "conditional", "when": "len(results) < 2"}, "part 1\npart 2", 2},
		{"map-reduce parts", parts, M{"strategy": "map-reduce", "fan_in": 2}, "part 1\npart 2\npart 3\npart 4", 4},
		{"parallel plan", plan(`{"merge":"merge","tasks":[{"prompt":"A."},{"prompt":"B."}]}`), M{"planner": "model"},
			"did A\ndid B", 3},
		{"sequential plan", plan(`{"strategy":"sequential","merge":"merge",` +
			`"tasks":[{"id":"a","prompt":"A."},{"id":"b","prompt":"B."}]}`),
			M{"planner": "model"},
			"did A\nB after did A", 3},
		{"conditional plan", plan(`{"strategy":"conditional","merge":"merge",` +
			`"tasks":[{"id":"a","prompt":"A."},{"id":"b","prompt":"B.","when":"a.text == \"no\""},
      {"id":"c","prompt":"C.","when":"b.state == \"skipped\"","depends_on":["a"]}]}`), M{"planner": "model"},
			"did A\nC after did A", 3},
		{"map-reduce plan", plan(`{"strategy":"map-reduce","merge":"merge",` +
			`"tasks":[{"prompt":"A."},{"prompt":"B."},{"prompt":"C."},` +
			`{"prompt":"D."},{"prompt":"E."}]}`),
			M{"planner": "model", "fan_in": 2}, "did A\ndid B\ndid C\ndid D\ndid E", 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, m := endpoint(t, "replies:"+tt.script)
			b := newBench(t, m)
			var err error
			b.ok(b.exec.Close())
			// Two dollars a million tokens in, eight out.
			b.exec, err = rlm.New(rlm.ExecutorConfig{Store: b.store, Resolver: b.models,
				Price: func(_ string, u model.Usage) (int64, bool) { return 2*u.InputTokens + 8*u.OutputTokens, true }})
			b.ok(err)
			id := ""
			if tt.config["planner"] == nil {
				id = b.put(file{"text.txt", numbered(300)})
				tt.config["chunk_tokens"], tt.config["overlap_tokens"] = 1000, -1
			}
			tt.config["model"] = "openai:m"
			tree := b.launch("Do it.", id, tt.config)
			got, root := b.finish(tree.ID, 4)
			if got.State != perdure.Completed || got.Partial || root.Result != tt.want {
				t.Errorf("tree is %s with %q, want %q: %+v", got.State, root.Result, tt.want, root.Error)
			}
			b.asks(server, tree.ID, tt.calls)
			u := b.usage(tree.ID)
			if want := float64(tt.calls) * (2*1000 + 8*10) / 1e6; math.Abs(u.CostUSD-want) > 1e-9 ||
				int(u.InputTokens) != 1000*tt.calls {
				t.Errorf("cost is %v, want %v: %+v", u.CostUSD, want, u)
			}
		})
	}
}

// TestBudgetInTheMidstOfAPlan: the parts that finished before the calls are used up are
// merged, and the missing ones are listed, under either policy.
func TestBudgetInTheMidstOfAPlan(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"parallel", "sequential"} {
		b := newBench(t, models{"mock:m": script(t, `replies:
  - {match: '`+planning+`', text: '{"merge":"merge","tasks":[{"prompt":"A."},{"prompt":"B."},{"prompt":"C."},{"prompt":"D."}]}'}
  - {match: '^(\w)\.', text: 'did {{1}}', repeat: -1}`)})
		tree := b.launch("Do it.", "", M{"model": "mock:m", "planner": "model", "strategy": strategy, "budget_calls": 3})
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Partial || root.Result == "" || b.usage(tree.ID).Calls != 3 {
			t.Errorf("%s: tree is %s, partial %v, with %q: %+v", strategy, got.State, got.Partial, root.Result, root.Error)
		}
		var d rlm.Data
		b.ok(json.Unmarshal(root.Data, &d))
		if len(d.Missing) == 0 {
			t.Errorf("%s: nothing is told to be missing: %s", strategy, root.Data)
		}
		notes := strings.Join(d.Notes, "\n")
		if strings.Contains(notes, "1 task of the plan was not begun: task_4") != (strategy == "sequential") {
			t.Errorf("%s: notes are %q", strategy, notes)
		}
	}
}
