package rlm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// rounds are the gate's events of a tree, one line each.
func (b *bench) rounds(id perdure.TreeID) []string {
	b.Helper()
	events, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: id})
	b.ok(err)
	var out []string
	for _, e := range events {
		if e.Kind != "gate.scored" {
			continue
		}
		var d struct {
			Round, Rounds int
			Score         *float64
			Min           float64 `json:"min_score"`
			Passed        bool
			Model         string
		}
		b.ok(json.Unmarshal(e.Data, &d))
		score := "none"
		if d.Score != nil {
			score = fmt.Sprint(*d.Score)
		}
		out = append(out, fmt.Sprintf("%d of %d: %s of %v, passed %v, %s", d.Round, d.Rounds, score, d.Min, d.Passed,
			d.Model))
	}
	return out
}

// improving answers badly, then better with the critique.
const improving = `replies:
- {match: "strict and fair judge(?s:.)*=== answer ===\nbad", text: '{"score": 30, "critique": "It names no city."}'}
- {match: "strict and fair judge(?s:.)*=== answer ===\nbetter", text: '{"score": 60, "critique": "Which country?"}'}
- {match: "strict and fair judge(?s:.)*=== answer ===\nbest", text: '{"score": 95, "critique": ""}'}
- {match: "=== an earlier answer ===\nbad\n(?s:.)*gave it 30 points; at least [0-9]+ are needed. Its critique:\nIt names no city.", text: "better: Paris"}
- {match: "=== an earlier answer ===\nbetter(?s:.)*Which country", text: "best: Paris, France"}
- {text: "bad", repeat: 1}`

func TestGate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		config     M
		state      perdure.State
		result     string
		incomplete bool
		calls      int
		rounds     []string
	}{
		{"the critique helps", M{"min_score": 80}, perdure.Completed, "best: Paris, France", false, 6,
			[]string{"1 of 3: 30 of 80, passed false, openai:m", "2 of 3: 60 of 80, passed false, openai:m",
				"3 of 3: 95 of 80, passed true, openai:m"}},
		{"good enough at once", M{"min_score": 30}, perdure.Completed, "bad", false, 2,
			[]string{"1 of 3: 30 of 30, passed true, openai:m"}},
		{"the best is returned", M{"min_score": 80, "gate_rounds": 2}, perdure.Partial, "better: Paris", true, 4,
			[]string{"1 of 2: 30 of 80, passed false, openai:m", "2 of 2: 60 of 80, passed false, openai:m"}},
		{"failure", M{"min_score": 80, "gate_rounds": 1, "gate_fallback": "fail"}, perdure.Failed, "", false, 2,
			[]string{"1 of 1: 30 of 80, passed false, openai:m"}},
		{"escalation", M{"min_score": 80, "gate_rounds": 1, "gate_fallback": "escalate", "escalate_model": "strong"},
			perdure.Completed,
			"best: by the strong", false, 4,
			[]string{"1 of 1: 30 of 80, passed false, openai:m", "2 of 1: 95 of 80, passed true, strong"}},
		{"escalation in vain", M{"min_score": 99, "gate_rounds": 1, "gate_fallback": "escalate",
			"escalate_model": "strong"}, perdure.Partial,
			"best: by the strong", true, 4,
			[]string{"1 of 1: 30 of 99, passed false, openai:m", "2 of 1: 95 of 99, passed false, strong"}},
		{"a rule", M{"min_score": 1, "judge": "rule:text contains 'France'", "criteria": nil}, perdure.Completed, "best",
			false, 2,
			[]string{"1 of 3: 0 of 1, passed false, openai:m", "2 of 3: 100 of 1, passed true, openai:m"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := improving
			if tt.config["judge"] != nil {
				text = "replies:\n- {match: \"the rule text contains 'France' gives 0\", text: best France}\n" +
					"- {text: bad, repeat: 1}"
				tt.result = "best France"
			}
			_, m := endpoint(t, text)
			m["strong"] = script(t, `replies: [{match: "It names no city", text: "best: by the strong"}]`)
			b := newBench(t, m)
			tt.config["model"] = "openai:m"
			tree := b.launch("Where is the tower?", "", tt.config)
			got, root := b.finish(tree.ID, 1)
			if got.State != tt.state || root.Result != tt.result || got.Partial != tt.incomplete {
				t.Errorf("tree is %s, partial %v, with %q, %+v", got.State, got.Partial, root.Result, root.Error)
			}
			if diff := cmp.Diff(tt.rounds, b.rounds(tree.ID)); diff != "" {
				t.Error(diff)
			}
			if n := b.usage(tree.ID).Calls; int(n) != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			if tt.state == perdure.Failed {
				if root.Error.Kind != rlm.KindQuality ||
					!strings.Contains(root.Error.Message, "has the score 30, and at least 80 is needed") {
					t.Errorf("error %+v", root.Error)
				}
				return
			}
			d := data(t, &root)
			last := d.Gate.Rounds[len(d.Gate.Rounds)-1]
			if len(d.Gate.Rounds) != len(tt.rounds) || !last.Chosen || *d.Gate.Score != *last.Score ||
				d.Gate.Passed == tt.incomplete {
				t.Errorf("report %+v", d.Gate)
			}
			if (len(d.Notes) > 0) != tt.incomplete {
				t.Errorf("notes %q", d.Notes)
			}
		})
	}
}

// A judge that says nothing useful ends the rounds: there is no critique to go
// by.
func TestGateWithoutAScore(t *testing.T) {
	t.Parallel()
	for fallback, want := range map[string]perdure.State{"return_best": perdure.Partial, "fail": perdure.Failed} {
		_, m := endpoint(t, `replies:
- {match: "strict and fair judge", text: "Very good!"}
- {text: an answer, repeat: 1}`)
		b := newBench(t, m)
		tree := b.launch("Why?", "", M{"model": "openai:m", "min_score": 50, "gate_fallback": fallback})
		got, root := b.finish(tree.ID, 1)
		if n := b.usage(tree.ID).Calls; n != 4 || got.State != want {
			t.Errorf("%s: tree is %s after %d calls, %+v", fallback, got.State, n, root.Error)
		}
		if want == perdure.Failed {
			if !strings.Contains(root.Error.Message, "no answer was scored") {
				t.Errorf("error %+v", root.Error)
			}
			continue
		}
		if d := data(t, &root); !got.Partial || root.Result != "an answer" || len(d.Notes) != 2 || d.Gate.Score != nil {
			t.Errorf("%q, notes %q", root.Result, d.Notes)
		}
	}
}

// The gate stands at each part and at the summary; parts that have nothing to
// say are let through, and a part that fails is missing.
func TestGateInATree(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: "strict and fair judge(?s:.)*=== answer ===\nthe whole", text: '{"score": 90}'}
- {match: "strict and fair judge(?s:.)*=== answer ===\n[^\n]*bad", text: '{"score": 10, "critique": "no"}'}
- {match: "strict and fair judge", text: '{"score": 80}'}
- {match: "=== results ===", text: "the whole"}
- {match: "part 1 of", text: "(nothing in this part)"}
- {match: "part 2 of", text: "bad"}
- {match: "part [0-9]* of", text: "fine {{short}}"}`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(4 * 23)})
	tree := b.launch("Read.", id, M{"model": "openai:m", "merge": "summarize", "chunk_tokens": 250, "overlap_tokens": -1,
		"min_score": 50, "gate_rounds": 2, "gate_fallback": "fail"})
	got, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	if got.State != perdure.Partial || root.Result != "the whole" || len(d.Missing) != 1 ||
		d.Gate == nil || !d.Gate.Passed {
		t.Errorf("tree is %s with %q, %+v, %+v", got.State, root.Result, root.Error, d)
	}
	if n := len(b.leaves(tree.ID)); n != 4 {
		t.Fatalf("%d parts", n)
	}
	// Part 1: one call; part 2: two tries, the second of which says the same,
	// each judged; parts 3 and 4: one try, judged; the summary, judged.
	if sum := server.Ledger().Totals(); sum.Started != 1+4+2+2+2 {
		t.Errorf("requests: %+v", sum)
	}
	if !strings.Contains(d.Missing[0].Error, "quality: ") {
		t.Errorf("missing %+v", d.Missing)
	}
}

// A gate at the root only judges the root; best-of-n uses the scores of the
// gates below.
func TestGateAndBest(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, `replies:
- {match: "=== answer ===\nfirst", text: '{"score": 60}'}
- {match: "=== answer ===\nsecond", text: '{"score": 70}'}
- {text: first, repeat: 1}
- {text: second, repeat: 1}`)
	b := newBench(t, m)
	tree := b.launch("Which?", "", M{"model": "openai:m", "merge": "best-of-n", "samples": 2, "min_score": 65,
		"gate_rounds": 1})
	got, root := b.finish(tree.ID, 1)
	if n := b.usage(tree.ID).Calls; n != 4 || root.Result != "second" || got.Partial || !data(t, &root).Gate.Passed {
		t.Errorf("%q after %d calls, %+v", root.Result, n, root.Error)
	}
}

// A gate at the root judges the summary only.
func TestGateAtTheRoot(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, `replies:
- {match: "=== answer ===\nthe whole 1", text: '{"score": 40, "critique": "more"}'}
- {match: "=== answer ===\nthe whole 2", text: '{"score": 80}'}
- {match: "=== results ===(?s:.)*Its critique:\nmore", text: "the whole 2"}
- {match: "=== results ===", text: "the whole 1"}
- {text: "part {{short}}", repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(100)})
	tree := b.launch("Read.", id, M{"model": "openai:m", "merge": "summarize", "chunk_tokens": 250, "min_score": 50,
		"gate_at": "root"})
	got, root := b.finish(tree.ID, 2)
	if n := int(b.usage(tree.ID).Calls); got.Partial || root.Result != "the whole 2" || n != len(b.leaves(tree.ID))+4 {
		t.Errorf("%q after %d calls, %+v", root.Result, n, root.Error)
	}
}

// When the budget ends between two rounds, the best try so far is the result.
func TestBudgetEndsInTheGate(t *testing.T) {
	t.Parallel()
	for calls, want := range map[int]string{1: "bad", 2: "bad", 3: "bad", 4: "better: Paris"} {
		_, m := endpoint(t, improving)
		b := newBench(t, m)
		tree := b.launch("Where?", "", M{"model": "openai:m", "min_score": 80, "budget_calls": calls})
		got, root := b.finish(tree.ID, 1)
		d := data(t, &root)
		if got.State != perdure.Partial || root.Result != want {
			t.Errorf("%d calls: tree is %s, partial %v, with %q, %+v", calls, got.State, got.Partial, root.Result, root.Error)
		}
		if last := d.Notes[len(d.Notes)-1]; !strings.HasPrefix(last, "the quality gate stopped: ") {
			t.Errorf("notes %q", d.Notes)
		}
	}
}

// TestDeathInTheGate kills the process at each request of a run with a gate and
// a judge: no finished request is made again, and each round counts once in the
// result.
func TestDeathInTheGate(t *testing.T) {
	t.Parallel()
	const text = `replies:
- {match: "=== answer ===(?s:.)*=== your last reply ===", text: '{"score": 10, "critique": "{{hash}}"}'}
- {match: "=== answer ===", text: "prose {{short}}"}
- {text: "try {{hash}}", repeat: -1}`
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after the answer ", after), func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: script(t, text)}
			b := newBench(t, models{"mock:m": m})
			config := M{"model": "mock:m", "merge": "best-of-n", "samples": 2, "seed": 1, "min_score": 50, "gate_rounds": 2,
				"concurrency": 1}
			_, want := b.finish(b.launch("Why?", "", config).ID, 1)
			calls := m.Ledger().Totals().Finished
			m.Model = script(t, text)
			tree := b.launch("Why?", "", config)
			deaths := 0
			for !b.die(m, tree.ID, 2, after) {
				deaths++
				b.close()
				b.open()
			}
			root, err := b.store.Task(t.Context(), tree.Root)
			b.ok(err)
			if root.State != perdure.Completed || root.Result != want.Result {
				t.Errorf("after %d deaths the root is %s with %q, want %q", deaths, root.State, root.Result, want.Result)
			}
			if n := m.Ledger().Totals().Finished; n != calls || deaths < calls/2 {
				t.Errorf("%d answers, want %d; %d deaths", n, calls, deaths)
			}
			if told := b.rounds(tree.ID); len(told) != 4 {
				t.Errorf("rounds told: %q", told)
			}
			for _, leaf := range b.leaves(tree.ID) {
				if d := data(t, &leaf); len(d.Gate.Rounds) != 2 {
					t.Errorf("rounds %+v", d.Gate.Rounds)
				}
			}
		})
	}
}
