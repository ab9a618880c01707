package rlm_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// patient asks the model of an endpoint with retries and without waits between them.
func patient(b *bench, ms models) models {
	b.Helper()
	m, err := model.NewGuarded(model.GuardedConfig{Model: ms["openai:m"], Name: "openai:m", InitialBackoff: 1,
		MaxBackoff: 1})
	b.ok(err)
	return models{"openai:m": m}
}

// TestEveryRequestCounts: the usage of a tree counts the requests that the endpoint
// counted, and what failed replies reported.
func TestEveryRequestCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		want         perdure.Usage
	}{
		{"refused twice", `replies: [{status: 500, repeat: 2}, {text: ok, usage: {input: 5, output: 2}}]`,
			perdure.Usage{Calls: 3, InputTokens: 5, OutputTokens: 2}},
		{"empty", `replies: [{empty: true, usage: {input: 7, output: 3}}, {text: ok, usage: {input: 5, output: 2}}]`,
			perdure.Usage{Calls: 2, InputTokens: 12, OutputTokens: 5}},
		{"broken off, not reported", `replies: [{text: abcd, size: 1000, cut: 400, usage: {omit: true}},
			{text: ok, usage: {input: 5, output: 2}}]`,
			perdure.Usage{Calls: 2, InputTokens: 5 + 2, OutputTokens: 2 + 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, ms := endpoint(t, tt.script)
			b := newBench(t, models{})
			b.models = patient(b, ms)
			b.close()
			b.open()
			tree := b.launch("Read.", "", M{"model": "openai:m"})
			if got, root := b.finish(tree.ID, 1); got.State != perdure.Completed {
				t.Fatalf("tree is %s: %+v", got.State, root.Error)
			}
			u := b.usage(tree.ID)
			u.UnpricedCalls, tt.want.UnpricedCalls = 0, 0
			if u != tt.want || int64(server.Ledger().Totals().Started) != u.Calls {
				t.Errorf("usage %+v, want %+v; the endpoint counted %+v", u, tt.want, server.Ledger().Totals())
			}
			calls, err := b.store.Calls(t.Context(), tree.Root)
			b.ok(err)
			var sum perdure.Usage
			for i, c := range calls {
				sum.Calls, sum.InputTokens, sum.OutputTokens = sum.Calls+int64(c.Tries), sum.InputTokens+c.InputTokens,
					sum.OutputTokens+c.OutputTokens
				if answered := c.State == perdure.CallCompleted; answered != (i == len(calls)-1) {
					t.Errorf("call %d of %d is %s", i+1, len(calls), c.State)
				}
			}
			if sum != u || int64(len(calls)) != u.Calls {
				t.Errorf("calls %+v, want the usage of the tree, %+v", calls, u)
			}
		})
	}
}

// TestFailedRequestsReserveNothing: requests that wait to be sent again do not wait for each
// other's reservations, and calls that wait for reservations do not keep them from being
// sent.
func TestFailedRequestsReserveNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, failed string }{ // the budget has room for two requests at once
		{"empty", `{empty: true, delay: 100ms, repeat: 2, usage: {input: 1500, output: 0}}`},
		{"rate limit", `{status: 429, delay: 100ms, repeat: 2}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, ms := endpoint(t, `replies: [`+tt.failed+`, {text: ok, repeat: -1, usage: {input: 20, output: 1}}]`)
			m, err := model.NewGuarded(model.GuardedConfig{Model: ms["openai:m"], Name: "openai:m", InitialBackoff: 1,
				MaxBackoff: 1, Concurrency: 4})
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t, models{"openai:m": m})
			id := b.put(file{"text.txt", numbered(400)})
			tree := b.launch("Read.", id, M{"model": "openai:m", "chunk_tokens": 1000, "answer_tokens": 100,
				"budget_tokens": 5000, "timeout": "30s"})
			if got, root := b.finish(tree.ID, 4); got.State != perdure.Completed {
				t.Errorf("tree is %s: %+v %s", got.State, root.Error, root.Data)
			}
			if sent := int64(server.Ledger().Totals().Started); b.usage(tree.ID).Calls != sent || sent < 6 {
				t.Errorf("%d requests were sent, %d are counted", sent, b.usage(tree.ID).Calls)
			}
		})
	}
}

// TestBudgetOfRequests: a limit of calls is one of requests, repeated ones included.
func TestBudgetOfRequests(t *testing.T) {
	t.Parallel()
	server, ms := endpoint(t, `replies: [{status: 500, repeat: -1}]`)
	b := newBench(t, models{})
	b.models = patient(b, ms)
	b.close()
	b.open()
	tree := b.launch("Read.", "", M{"model": "openai:m", "budget_calls": 2})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindBudget {
		t.Errorf("tree is %s: %+v", got.State, root.Error)
	}
	if sent := server.Ledger().Totals().Started; sent != 2 || b.usage(tree.ID).Calls != 2 {
		t.Errorf("%d requests were sent, %d are counted", sent, b.usage(tree.ID).Calls)
	}
}

// TestLongAnswersAreCut: a server that ignores the limit of the answer is not read further,
// and what was read counts, as a partial answer.
func TestLongAnswersAreCut(t *testing.T) {
	t.Parallel()
	_, ms := endpoint(t, `replies: [{text: "word ", size: 1000000, usage: {omit: true}}]`)
	b := newBench(t, ms)
	tree := b.launch("Read.", "", M{"model": "openai:m", "answer_tokens": 100})
	got, root := b.finish(tree.ID, 1)
	if limit := model.MostAnswerBytes(100); got.State != perdure.Partial || len(root.Result) > limit ||
		len(root.Result) < limit-10 {
		t.Errorf("tree is %s with %d bytes, the limit is %d", got.State, len(root.Result), limit)
	}
	if u := b.usage(tree.ID); u.OutputTokens != model.EstimateTokens(len(root.Result)) {
		t.Errorf("usage %+v of %d bytes", u, len(root.Result))
	}
	if d := data(t, &root); len(d.Notes) != 2 ||
		d.Notes[0] != "the server ignores the limit of 100 tokens for answers; the answer was cut" {
		t.Errorf("notes are %q", d.Notes)
	}
}
