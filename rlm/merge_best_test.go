package rlm_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/rlm"
)

// program is a model that computes its answer.
type program func(req *model.Request) (string, error)

func (p program) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	text, err := p(req)
	if err != nil {
		return nil, err
	}
	return &model.Response{Text: text, Tries: 1}, nil
}

// length scores an answer by its length, and fails on one that is empty of x.
func length(req *model.Request) (string, error) {
	if !strings.Contains(req.Prompt, "x") {
		return "", &model.Error{Kind: model.KindFailed, Msg: "no x"}
	}
	return strconv.Itoa(len(req.Prompt)) + "\nas long as it is\n", nil
}

// numbers returns the scores of a result, NaN as -1, and which is chosen.
func numbers(d *rlm.Data) (scores []float64, chosen int) {
	chosen = -1
	for i, s := range d.Scores {
		if s.Score == nil {
			scores = append(scores, -1)
		} else {
			scores = append(scores, *s.Score)
		}
		if s.Chosen {
			chosen = i
		}
	}
	return scores, chosen
}

// The same prompt is asked several times, and a judge at the same endpoint
// chooses.
func TestBestOfSamplesByAModel(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: "You are a strict and fair judge(?s:.)*=== answer ===\nfirst", text: '{"score": 20, "critique": "too short"}'}
- {match: "You are a strict and fair judge(?s:.)*=== answer ===\nsecond", text: '{"score": 91.5, "critique": "fine"}'}
- {match: "You are a strict and fair judge(?s:.)*=== answer ===\nthird", text: "Sure:\n`+"```"+
		`json\n{\"score\": 90}\n`+"```"+`"}
- {text: first, repeat: 1}
- {text: second, repeat: 1}
- {text: third, repeat: 1}`)
	b := newBench(t, m)
	tree := b.launch("Which?", "", M{"model": "openai:m", "merge": "best-of-n", "criteria": "brevity"})
	got, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	if got.State != perdure.Completed || got.Partial || root.Result != "second" {
		t.Fatalf("tree is %s with %q, %+v, %+v", got.State, root.Result, root.Error, d)
	}
	scores, chosen := numbers(&d)
	if diff := cmp.Diff([]float64{20, 91.5, 90}, scores); diff != "" || chosen != 1 ||
		d.Scores[0].Critique != "too short" {
		t.Errorf("chosen %d, %+v: %s", chosen, d.Scores, diff)
	}
	// The three answers were asked for by one text.
	if sum := server.Ledger().Totals(); sum.Started != 6 || sum.First != 4 || b.usage(tree.ID).Calls != 6 {
		t.Errorf("requests: %+v", sum)
	}
	for _, e := range server.Ledger().Entries()[1:] {
		if !strings.Contains(e.Prompt, "strict and fair judge") {
			t.Errorf("request %q", e.Prompt)
		}
	}
}

// A judge that answers prose is corrected twice; after that the candidate has
// no score, which is noted.
func TestJudgeAnswersProse(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
- {match: "=== your last reply ===(?s:.)*second", text: "Still words."}
- {match: "=== answer ===\nfirst(?s:.)*=== your last reply ===(?s:.)*cannot be used", text: '{"score": 40}'}
- {match: "=== answer ===\n", text: "It is a good answer."}
- {text: first, repeat: 1}
- {text: second, repeat: 1}`)
	_ = server
	b := newBench(t, m)
	tree := b.launch("Which?", "", M{"model": "openai:m", "merge": "best-of-n", "samples": 2})
	got, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	scores, chosen := numbers(&d)
	if got.State != perdure.Completed || root.Result != "first" || len(scores) != 2 || scores[0] != 40 || chosen != 0 {
		t.Errorf("tree is %s with %q, %+v", got.State, root.Result, d.Scores)
	}
	if scores[1] != -1 || len(d.Notes) != 1 ||
		!strings.Contains(d.Notes[0], `is not scored by "openai:m": the reply contains no JSON`) {
		t.Errorf("scores %v, notes %q", scores, d.Notes)
	}
	if n := b.usage(tree.ID).Calls; n != 2+2+3 {
		t.Errorf("%d calls", n)
	}
}

// Programs and rules score without a model; what they cannot score is noted,
// ties go to the earlier, and scores go up through levels.
func TestBestOfParts(t *testing.T) {
	t.Parallel()
	texts := []string{"x", "xxxx", "no", "xxx", "yxxx", "x", "xx"}
	answers := make([]string, len(texts))
	for i, text := range texts {
		answers[i] = fmt.Sprintf("- {match: 'part %d of', text: %q}", i+1, text)
	}
	tests := []struct {
		judge  string
		want   string
		scores []float64
		calls  int64
		note   string
	}{
		{"exec:length", "xxxx", []float64{1, 4, -1, 3, 4, 1, 2}, 14, `is not scored by "exec:length": failed: no x`},
		{"rule:len(text)", "xxxx", []float64{1, 4, 2, 3, 4, 1, 2}, 7, ""},
		{"rule:text startsWith 'y'", "yxxx", []float64{0, 0, 0, 0, 100, 0, 0}, 7, ""},
		{"rule:data.points", "x", []float64{-1, -1, -1, -1, -1, -1, -1}, 7,
			"is not scored by \"rule:data.points\": column 6"},
	}
	for _, tt := range tests {
		t.Run(tt.judge, func(t *testing.T) {
			t.Parallel()
			_, m := endpoint(t, "replies:\n"+strings.Join(answers, "\n"))
			m["exec:length"] = program(length)
			b := newBench(t, m)
			id := b.put(file{"text.txt", numbered(7 * 23)})
			tree := b.launch("Look.", id, M{"model": "openai:m", "merge": "best-of-n", "judge": tt.judge, "chunk_tokens": 250,
				"max_children": 3, "overlap_tokens": -1})
			got, root := b.finish(tree.ID, 3)
			d := data(t, &root)
			scores, chosen := numbers(&d)
			if !got.State.Terminal() || got.State == perdure.Failed || root.Result != tt.want {
				t.Errorf("tree is %s with %q, want %q; %+v", got.State, root.Result, tt.want, root.Error)
			}
			if diff := cmp.Diff(tt.scores, scores); diff != "" {
				t.Error(diff)
			}
			if task, err := b.store.Task(t.Context(), d.Scores[max(chosen, 0)].Task); err != nil || task.Result != tt.want {
				t.Errorf("chosen is %d, %v", chosen, err)
			}
			if n := b.usage(tree.ID).Calls; n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			if all := strings.Join(d.Notes, "\n"); !strings.Contains(all, tt.note) || tt.note == "" && all != "" {
				t.Errorf("notes %q, want %q", all, tt.note)
			}
			if none := scores[0] == -1; got.Partial != none {
				t.Errorf("partial %v", got.Partial)
			}
		})
	}
}

func TestBadJudgesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	tests := []struct {
		config M
		want   string
	}{
		{M{"merge": "best-of-n", "judge": "rule:len(tex) > 3"}, `judge: the rule "len(tex) > 3": column 5: unknown name tex`},
		{M{"merge": "best-of-n", "judge": "rule:1 +"}, "judge: the rule \"1 +\": column 3: unexpected token EOF"},
		{M{"merge": "best-of-n", "judge": "rule:text"}, "it is a string"},
		{M{"merge": "best-of-n", "judge": "mock:none"}, `find judge "mock:none"`},
		{M{"merge": "best-of-n", "judge": "builtin:extract"}, "builtin:extract only quotes passages"},
		{M{"merge": "best-of-n", "criteria": "x", "judge": "rule:1"}, "criteria: they need a judge that is a model"},
		{M{"judge": "rule:1"}, "judge: no answer is scored"},
		{M{"samples": -1}, "samples: -1 is not between 0 and 1000"},
		{M{"samples": 1001}, "samples: 1001 is not between"},
		{M{"samples": 3, "max_depth": 0}, "max_depth: 0 means a direct answer"},
		{M{"samples": 3, "max_nodes": 3}, "samples: 3 make 4 tasks"},
		{M{"samples": 3, "planner": "model"}, "samples: planner model chooses the sub-tasks itself"},
		{M{"merge": "vote", "model": "builtin:extract"}, "merge: vote compares answers"},
		{M{"samples": 3, "batch": true}, "samples: a batch makes one request for each file"},
		{M{"samples": 3, "model": "builtin:extract", "sub_model": "builtin:extract"},
			"builtin:extract answers the same each time"},
		{M{"min_score": 101}, "min_score: 101 is not between 0 and 100"},
		{M{"min_score": 50, "gate_fallback": "best"}, `gate_fallback: "best" is not one of`},
		{M{"min_score": 50, "gate_rounds": 101}, "gate_rounds: 101 is not between 1 and 100"},
		{M{"min_score": 50, "gate_fallback": "escalate"}, "there is no stronger model to escalate to"},
		{M{"min_score": 50, "escalate_model": "mock:m"}, "escalate_model: it needs gate_fallback escalate"},
		{M{"gate_rounds": 3}, "gate_rounds: the quality gate is off"},
		{M{"gate_fallback": "fail"}, "gate_fallback: the quality gate is off"},
		{M{"min_score": 50, "gate_at": "root", "samples": 2}, "gate_at: the result of the root is put together by vote"},
		{M{"min_score": 50, "gate_fallback": "escalate", "escalate_model": "mock:none"}, `find model "mock:none"`},
	}
	for _, tt := range tests {
		if tt.config["model"] == nil {
			tt.config["model"] = "mock:m"
		}
		_, err := b.tryLaunch("Read.", "", tt.config)
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want %q", tt.config, err, tt.want)
		}
	}
	id := b.put(file{"text.txt", numbered(200)})
	if _, err := b.tryLaunch("Read.", id, M{"model": "mock:m", "samples": 2, "chunk_tokens": 250}); err == nil ||
		!strings.Contains(err.Error(), "the context has to be split") {
		t.Errorf("samples of a split: %v", err)
	}
	if b.models["mock:m"].(*mock.Model).Ledger().Totals().Started != 0 {
		t.Error("a model was asked")
	}
}

// A vote over samples, each with its own seed, over a context that fits.
func TestVoteOverSamples(t *testing.T) {
	t.Parallel()
	var seeds []int64
	samples := make(map[int]bool)
	m := program(func(req *model.Request) (string, error) {
		if req.Seed == nil || len(req.Documents) != 1 || samples[req.Sample] || strings.Contains(req.System, "part") {
			return "", errors.New("not a sample")
		}
		seeds, samples[req.Sample] = append(seeds, *req.Seed), true
		return []string{"7", "8", "7.0"}[*req.Seed%3], nil
	})
	b := newBench(t, models{"mock:m": m})
	id := b.put(file{"text.txt", numbered(10)})
	tree := b.launch("How many?", id, M{"model": "mock:m", "merge": "vote", "samples": 5, "seed": 3})
	_, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	if diff := cmp.Diff([]int64{3, 4, 5, 6, 7}, seeds); diff != "" || root.Result != "7" || len(d.Votes) != 2 ||
		d.Votes[0].Count != 3 {
		t.Errorf("result %q, votes %+v, seeds %s", root.Result, d.Votes, diff)
	}
	if title := b.leaves(tree.ID)[0].Prompt; title != "[answer 1 of 5] How many?" {
		t.Errorf("title %q", title)
	}
}

// A sample that failed is missing; the vote is over the others.
func TestVoteWithoutASample(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, `replies:
- {text: "yes", repeat: 1}
- {status: 400, message: "no", repeat: 1}
- {text: "no", repeat: 1}
- {text: "No.", repeat: 1}`)
	b := newBench(t, m)
	tree := b.launch("Yes or no?", "", M{"model": "openai:m", "merge": "vote", "samples": 4})
	got, root := b.finish(tree.ID, 1)
	d := data(t, &root)
	if !got.Partial || root.Result != "no" || len(d.Missing) != 1 || d.Missing[0].Prompt != "[answer 2 of 4] Yes or no?" {
		t.Errorf("tree is %s with %q, missing %+v", got.State, root.Result, d.Missing)
	}
}
