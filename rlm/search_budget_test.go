package rlm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// endless searches until it has to answer.
const endless = `
- {match: 'the last one: write ANSWER', repeat: -1, text: "On the mole, I think."}
- {match: 'what was found', repeat: -1, text: '{"where": "on the mole"}'}
- {repeat: -1, text: "SEARCH {{n}} light"}`

// shore is a part of the coast that is searched quickly.
func shore() []file { return coast()[360:] }

// patientBench is a bench whose models are asked again.
func patientBench(t *testing.T, ms models) *bench {
	t.Helper()
	b := newBench(t, models{})
	b.models = patient(b, ms)
	b.close()
	b.open()
	return b
}

// A budget of calls ends a search with an answer, whatever the requests are spent on: those
// of errors, and the one that forms a structured answer.
func TestSearchAnswersWithinCalls(t *testing.T) {
	t.Parallel()
	schema := M{"type": "object", "required": []string{"where"}, "properties": M{"where": M{"type": "string"}}}
	for _, tt := range []struct {
		name, script, want string
		config             M
		calls              int64
	}{
		{"one call", "", "On the mole, I think.", M{"budget_calls": 1}, 1},
		{"errors of the first request", "\n- {status: 503, repeat: 2}", "On the mole, I think.", M{"budget_calls": 3}, 3},
		{"an error of the second request", "\n- {match: 'your reply 1', status: 503, repeat: 1}", "On the mole, I think.",
			M{"budget_calls": 4}, 4},
		{"a schema", "", `{"where":"on the mole"}`, M{"budget_calls": 2, "schema": schema}, 2},
		{"a schema and three calls", "", `{"where":"on the mole"}`, M{"budget_calls": 3, "schema": schema}, 3},
		{"a schema and an error", "\n- {status: 503, repeat: 1}", `{"where":"on the mole"}`,
			M{"budget_calls": 3, "schema": schema}, 3},
		{"attempts", "\n- {status: 400, message: no, repeat: 1}", "On the mole, I think.",
			M{"budget_calls": 3, "max_attempts": 2}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, ms := endpoint(t, "replies:"+tt.script+endless)
			b := patientBench(t, ms)
			config := searchConfig("openai:m")
			for k, v := range tt.config {
				config[k] = v
			}
			tree := b.launch("Where is the harbour light?", b.put(shore()...), config)
			got, root := b.finish(tree.ID, 1)
			if got.State == perdure.Failed && tt.name == "attempts" { // a refusal is not tried again by itself
				b.ok(b.store.RetryTask(t.Context(), root.ID))
				got, root = b.finish(tree.ID, 1)
			}
			if got.State != perdure.Completed || root.Result != tt.want {
				t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
			}
			if sent := int64(server.Ledger().Totals().Started); sent != tt.calls || b.usage(tree.ID).Calls != sent {
				t.Errorf("%d requests were sent and %d are counted, want %d", sent, b.usage(tree.ID).Calls, tt.calls)
			}
			if d := data(t, &root); !slices.ContainsFunc(d.Notes, func(n string) bool {
				return strings.HasPrefix(n, "the budget ended the search: reply ")
			}) {
				t.Errorf("notes %q", d.Notes)
			}
		})
	}
}

// Budgets of tokens and of dollars end a search with an answer at each amount that pays for
// one, and are not exceeded.
func TestSearchAnswersWithinTokens(t *testing.T) {
	t.Parallel()
	_, ms := endpoint(t, "replies:"+endless)
	b := newBench(t, ms)
	id := b.put(shore()...)
	most := int64(0)
	for _, budget := range []int64{8_000, 20_000, 44_000, 92_000} {
		config := searchConfig("openai:m")
		config["budget_tokens"], config["answer_tokens"] = budget, 500
		tree := b.launch("Where is the harbour light?", id, config)
		got, root := b.finish(tree.ID, 1)
		u := b.usage(tree.ID)
		if got.State != perdure.Completed || root.Result != "On the mole, I think." || u.InputTokens+u.OutputTokens > budget {
			t.Errorf("of %d: tree is %s with %q after %+v: %+v", budget, got.State, root.Result, u, root.Error)
		}
		most = max(most, u.Calls)
	}
	if most < 4 {
		t.Errorf("the largest budget paid for %d calls", most)
	}
}

// A search that its budget ended as failed is finished with a larger one, and more replies
// than it was launched with are asked for.
func TestResumeSearchWithLargerBudget(t *testing.T) {
	t.Parallel()
	server, ms := endpoint(t, `replies:
- {match: 'the last one: write ANSWER', status: 503, repeat: 5}`+endless)
	b := patientBench(t, ms)
	config := searchConfig("openai:m")
	config["budget_calls"], config["search_replies"] = 3, 5
	tree := b.launch("Where is the harbour light?", b.put(shore()...), config)
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindBudget || b.usage(tree.ID).Calls != 3 {
		t.Fatalf("tree is %s after %+v: %+v", got.State, b.usage(tree.ID), root.Error)
	}
	if _, err := b.resume(tree.ID, M{"budget_calls": 3}); err == nil || !strings.Contains(err.Error(),
		"3 of 3 calls are used, and 1 is needed") {
		t.Errorf("resume without a larger budget: %v", err)
	}
	root = b.resumed(tree.ID, M{"budget_calls": 20, "search_replies": 7})
	if root.Result != "On the mole, I think." {
		t.Errorf("the result is %q", root.Result)
	}
	// Two searches and a failed request for an answer; five more searches, and of the seventh
	// reply the failed requests and the answer.
	if u := b.usage(tree.ID); u.Calls != 3+4+5 || int64(server.Ledger().Totals().Started) != u.Calls {
		t.Errorf("%d calls, %+v", u.Calls, server.Ledger().Totals())
	}
}

// TestDeathInABudgetedSearch kills the process at each request of a search within a budget: the
// request that has to be the answer stays the same, and is sent once.
func TestDeathInABudgetedSearch(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; at <= 3; at++ { // the fourth request is the answer
			t.Run(fmt.Sprintf("at %d, after the answer %v", at, after), func(t *testing.T) {
				t.Parallel()
				m := &mortal{Model: script(t, "replies:"+endless)}
				b := newBench(t, models{"mock:m": m})
				config := searchConfig("mock:m")
				config["budget_calls"] = 4
				tree := b.launch("Where is the harbour light?", b.put(shore()...), config)
				for !b.die(m, tree.ID, at, after) {
					b.close()
					b.open()
					at = -1
				}
				root, err := b.store.Task(t.Context(), tree.Root)
				b.ok(err)
				if root.Result != "On the mole, I think." || b.usage(tree.ID).Calls != 4 {
					t.Errorf("the result is %q after %+v, %+v", root.Result, b.usage(tree.ID), root.Error)
				}
				if got := m.Ledger().Repeated(); len(got) != 0 {
					t.Errorf("asked again: %+v", got)
				}
			})
		}
	}
}
