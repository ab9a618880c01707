package perdure_test

import (
	"context"
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
		_, err = ask(r.root, 1, 101, 0)
		wantCode(t, "more than the limit", err, perdure.CodeBudgetExceeded)
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
		want := perdure.Usage{Calls: 2, InputTokens: 20, OutputTokens: 10, CostUSD: 7e-6, UncertainCalls: 1,
			UncertainTokens: 70, UncertainCostUSD: 993e-6}
		if p.Usage != want {
			t.Errorf("usage %+v, want %+v", p.Usage, want)
		}
		sound(t, s)
	})
}

// A call that fits only without the reservations of others waits for them.
func TestReservationsWait(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: 100}})
		spec := func(position int) perdure.CallSpec {
			return perdure.CallSpec{Position: position, Model: "m", RequestHash: "h", ReserveTokens: 60}
		}
		first, _, err := r.root.BeginCall(ctx, spec(0))
		if err != nil {
			t.Fatal(err)
		}
		limited, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		defer stop()
		_, _, err = r.root.BeginCall(limited, spec(1))
		wantCode(t, "wait of a caller that gave up", err, perdure.CodeCanceled)
		began := make(chan error)
		go func() {
			_, _, err := r.root.BeginCall(ctx, spec(1))
			began <- err
		}()
		if n := countEvents(t, s, perdure.EventBudgetExceeded); n != 0 {
			t.Errorf("%d events say that the budget is used up", n)
		}
		if err := r.root.SettleCall(ctx, first.ID, perdure.CallResult{InputTokens: 40}); err != nil {
			t.Fatal(err)
		}
		if err := <-began; err != nil {
			t.Errorf("the call that waited: %v", err)
		}
		sound(t, s)
	})
}

// Until the first answer of a tree is known, calls in flight leave room for a server that
// ignores the limit of answers: calls that share a small budget begin one after the other.
func TestReservationsBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: 600}})
		ask := func(ctx context.Context, position int) (perdure.Call, error) {
			c, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: position, Model: "m", RequestHash: "h",
				ReserveTokens: 10})
			return c, err
		}
		first, err := ask(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		limited, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		defer stop()
		_, err = ask(limited, 1)
		wantCode(t, "a second call before the first answer", err, perdure.CodeCanceled)
		if err := r.root.SettleCall(ctx, first.ID, perdure.CallResult{OutputTokens: 1}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := ask(ctx, 2+i); err != nil {
				t.Errorf("call %d after the first answer: %v", i, err)
			}
		}
		sound(t, s)
	})
}

// Once a call took more than twice what was reserved, a server is trusted less: calls in
// flight leave room for such calls, so that the budget is exceeded by one of them at most.
func TestReservationsAfterAnOverrun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		took  perdure.CallResult
		waits bool
	}{
		"as much as was trusted": {perdure.CallResult{OutputTokens: 20, CostMicros: new(int64(20))}, false},
		"as much twice":          {perdure.CallResult{OutputTokens: 40, CostMicros: new(int64(40)), Tries: 2}, false},
		"more tokens":            {perdure.CallResult{OutputTokens: 21, CostMicros: new(int64(1))}, true},
		"more money":             {perdure.CallResult{OutputTokens: 1, CostMicros: new(int64(21))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, s *perdure.Store) {
				ctx := t.Context()
				r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: 1000, CostMicros: 1000}})
				ask := func(ctx context.Context, position int) (perdure.Call, error) {
					c, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: position, Model: "m", RequestHash: "h",
						ReserveTokens: 10, ReserveCostMicros: 10})
					return c, err
				}
				settle := func(c perdure.Call, took perdure.CallResult) {
					t.Helper()
					if err := r.root.SettleCall(ctx, c.ID, took); err != nil {
						t.Fatal(err)
					}
				}
				var open []perdure.Call
				for i := range 4 {
					call, err := ask(ctx, i)
					if err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						settle(call, perdure.CallResult{OutputTokens: 1}) // the first answer
						continue
					}
					open = append(open, call)
				}
				settle(open[0], c.took)
				limited, stop := ctx, context.CancelFunc(func() {})
				if c.waits {
					limited, stop = context.WithTimeout(ctx, 50*time.Millisecond)
				}
				defer stop()
				_, err := ask(limited, 4)
				if waited := perdure.CodeOf(err) == perdure.CodeCanceled; waited != c.waits || err != nil && !waited {
					t.Errorf("beside two calls in flight: %v, want a wait: %v", err, c.waits)
				}
				settle(open[1], perdure.CallResult{OutputTokens: 1})
				settle(open[2], perdure.CallResult{OutputTokens: 1})
				if _, err := ask(ctx, 5); err != nil {
					t.Errorf("with nothing in flight: %v", err)
				}
				sound(t, s)
			})
		})
	}
}

// A call does not wait for reservations of dead processes and of released tasks, which
// no process can settle.
func TestReservationsOfTheDead(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{Tokens: 100}})
		submit(t, s, r.tree.Root, 3)
		leases := claim(t, r.ss, 3)
		answered, _, err := leases[2].BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h"})
		if err == nil {
			err = leases[2].SettleCall(ctx, answered.ID, perdure.CallResult{OutputTokens: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases[:2] {
			if _, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h", ReserveTokens: 20}); err != nil {
				t.Fatal(err)
			}
		}
		if err := leases[0].Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := r.ss.Die(ctx); err != nil {
			t.Fatal(err)
		}
		l := claimOne(t, openSession(t, s))
		ask := func(position int, tokens int64) error {
			_, _, err := l.BeginCall(ctx, perdure.CallSpec{Position: position, Model: "m", RequestHash: "h",
				ReserveTokens: tokens})
			return err
		}
		if err := ask(1, 20); err != nil {
			t.Fatal(err)
		}
		err = ask(2, 70)
		wantCode(t, "a call beside uncertain ones", err, perdure.CodeBudgetExceeded)
		p, err := s.Progress(ctx, r.tree.ID)
		if err != nil || p.Usage.UncertainCalls != 2 {
			t.Errorf("usage %+v, %v", p.Usage, err)
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
		if err != nil || p.Usage.InputTokens != 4 || p.Usage.UncertainTokens != 11 || p.Usage.Calls != 2 ||
			p.Usage.UncertainCalls != 1 {
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
