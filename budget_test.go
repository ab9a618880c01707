package perdure_test

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// Calls of 64 tasks at once never overspend together: what is reserved and
// spent stays within the limit at every moment.
func TestParallelBudget(t *testing.T) {
	t.Parallel()
	const callers, limit, each = 64, 1000, 30
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: limit}})
		submit(t, s, r.tree.Root, callers)
		leases := claim(t, r.ss, callers)
		var granted, refused atomic.Int64
		var wg sync.WaitGroup
		for _, l := range leases {
			wg.Go(func() {
				c, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h", ReserveTokens: each})
				if errors.Is(err, perdure.ErrBudgetExceeded) {
					refused.Add(1)
					return
				}
				if err == nil {
					granted.Add(1)
					err = l.SettleCall(ctx, c.ID, perdure.CallResult{InputTokens: each / 2, OutputTokens: each / 2})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if granted.Load() != limit/each || refused.Load() != callers-limit/each {
			t.Errorf("%d calls granted and %d refused, want %d and %d", granted.Load(), refused.Load(), limit/each,
				callers-limit/each)
		}
		p, err := s.Progress(ctx, r.tree.ID)
		if err != nil || p.Usage.InputTokens+p.Usage.OutputTokens > limit {
			t.Errorf("usage %+v, %v", p.Usage, err)
		}
		sound(t, s)
	})
}

// At 80 % of a limit there is one warning, at the first refusal one event.
func TestBudgetEvents(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Calls: 10}})
		for i := range 10 {
			if got, want := countEvents(t, s, perdure.EventBudgetWarning), i/8; got != min(want, 1) {
				t.Errorf("%d warnings after %d of 10 calls", got, i)
			}
			if err := r.root.SettleCall(ctx, begin(t, r.root, i, "h").ID, perdure.CallResult{}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			_, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: 10 + i, Model: "m", RequestHash: "h"})
			wantCode(t, "call over the limit", err, perdure.CodeBudgetExceeded)
			if perdure.HintOf(err) == "" {
				t.Error("no hint")
			}
		}
		if n := countEvents(t, s, perdure.EventBudgetExceeded); n != 1 {
			t.Errorf("%d events of the limit, want 1", n)
		}
		for _, e := range allEvents(t, s) {
			var data map[string]any
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Errorf("data of event %d (%s): %v", e.Seq, e.Kind, err)
			}
		}
		sound(t, s)
	})
}

// A reservation is replaced by what was used when the call is settled, and
// counts in full when the call is never heard of again.
func TestReservations(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: 100, CostMicros: 1000}})
		ask := func(l *perdure.Lease, position int, tokens, cost int64) (perdure.Call, error) {
			c, _, err := l.BeginCall(ctx, perdure.CallSpec{Position: position, Model: "m", RequestHash: "h",
				ReserveTokens: tokens, ReserveCostMicros: cost})
			return c, err
		}
		first, err := ask(r.root, 0, 100, 10)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ask(r.root, 1, 1, 0)
		wantCode(t, "more than is left beside a reservation", err, perdure.CodeBudgetExceeded)
		cost := int64(7)
		if err := r.root.SettleCall(ctx, first.ID,
			perdure.CallResult{InputTokens: 20, OutputTokens: 10, CostMicros: &cost}); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(r.root, 1, 70, 993); err != nil {
			t.Errorf("the rest of the reservation was not given back: %v", err)
		}
		if err := r.ss.Die(ctx); err != nil {
			t.Fatal(err)
		}
		l := claimOne(t, openSession(t, s))
		_, err = ask(l, 1, 1, 0) // the lost call is found here, and counted
		wantCode(t, "more than is left beside an uncertain call", err, perdure.CodeBudgetExceeded)
		p, err := s.Progress(ctx, r.tree.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := perdure.Usage{Calls: 2, InputTokens: 90, OutputTokens: 10, CostUSD: 0.001, UncertainCalls: 1}
		if p.Usage != want {
			t.Errorf("usage %+v, want %+v", p.Usage, want)
		}
		sound(t, s)
	})
}

// A failed call is paid for what it reports; a task that ends with open calls
// counts them.
func TestFailedAndAbandonedCalls(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		c := begin(t, r.root, 0, "h")
		err := r.root.SettleCall(ctx, c.ID, perdure.CallResult{Err: &perdure.TaskError{Kind: "model", Message: "no"},
			InputTokens: 4})
		if err != nil {
			t.Fatal(err)
		}
		c, replayed, err := r.root.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h", ReserveTokens: 11})
		if err != nil || replayed {
			t.Fatalf("after a failed call: replayed %v, %v", replayed, err)
		}
		complete(t, r.root, "without it")
		calls, err := s.Calls(ctx, r.tree.Root)
		if err != nil || len(calls) != 2 || calls[0].State != perdure.CallFailed || calls[0].Error == nil ||
			calls[1].State != perdure.CallUncertain || calls[1].ID != c.ID {
			t.Errorf("calls %+v, %v", calls, err)
		}
		p, err := s.Progress(ctx, r.tree.ID)
		if err != nil || p.Usage.InputTokens != 15 || p.Usage.Calls != 2 || p.Usage.UncertainCalls != 1 {
			t.Errorf("usage %+v, %v", p.Usage, err)
		}
		sound(t, s)
	})
}

// The limit of wall time counts from the creation, and may be short.
func TestWallTime(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{WallTime: time.Millisecond}})
		ctx := t.Context()
		for {
			c, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h"})
			if errors.Is(err, perdure.ErrBudgetExceeded) {
				break
			}
			if err == nil {
				err = r.root.SettleCall(ctx, c.ID, perdure.CallResult{Err: &perdure.TaskError{Kind: "again"}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		far := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{WallTime: time.Hour}})
		begin(t, far.root, 0, "h")
	})
}

// The soft limit of nodes warns once and refuses nothing.
func TestSoftNodes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree := createTree(t, s, perdure.TreeSpec{Limits: perdure.Limits{SoftNodes: 3}})
		for i, want := range []int{0, 0, 1, 1} {
			submit(t, s, tree.Root, 1)
			if got := countEvents(t, s, perdure.EventBudgetWarning); got != want {
				t.Errorf("%d warnings with %d nodes, want %d", got, i+2, want)
			}
		}
	})
}
