package perdure_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// The sums by depth and model are those of the calls, and together they are the
// tree's; who answered counts, not who was announced.
func TestCostsByDepthAndModel(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		submit(t, s, r.tree.Root, 3)
		leases := append(claim(t, r.ss, 3), r.root)
		random := rand.New(rand.NewPCG(1, 2))
		want := make(map[string]perdure.Usage)
		for position := range 40 {
			l := leases[random.IntN(len(leases))]
			spec := perdure.CallSpec{Position: position, Model: "a,b", RequestHash: "h"}
			c, _, err := l.BeginCall(ctx, spec)
			if err != nil {
				t.Fatal(err)
			}
			answered := []string{"", "a", "b"}[random.IntN(3)]
			cost := random.Int64N(1000)
			result := perdure.CallResult{Model: answered, InputTokens: random.Int64N(100), OutputTokens: 3, CachedTokens: 2,
				CostMicros: &cost}
			u := perdure.Usage{Calls: 1, InputTokens: result.InputTokens, OutputTokens: 3, CachedTokens: 2,
				CostUSD: float64(cost) / 1e6}
			if position%7 == 0 {
				result.CostMicros, u.CostUSD, u.UnpricedCalls = nil, 0, 1
			}
			if position%11 == 0 {
				result.Err = &perdure.TaskError{Kind: "model", Message: "no"}
			}
			if position%5 == 0 { // sent twice, at the price of two
				failed := result
				failed.Err = &perdure.TaskError{Kind: "model", Message: "no"}
				if err := l.SettleCall(ctx, c.ID, failed); err != nil {
					t.Fatal(err)
				}
				if c, _, err = l.BeginCall(ctx, spec); err != nil {
					t.Fatal(err)
				}
				if answered != "" {
					want[fmt.Sprint(l.Task.Depth, " ", answered)] = add(want[fmt.Sprint(l.Task.Depth, " ", answered)], u)
				} else {
					want[fmt.Sprint(l.Task.Depth, " a,b")] = add(want[fmt.Sprint(l.Task.Depth, " a,b")], u)
				}
			}
			if err := l.SettleCall(ctx, c.ID, result); err != nil {
				t.Fatal(err)
			}
			if answered == "" {
				answered = "a,b"
			}
			calls, err := s.Calls(ctx, l.Task.ID)
			if err != nil || calls[len(calls)-1].Model != answered {
				t.Errorf("the row says %q, %v, want %q", calls[len(calls)-1].Model, err, answered)
			}
			key := fmt.Sprint(l.Task.Depth, " ", answered)
			want[key] = add(want[key], u)
		}
		compareCosts(ctx, t, s, r.tree.ID, want)
		sound(t, s)
	})
}

func add(a, b perdure.Usage) perdure.Usage {
	return perdure.Usage{Calls: a.Calls + b.Calls, InputTokens: a.InputTokens + b.InputTokens,
		OutputTokens: a.OutputTokens + b.OutputTokens,
		CachedTokens: a.CachedTokens + b.CachedTokens, CostUSD: a.CostUSD + b.CostUSD,
		UnpricedCalls:  a.UnpricedCalls + b.UnpricedCalls,
		UncertainCalls: a.UncertainCalls + b.UncertainCalls, UncertainTokens: a.UncertainTokens + b.UncertainTokens,
		UncertainCostUSD: a.UncertainCostUSD + b.UncertainCostUSD}
}

var nearly = cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })

func compareCosts(ctx context.Context, t *testing.T, s *perdure.Store, tree perdure.TreeID,
	want map[string]perdure.Usage) {
	t.Helper()
	p, err := s.Progress(ctx, tree)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]perdure.Usage)
	var sum perdure.Usage
	for _, line := range p.Costs {
		got[fmt.Sprint(line.Depth, " ", line.Model)] = line.Usage
		sum = add(sum, line.Usage)
	}
	if diff := cmp.Diff(want, got, nearly); diff != "" {
		t.Errorf("costs differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.Usage, sum, nearly); diff != "" {
		t.Errorf("costs are not those of the tree (-tree +sum):\n%s", diff)
	}
}

// A call that was never heard of again counts at its depth and model, too.
func TestCostsOfUncertainCalls(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		if _, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h", ReserveTokens: 10,
			ReserveCostMicros: 5}); err != nil {
			t.Fatal(err)
		}
		if err := r.root.Release(ctx); err != nil {
			t.Fatal(err)
		}
		again := claimOf(t, r.ss, r.tree.ID)
		c, _, err := again.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h"})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.SettleCall(ctx, c.ID, perdure.CallResult{InputTokens: 1}); err != nil {
			t.Fatal(err)
		}
		compareCosts(ctx, t, s, r.tree.ID, map[string]perdure.Usage{
			"0 m": {Calls: 2, UncertainCalls: 1, UncertainTokens: 10, UncertainCostUSD: 5e-6, InputTokens: 1,
				UnpricedCalls: 1},
		})
	})
}

// However many models a tree asks, its row stays small and the sums right.
func TestCostsOfManyModels(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		for i := range 100 {
			c, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: i, Model: fmt.Sprint("m", i), RequestHash: "h"})
			if err == nil {
				err = r.root.SettleCall(ctx, c.ID, perdure.CallResult{InputTokens: 1})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p, err := s.Progress(ctx, r.tree.ID)
		if err != nil {
			t.Fatal(err)
		}
		last := p.Costs[len(p.Costs)-1]
		if len(p.Costs) != 64 || last.Model != perdure.OtherModels || last.Calls != 37 || p.Usage.Calls != 100 {
			t.Errorf("%d lines, the last %+v, %d calls", len(p.Costs), last, p.Usage.Calls)
		}
	})
}

// A call that takes more than was held for it warns and exceeds when it is
// settled, without another request.
func TestOverspending(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: 100, CostMicros: 1000, Calls: 50, MaxNodes: 10}})
		spend := func(position int, tokens, micros int64) {
			t.Helper()
			c, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: position, Model: "m", RequestHash: "h"})
			if err == nil {
				err = r.root.SettleCall(ctx, c.ID, perdure.CallResult{InputTokens: tokens, CostMicros: &micros})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		spend(0, 79, 0)
		if n := countEvents(t, s, perdure.EventBudgetWarning); n != 0 {
			t.Errorf("%d warnings below 80 %%", n)
		}
		spend(1, 1, 0)
		spend(2, 1, 5000)
		if n := countEvents(t, s, perdure.EventBudgetWarning); n != 1 {
			t.Errorf("%d warnings, want that of the tokens", n)
		}
		if n := countEvents(t, s, perdure.EventBudgetExceeded); n != 1 {
			t.Errorf("%d limits exceeded, want the money", n)
		}
		p, err := s.Progress(ctx, r.tree.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := []perdure.LimitUse{
			{Limit: "calls", Value: 50, Used: 3, Flag: "--budget-calls"},
			{Limit: "tokens", Value: 100, Used: 81, Warned: true, Flag: "--budget-tokens"},
			{Limit: "cost_micros", Value: 1000, Used: 5000, Exceeded: true, Flag: "--budget-usd"},
			{Limit: "nodes", Value: 10, Used: 1, Flag: "--max-nodes"},
		}
		if diff := cmp.Diff(want, p.Limits); diff != "" {
			t.Errorf("limits differ (-want +got):\n%s", diff)
		}
		_, _, err = r.root.BeginCall(ctx, perdure.CallSpec{Position: 3, Model: "m", RequestHash: "h"})
		wantCode(t, "call after the money is gone", err, perdure.CodeBudgetExceeded)
		sound(t, s)
	})
}

// TestMeanCallTime: only answered requests to the model count, and the last ones.
func TestMeanCallTime(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "x"}})
		mean := func(most int) (time.Duration, bool) {
			t.Helper()
			d, known, err := s.MeanCallTime(ctx, "m", most)
			if err != nil {
				t.Fatal(err)
			}
			return d, known
		}
		if d, known := mean(9); known {
			t.Errorf("no call took %s", d)
		}
		var took []time.Duration
		for i, result := range []perdure.CallResult{{}, {NotSent: true},
			{Err: &perdure.TaskError{Kind: "model", Message: "no"}}, {}} {
			c, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: i, Model: "m", RequestHash: "h"})
			if err == nil {
				err = r.root.SettleCall(ctx, c.ID, result)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		calls, err := s.Calls(ctx, r.root.Task.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 3} {
			took = append(took, calls[i].EndedAt.Sub(calls[i].StartedAt))
		}
		if d, known := mean(9); !known || d != ((took[0]+took[1])/2).Truncate(time.Microsecond) {
			t.Errorf("mean %s, known %v, of %v", d, known, took)
		}
		if d, known := mean(1); !known || d != took[1] {
			t.Errorf("the last call took %s, known %v, of %v", d, known, took)
		}
	})
}
