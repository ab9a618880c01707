package rlm_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

func kinds(b *bench, id perdure.TreeID) []perdure.EventKind {
	b.Helper()
	var out []perdure.EventKind
	f := perdure.EventFilter{Tree: id}
	for {
		page, err := b.store.Events(b.Context(), f)
		b.ok(err)
		for _, e := range page {
			out = append(out, e.Kind)
			f.After = e.Seq
		}
		if len(page) == 0 {
			return out
		}
	}
}

// TestBudgetIsNeverOverspent runs with far more workers than the budget has room
// for, and ends with what it could pay for.
func TestBudgetIsNeverOverspent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config M
		within func(u perdure.Usage) bool
	}{
		{"tokens", M{"budget_tokens": 30_000}, func(u perdure.Usage) bool { return u.InputTokens+u.OutputTokens <= 30_000 }},
		{"calls", M{"budget_calls": 7}, func(u perdure.Usage) bool { return u.Calls == 7 }},
		{"dollars", M{"budget_usd": 0.00003}, func(u perdure.Usage) bool { return u.CostUSD <= 0.00003 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, models{"mock:m": echo(t)})
			var err error
			b.exec, err = rlm.New(rlm.ExecutorConfig{Store: b.store, Resolver: b.models,
				Price: func(_ string, u model.Usage) (int64, bool) { return (u.InputTokens + u.OutputTokens) / 1000, true }})
			b.ok(err)
			id := b.put(file{"text.txt", numbered(4000)})
			tt.config["model"], tt.config["chunk_tokens"], tt.config["answer_tokens"] = "mock:m", 1000, 100
			tree := b.launch("Read.", id, tt.config)
			got, root := b.finish(tree.ID, 64)
			if got.State != perdure.Partial {
				t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
			}
			u := b.usage(tree.ID)
			if !tt.within(u) || u.Calls < 3 {
				t.Errorf("usage is %+v", u)
			}
			parts, missing := len(b.leaves(tree.ID)), data(t, &root).Missing
			if len(missing)+int(u.Calls) != parts {
				t.Errorf("%d missing and %d calls for %d parts", len(missing), u.Calls, parts)
			}
			if !slices.Contains(kinds(b, tree.ID), perdure.EventBudgetExceeded) {
				t.Error("no event tells of the budget")
			}
		})
	}
}

func TestBudgetStopsUnderEitherPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.put(file{"text.txt", numbered(1000)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 1000, "strategy": "sequential", "budget_calls": 2})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Partial || root.Result == "" || len(data(t, &root).Missing) == 0 {
		t.Errorf("tree is %s, partial %v, with %q: %+v", got.State, got.Partial, root.Result, root.Error)
	}
}

// TestBudgetForNothing: a budget that pays for no call is refused with the arithmetic, and
// one that pays for exactly one call is not.
func TestBudgetForNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	var err error
	b.exec, err = rlm.New(rlm.ExecutorConfig{Store: b.store, Resolver: b.models,
		Price: func(_ string, u model.Usage) (int64, bool) { return u.InputTokens + 10*u.OutputTokens, true }})
	b.ok(err)
	id := b.put(file{"text.txt", numbered(200)})
	for _, tt := range []struct {
		config M
		says   []string
	}{
		{M{"budget_tokens": 101}, []string{"101 tokens", "2 for the prompt", "up to 100"}},
		{M{"budget_usd": 0.001}, []string{"$0.001", "2 for the prompt", "up to 100"}},
	} {
		tt.config["model"], tt.config["chunk_tokens"], tt.config["answer_tokens"] = "mock:m", 250, 100
		_, err := b.tryLaunch("Read.", id, tt.config)
		for _, text := range tt.says {
			if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), text) {
				t.Errorf("error %v, want one with %q", err, text)
			}
		}
	}
	trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{})
	if err != nil || len(trees) != 0 {
		t.Errorf("trees %v, %v", trees, err)
	}
	tree := b.launch("Read.", "", M{"model": "mock:m", "budget_tokens": 102, "answer_tokens": 100})
	if got, root := b.finish(tree.ID, 4); got.State != perdure.Completed {
		t.Errorf("tree is %s: %+v", got.State, root.Error)
	}
}

// slow answers the first requests and hangs in the others.
type slow struct {
	model.Model
	quick chan struct{} // a token for each quick answer
}

func (s *slow) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	select {
	case <-s.quick:
		return s.Model.Generate(ctx, req)
	default:
	}
	<-ctx.Done()
	return nil, model.Canceled(ctx)
}

func TestTimeLimitEndsWithWhatThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &slow{Model: echo(t), quick: make(chan struct{}, 3)}
		for range 3 {
			m.quick <- struct{}{}
		}
		b := newBench(t, models{"mock:m": m})
		id := b.put(file{"text.txt", numbered(1000)})
		tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 1000, "timeout": "20s"})
		got, root := b.finish(tree.ID, 4)
		if got.State != perdure.Partial {
			t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
		}
		if took := got.CompletedAt.Sub(got.CreatedAt); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("it took %s of 20s", took)
		}
		parts, missing := len(b.leaves(tree.ID)), data(t, &root).Missing
		if len(missing) != parts-3 {
			t.Errorf("%d of %d parts are missing, 3 were quick: %+v", len(missing), parts, missing)
		}
		for _, l := range b.leaves(tree.ID) {
			if l.State == perdure.Failed && (l.Error.Kind != rlm.KindBudget || l.Attempts != 1) {
				t.Errorf("task %q failed in attempt %d with %+v", l.ID, l.Attempts, l.Error)
			}
		}
	})
}

func TestTimeLimitOfOneCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, models{"mock:m": &slow{Model: echo(t)}})
		tree := b.launch("Read.", "", M{"model": "mock:m", "timeout": "10s"})
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Failed || root.Error.Kind != rlm.KindBudget {
			t.Errorf("tree is %s with %+v", got.State, root.Error)
		}
		calls, err := b.store.Calls(t.Context(), tree.Root)
		b.ok(err)
		if len(calls) != 1 || calls[0].State != perdure.CallFailed {
			t.Errorf("calls are %+v", calls)
		}
	})
}

// TestRetryDoesNotOutliveTheTimeLimit: a wait before the next attempt ends with
// the tree's time.
func TestRetryDoesNotOutliveTheTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, models{"mock:m": script(t, "replies: [{status: 503, repeat: -1}]")})
		tree := b.launch("Read.", "", M{"model": "mock:m", "timeout": "10s", "max_attempts": 100})
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Failed || root.Error.Kind != rlm.KindBudget {
			t.Errorf("tree is %s with %+v", got.State, root.Error)
		}
		if took := got.CompletedAt.Sub(got.CreatedAt); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it took %s of 10s", took)
		}
	})
}
