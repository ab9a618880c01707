package rlm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
)

// mortal is a model whose process dies at one of its requests, before or after
// the answer.
type mortal struct {
	*mock.Model
	instead model.Model // answers, if set

	mu    sync.Mutex // guards the fields below
	left  int        // requests until death; negative: immortal
	after bool
	kill  context.CancelFunc
}

func (m *mortal) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	m.mu.Lock()
	m.left--
	now, after, kill := m.left == 0, m.after, m.kill
	m.mu.Unlock()
	if now && !after {
		kill()
		return nil, model.Canceled(ctx)
	}
	by := model.Model(m.Model)
	if m.instead != nil {
		by = m.instead
	}
	resp, err := by.Generate(ctx, req)
	if now {
		kill()
	}
	return resp, err
}

// die works until the model kills the process, or the tree is done. What was
// claimed is not given back.
func (b *bench) die(m *mortal, tree perdure.TreeID, at int, after bool) (done bool) {
	b.Helper()
	session, err := b.store.OpenSession(b.Context(), "doomed")
	b.ok(err)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	m.mu.Lock()
	m.left, m.after, m.kill = at, after, cancel
	m.mu.Unlock()
	handle := func(l *perdure.Lease) {
		if err := b.exec.Handle(ctx, l); err != nil && ctx.Err() == nil {
			b.Fatal(err)
		}
	}
	b.here = handle
	defer func() { b.here = nil }()
	for ctx.Err() == nil && !done {
		leases, err := session.Claim(ctx, perdure.ClaimRequest{Max: 3})
		b.ok(err)
		for _, l := range leases {
			if ctx.Err() == nil {
				handle(l)
			}
		}
		got, err := b.store.Tree(b.Context(), tree)
		b.ok(err)
		done = got.State.Terminal()
	}
	b.ok(session.Close(b.Context()))
	return done
}

// TestDeathRepeatsNoFinishedCall kills the process at each request of a run, one
// after another: the answer is that of a run without deaths, and no request
// whose answer arrived is made again.
func TestDeathRepeatsNoFinishedCall(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"parallel", "sequential"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the answer %v", strategy, after), func(t *testing.T) {
				t.Parallel()
				m := &mortal{Model: echo(t)}
				b := newBench(t, models{"mock:m": m})
				id := b.put(file{"text.txt", numbered(120)})
				config := M{"model": "mock:m", "chunk_tokens": 250, "max_children": 3, "strategy": strategy}
				whole := b.launch("Read.", id, config)
				_, want := b.finish(whole.ID, 2)
				parts := len(b.leaves(whole.ID))
				m.Model = echo(t)

				tree := b.launch("Read.", id, config)
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
				if deaths < parts/2 {
					t.Errorf("only %d deaths for %d parts", deaths, parts)
				}
				if got := m.Ledger().Repeated(); len(got) != 0 {
					t.Errorf("asked again: %+v", got)
				}
				if n := m.Ledger().Totals().Finished; n != parts {
					t.Errorf("%d answers for %d parts", n, parts)
				}
				u := b.usage(tree.ID)
				if after && u.UncertainCalls != 0 || !after && int(u.UncertainCalls) != deaths {
					t.Errorf("%d uncertain calls after %d deaths", u.UncertainCalls, deaths)
				}
			})
		}
	}
}

// broken is a model that is never available.
type broken struct{}

func (broken) Generate(context.Context, *model.Request) (*model.Response, error) {
	return nil, &model.Error{Kind: model.KindUnavailable, Msg: "down"}
}

// TestDeathRepeatsNoAnswerOfAChain is the same where each answer is that of a
// fallback model: it is found again whichever model gave it, and
// the journal says who did.
func TestDeathRepeatsNoAnswerOfAChain(t *testing.T) {
	t.Parallel()
	m := &mortal{Model: echo(t)}
	down, err := model.NewGuarded(model.GuardedConfig{Model: broken{}, MaxTries: 2, InitialBackoff: 1, MaxBackoff: 1})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := model.NewChain(model.Link{Name: "mock:first", Model: down},
		model.Link{Name: "mock:second", Model: m})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, models{"mock:first,mock:second": chain})
	id := b.put(file{"text.txt", numbered(120)})
	tree := b.launch("Read.", id, M{"model": "mock:first,mock:second", "chunk_tokens": 250, "max_children": 3})
	deaths := 0
	for !b.die(m, tree.ID, 2, true) {
		deaths++
		b.close()
		b.open()
	}
	if got := m.Ledger().Repeated(); len(got) != 0 || deaths < 3 {
		t.Errorf("after %d deaths asked again: %+v", deaths, got)
	}
	for _, leaf := range b.leaves(tree.ID) {
		calls, err := b.store.Calls(t.Context(), leaf.ID)
		b.ok(err)
		var asked []string
		for _, c := range calls {
			asked = append(asked, c.Model+" "+string(c.State))
		}
		want := []string{"mock:first failed", "mock:first failed", "mock:second completed"}
		if !slices.Equal(asked, want) || !strings.Contains(string(calls[2].Data), "instead of mock:first") {
			t.Errorf("calls of %s: %q, %+v", leaf.ID, asked, calls)
		}
	}
}

// TestStopAndGoOn stops workers in the middle: the tree goes on with the same
// attempts.
func TestStopAndGoOn(t *testing.T) {
	t.Parallel()
	m := &slow{Model: echo(t), quick: make(chan struct{}, 1000)}
	b := newBench(t, models{"mock:m": m})
	id := b.put(file{"text.txt", numbered(300)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 250, "max_children": 4})
	for range 3 {
		m.quick <- struct{}{}
		stop := b.work(3)
		for len(m.quick) > 0 {
			<-b.store.Changed()
		}
		stop()
		b.close()
		b.open()
	}
	for range 100 {
		m.quick <- struct{}{}
	}
	got, root := b.finish(tree.ID, 3)
	if got.State != perdure.Completed || got.Partial {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	for _, task := range b.tasks(tree.ID) {
		if task.Attempts != 1 {
			t.Errorf("task %q took %d attempts", task.ID, task.Attempts)
		}
	}
}

func TestStrictRefusesAnotherRequest(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "default"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := &mortal{Model: echo(t)}
			b := newBench(t, models{"mock:m": m})
			tree := b.launch("Read.", "", M{"model": "mock:m", "mode": mode, "seed": 1})
			session, err := b.store.OpenSession(t.Context(), "doomed")
			b.ok(err)
			leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
			b.ok(err)
			call, _, err := leases[0].BeginCall(t.Context(), perdure.CallSpec{Model: "mock:m", RequestHash: "another"})
			b.ok(err)
			b.ok(leases[0].SettleCall(t.Context(), call.ID, perdure.CallResult{Response: "recorded"}))
			b.ok(session.Close(t.Context()))
			got, root := b.finish(tree.ID, 1)
			if mode == "strict" {
				if got.State != perdure.Failed || root.Error.Kind != "diverged" || m.Ledger().Totals().Started != 0 {
					t.Errorf("tree is %s with %+v", got.State, root.Error)
				}
				return
			}
			if got.State != perdure.Completed || root.Result == "recorded" {
				t.Errorf("tree is %s with %q", got.State, root.Result)
			}
		})
	}
}
