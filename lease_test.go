package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// leaseMethods are all methods of a lease that change something.
func leaseMethods(call perdure.CallID) map[string]func(context.Context, *perdure.Lease) error {
	return map[string]func(context.Context, *perdure.Lease) error{
		"complete": func(ctx context.Context, l *perdure.Lease) error {
			return l.Complete(ctx, perdure.Result{Text: "stale", Partial: true})
		},
		"fail": func(ctx context.Context, l *perdure.Lease) error {
			_, err := l.Fail(ctx, perdure.Failure{Kind: "stale"})
			return err
		},
		"fail with retry": func(ctx context.Context, l *perdure.Lease) error {
			_, err := l.Fail(ctx, perdure.Failure{Kind: "stale", Retry: true})
			return err
		},
		"release": func(ctx context.Context, l *perdure.Lease) error { return l.Release(ctx) },
		"wait":    func(ctx context.Context, l *perdure.Lease) error { return l.Wait(ctx) },
		"spawn": func(ctx context.Context, l *perdure.Lease) error {
			_, err := l.Spawn(ctx, make([]perdure.TaskSpec, 3))
			return err
		},
		"spawn leased": func(ctx context.Context, l *perdure.Lease) error {
			_, err := l.SpawnLeased(ctx, perdure.TaskSpec{Prompt: "stale"})
			return err
		},
		"begin call": func(ctx context.Context, l *perdure.Lease) error {
			_, _, err := l.BeginCall(ctx, perdure.CallSpec{Position: 7, Model: "m", RequestHash: "stale", ReserveTokens: 5})
			return err
		},
		"settle call": func(ctx context.Context, l *perdure.Lease) error {
			return l.SettleCall(ctx, call, perdure.CallResult{Response: "stale", InputTokens: 5})
		},
		"append output": func(ctx context.Context, l *perdure.Lease) error { return l.AppendOutput(ctx, "stale") },
		"note": func(ctx context.Context, l *perdure.Lease) error {
			return l.AppendEvent(ctx, perdure.EventTaskProgress, map[string]int{"stale": 1})
		},
	}
}

// A lease that was lost, in whatever way, is refused everything, and what it
// tried changes nothing.
func TestFencing(t *testing.T) {
	t.Parallel()
	lose := map[string]func(t *testing.T, s *perdure.Store, r rooted) *perdure.Lease{
		"taken over": func(t *testing.T, s *perdure.Store, r rooted) *perdure.Lease {
			if err := r.ss.Die(t.Context()); err != nil {
				t.Fatal(err)
			}
			return claimOf(t, openSession(t, s), r.tree.ID)
		},
		"released and claimed again": func(t *testing.T, _ *perdure.Store, r rooted) *perdure.Lease {
			if err := r.root.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			return claimOf(t, r.ss, r.tree.ID)
		},
		"failed and claimed again": func(t *testing.T, _ *perdure.Store, r rooted) *perdure.Lease {
			fail(t, r.root, perdure.Failure{Retry: true})
			return claimOf(t, r.ss, r.tree.ID)
		},
		"cancelled": func(t *testing.T, s *perdure.Store, r rooted) *perdure.Lease {
			if _, err := s.CancelTree(t.Context(), r.tree.ID, "stop"); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"completed": func(t *testing.T, _ *perdure.Store, r rooted) *perdure.Lease {
			complete(t, r.root, "first")
			return nil
		},
		"waiting": func(t *testing.T, s *perdure.Store, r rooted) *perdure.Lease {
			submit(t, s, r.tree.Root, 1)
			if err := r.root.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"removed": func(t *testing.T, s *perdure.Store, r rooted) *perdure.Lease {
			complete(t, r.root, "")
			if _, err := s.Prune(t.Context(), perdure.PruneRequest{Policy: perdure.RetentionPolicy{Completed: 1}}); err != nil {
				t.Fatal(err)
			}
			return nil
		},
	}
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for how, lost := range lose {
			r := leased(t, s, perdure.TreeSpec{})
			open := begin(t, r.root, 0, "h")
			holder := lost(t, s, r)
			before := dump(t, s)
			for name, method := range leaseMethods(open.ID) {
				wantCode(t, how+": "+name, method(t.Context(), r.root), perdure.CodeLeaseLost)
				if diff := cmp.Diff(before, dump(t, s)); diff != "" {
					t.Fatalf("%s: %s changed:\n%s", how, name, diff)
				}
			}
			if holder == nil {
				continue
			}
			if holder.Fence() <= r.root.Fence() {
				t.Errorf("%s: fence %d after %d", how, holder.Fence(), r.root.Fence())
			}
			complete(t, holder, "mine")
			if got := readTask(t, s, r.tree.Root).Result; got != "mine" {
				t.Errorf("%s: the result is %q", how, got)
			}
			sound(t, s)
		}
	})
}

// A task of a dead session may be taken over at once; not while it lives.
func TestTakeover(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		ctx := t.Context()
		s, other := testdb.Open(t, cfg), testdb.Open(t, cfg)
		for _, end := range []func(*perdure.Session) error{
			func(ss *perdure.Session) error { return ss.Die(ctx) },
			func(ss *perdure.Session) error { return ss.Close(ctx) },
		} {
			r := leased(t, s, perdure.TreeSpec{})
			heir := openSession(t, other)
			if got := claim(t, heir, 10); len(got) != 0 {
				t.Fatal("a lease of a living session was taken over")
			}
			if got := readTask(t, other, r.tree.Root); got.Lease == nil || got.Lease.Lost || got.Lease.Session != r.ss.ID() {
				t.Errorf("lease %+v", got.Lease)
			}
			if err := end(r.ss); err != nil {
				t.Fatal(err)
			}
			if got := readTask(t, other, r.tree.Root); got.Lease == nil || !got.Lease.Lost {
				t.Errorf("lease %+v of a dead session", got.Lease)
			}
			p, err := other.Progress(ctx, r.tree.ID)
			if err != nil || p.Running != 0 || p.Queued != 1 {
				t.Errorf("progress %+v, %v", p, err)
			}
			l := claimOne(t, heir)
			if l.Task.ID != r.tree.Root || l.Task.Attempts != 1 {
				t.Errorf("took over %s, attempt %d", l.Task.ID, l.Task.Attempts)
			}
			if lost, err := r.ss.Lost(ctx, []*perdure.Lease{r.root}); err != nil || len(lost) != 1 {
				t.Errorf("lost %v, %v", lost, err)
			}
			complete(t, l, "")
			if err := heir.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := countEvents(t, s, perdure.EventTaskLeaseLost); got != 2 {
			t.Errorf("%d lease_lost events, want 2", got)
		}
		sound(t, s)
	})
}

// Leases and sessions do not depend on the clock: when it was set back, so that all times in the
// store are in the future, a task of a living session is not taken over, that of a dead one is
// at once, and the late result of the dead one is refused.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, other := testdb.Open(t, cfg), testdb.Open(t, cfg)
		r := leased(t, s, perdure.TreeSpec{})
		heir := openSession(t, other)
		const year = "31536000000000"
		change(t, s, `UPDATE session SET started_at = started_at + `+year+`, seen_at = seen_at + `+year)
		if got := claim(t, heir, 10); len(got) != 0 {
			t.Fatal("a lease of a living session was taken over")
		}
		if err := r.ss.Die(t.Context()); err != nil {
			t.Fatal(err)
		}
		l := claimOne(t, heir)
		if l.Task.ID != r.tree.Root || l.Fence() <= r.root.Fence() {
			t.Errorf("took over %s with fence %d after %d", l.Task.ID, l.Fence(), r.root.Fence())
		}
		wantCode(t, "a late result", r.root.Complete(t.Context(), perdure.Result{Text: "late"}), perdure.CodeLeaseLost)
		complete(t, l, "done")
		if got := readTask(t, other, r.tree.Root).Result; got != "done" {
			t.Errorf("the result is %q", got)
		}
		sound(t, s)
	})
}

// Those who look at once whether a session lives do not see each other.
func TestLookingTogether(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		r := leased(t, s, perdure.TreeSpec{})
		if err := r.ss.Die(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					p, err := s.Progress(t.Context(), r.tree.ID)
					if err != nil || p.Running != 0 {
						t.Errorf("progress %+v, %v", p, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// Concurrent claims take different tasks, and together all tasks.
func TestClaimsAreUnique(t *testing.T) {
	t.Parallel()
	const tasks, claimers, sessions = 600, 64, 8
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		stores := []*perdure.Store{testdb.Open(t, cfg), testdb.Open(t, cfg)}
		tree := createTree(t, stores[0], perdure.TreeSpec{})
		submit(t, stores[0], tree.Root, tasks)
		var open []*perdure.Session
		for i := range sessions {
			open = append(open, openSession(t, stores[i%2]))
		}
		var mu sync.Mutex
		claims := make(map[perdure.TaskID]int)
		var wg sync.WaitGroup
		for i := range claimers {
			wg.Go(func() {
				for {
					leases, err := open[i%sessions].Claim(t.Context(), perdure.ClaimRequest{Max: 1 + i%5})
					if err != nil {
						t.Error(err)
						return
					}
					if len(leases) == 0 {
						return
					}
					mu.Lock()
					for _, l := range leases {
						claims[l.Task.ID]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(claims) != tasks+1 {
			t.Errorf("%d tasks were claimed, want %d", len(claims), tasks+1)
		}
		for id, n := range claims {
			if n != 1 {
				t.Errorf("%s was claimed %d times", id, n)
			}
		}
		sound(t, stores[0])
	})
}

// Claims go by priority, then depth, then age; woken parents go before all.
func TestClaimOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		specs := []perdure.TaskSpec{{Prompt: "old"}, {Prompt: "young"}, {Prompt: "low", Priority: -1},
			{Prompt: "high", Priority: 5}, {Prompt: "parent", Priority: 9}}
		ids, err := s.Submit(ctx, r.tree.Root, specs...)
		if err != nil {
			t.Fatal(err)
		}
		parent := claimOne(t, r.ss)
		if _, err := parent.Spawn(ctx, []perdure.TaskSpec{{Prompt: "deep"}, {Prompt: "child", Priority: 10}}); err != nil {
			t.Fatal(err)
		}
		complete(t, claimOne(t, r.ss), "")
		if _, err := s.CancelTask(ctx, ids[3]+4, ""); err == nil {
			t.Fatal("cancelled a task that is not there")
		}
		var got []string
		for _, l := range claim(t, r.ss, 10) {
			got = append(got, l.Task.Prompt)
			if l.Task.Prompt == "deep" {
				complete(t, l, "")
			}
		}
		if want := []string{"high", "deep", "old", "young", "low"}; !slices.Equal(got, want) {
			t.Errorf("claimed %q, want %q", got, want)
		}
		if l := claimOne(t, r.ss); l.Task.Prompt != "parent" {
			t.Errorf("claimed %q, want the woken parent", l.Task.Prompt)
		}
	})
}

// Trees take turns.
func TestClaimTurns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		var trees []perdure.Tree
		for range 3 {
			tree := createTree(t, s, perdure.TreeSpec{})
			submit(t, s, tree.Root, 3)
			trees = append(trees, tree)
		}
		ss := openSession(t, s)
		for i := range 12 {
			if got := claimOne(t, ss).Tree.ID; got != trees[i%3].ID {
				t.Errorf("claim %d is of %s, want %s", i, got, trees[i%3].ID)
			}
		}
	})
}

// Claims may be restricted, to trees and by a function; a tree with a living
// owner is the owner's, whatever other processes have cached.
func TestClaimRestricted(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		ctx := t.Context()
		s, other := testdb.Open(t, cfg), testdb.Open(t, cfg)
		mine, theirs := openSession(t, s), openSession(t, other)
		tree := createTree(t, s, perdure.TreeSpec{Owner: mine})
		free := createTree(t, s, perdure.TreeSpec{})
		submit(t, s, free.Root, 3)
		got, err := theirs.Claim(ctx, perdure.ClaimRequest{Max: 5, Trees: []perdure.TreeID{tree.ID}})
		if err != nil || len(got) != 0 {
			t.Errorf("claimed %d tasks of another's tree, %v", len(got), err)
		}
		got, err = theirs.Claim(ctx,
			perdure.ClaimRequest{Max: 5, Allow: func(x perdure.Tree) bool { return x.ID != free.ID }})
		if err != nil || len(got) != 0 {
			t.Errorf("claimed %d tasks that are not allowed, %v", len(got), err)
		}
		if l := claimOne(t, theirs); l.Tree.ID != free.ID { // from now on it is remembered without an owner
			t.Errorf("claimed of %s", l.Tree.ID)
		}
		if _, err := s.Recover(ctx, free.ID, mine); err != nil {
			t.Fatal(err)
		}
		if got := claim(t, theirs, 5); len(got) != 0 {
			t.Error("claimed of a tree that another process had resumed")
		}
		_, err = other.Recover(ctx, tree.ID, theirs)
		wantCode(t, "resume of another's tree", err, perdure.CodeConflict)
		if err := mine.Die(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err = other.Recover(ctx, tree.ID, theirs); err != nil {
			t.Errorf("resume after the owner's death: %v", err)
		}
		if got := claim(t, theirs, 9); len(got) != 4 {
			t.Errorf("claimed %d tasks after the owner's death, want 4", len(got))
		}
		_, err = theirs.Claim(ctx, perdure.ClaimRequest{})
		wantCode(t, "claim of nothing", err, perdure.CodeInvalid)
	})
}

// A finished call is answered from the journal to an attempt that was
// interrupted, and to no other; one that was sent and not settled is uncertain.
func TestReplay(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{})
		done := begin(t, r.root, 0, "first")
		if err := r.root.SettleCall(ctx, done.ID, perdure.CallResult{Response: "answer", InputTokens: 3}); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "settle twice", r.root.SettleCall(ctx, done.ID, perdure.CallResult{}), perdure.CodeConflict)
		sent := begin(t, r.root, 1, "second")
		_, _, err := r.root.BeginCall(ctx, perdure.CallSpec{Position: 1, Model: "m", RequestHash: "second"})
		wantCode(t, "begin an open position", err, perdure.CodeConflict)
		if err := r.ss.Die(ctx); err != nil {
			t.Fatal(err)
		}
		ss := openSession(t, s)
		l := claimOne(t, ss)
		for range 2 {
			c, replayed, err := l.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "first"})
			if err != nil || !replayed || c.Response != "answer" || c.ID != done.ID {
				t.Fatalf("replayed %v %+v, %v", replayed, c, err)
			}
		}
		parallel := begin(t, l, 2, "third") // in flight while the old one is closed
		again := begin(t, l, 1, "second")
		for _, id := range []perdure.CallID{parallel.ID, again.ID} {
			if err := l.SettleCall(ctx, id, perdure.CallResult{Response: "late"}); err != nil {
				t.Errorf("settle %s: %v", id, err)
			}
		}
		calls, err := s.Calls(ctx, r.tree.Root)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range calls {
			got = append(got, fmt.Sprint(c.ID, " ", c.Position, " ", c.State))
		}
		want := []string{fmt.Sprint(done.ID, " 0 completed"), fmt.Sprint(sent.ID, " 1 uncertain"),
			fmt.Sprint(again.ID, " 1 completed"), fmt.Sprint(parallel.ID, " 2 completed")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls: -want +got\n%s", diff)
		}
		// Another request at the position is a divergence and a call; the first
		// is still known afterwards.
		diverged := begin(t, l, 0, "other")
		if err := l.SettleCall(ctx, diverged.ID, perdure.CallResult{Response: "other"}); err != nil {
			t.Fatal(err)
		}
		if _, replayed, err := l.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "first"}); err != nil || !replayed {
			t.Errorf("after a divergence: replayed %v, %v", replayed, err)
		}
		if n := countEvents(t, s, perdure.EventCallDiverged); n != 1 {
			t.Errorf("%d divergences, want 1", n)
		}
		// A retry asks again.
		fail(t, l, perdure.Failure{Retry: true})
		retry := claimOne(t, ss)
		begin(t, retry, 0, "first")
		sound(t, s)
	})
}

// After Close, writes fail and nothing hangs.
func TestClosedStore(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, err := perdure.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := leased(t, s, perdure.TreeSpec{})
		changed, ready := s.Changed(), s.Ready()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		<-changed
		<-ready
		wantCode(t, "write after close", r.root.Complete(t.Context(), perdure.Result{}), perdure.CodeUnavailable)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		again := testdb.Open(t, cfg)
		_, err = again.CreateTree(ctx, perdure.TreeSpec{Kind: "run"})
		wantCode(t, "write of a cancelled caller", err, perdure.CodeCanceled)
	})
}

// Tasks that waited for the first answer of a server are timed from their first request: the
// remaining time of a tree is estimated from them.
func TestTimeOfTasksThatWaitedForTheFirstAnswer(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		submit(t, s, r.tree.Root, 2)
		ss := openSession(t, s)
		var worked, first time.Duration
		for i, l := range claim(t, ss, 2) {
			since := time.Now()
			call := begin(t, l, 0, "a")
			if err := l.SettleCall(t.Context(), call.ID, perdure.CallResult{Response: "b"}); err != nil {
				t.Fatal(err)
			}
			complete(t, l, "c")
			worked += time.Since(since)
			if i == 0 {
				first = worked
			}
		}
		p, err := s.Progress(t.Context(), r.tree.ID)
		if err != nil {
			t.Fatal(err)
		}
		if sum := time.Duration(2 * p.MeanTaskSeconds * float64(time.Second)); sum > worked+first/2 {
			t.Errorf("the tasks took %s, and worked %s, the first one %s", sum, worked, first)
		}
	})
}
