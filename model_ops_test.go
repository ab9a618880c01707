package perdure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// op is one operation: what the store does with it and what the model says,
// each as text.
type op struct {
	name string
	run  func(ctx context.Context) string
	want func() string
}

// builder makes an operation with arguments that are worth trying, or nil when
// there is nothing to try it on.
type builder func(w *world) *op

// groupable operations are one request to the writer each.
func groupable() []builder {
	return []builder{
		(*world).submit, (*world).spawn, (*world).spawnLeased, (*world).spawnLeased, (*world).complete,
		(*world).complete, (*world).complete,
		(*world).fail, (*world).fail, (*world).release, (*world).release, (*world).wait, (*world).wait, (*world).cancelTask,
		(*world).retry, (*world).begin, (*world).begin, (*world).begin, (*world).begin, (*world).settle, (*world).settle,
		(*world).settle, (*world).stream, (*world).note, (*world).claimTree, (*world).claimTree, (*world).claimTree,
	}
}

// single operations take several steps.
func single() []builder {
	return []builder{
		(*world).createTree, (*world).claim, (*world).claim, (*world).claim, (*world).claim, (*world).claimKnown,
		(*world).claimKnown,
		(*world).cancelTree, (*world).recover, (*world).reopenTree, (*world).reopenTree, (*world).prune, (*world).endSession,
		(*world).openSession, (*world).openSession, (*world).reopen,
	}
}

func text(err error, format string, args ...any) string {
	if err != nil {
		code := perdure.CodeOf(err)
		if code == perdure.CodeInternal || code == perdure.CodeUnavailable || code == perdure.CodeDamaged {
			return refused(code) + ": " + err.Error()
		}
		return refused(code)
	}
	return fmt.Sprintf(format, args...)
}

func (w *world) spec() perdure.TaskSpec {
	s := perdure.TaskSpec{Prompt: w.words("prompt"), Priority: w.pick(3) - 1, MaxAttempts: w.pick(4)}
	s.Strategy = []perdure.Strategy{"", perdure.Parallel, perdure.Sequential}[w.pick(3)]
	s.Policy = []perdure.Policy{"", perdure.PolicyFail, perdure.PolicyPartial}[w.pick(3)]
	return s
}

func (w *world) specs() []perdure.TaskSpec {
	specs := make([]perdure.TaskSpec, 1+w.pick(3))
	for i := range specs {
		specs[i] = w.spec()
	}
	return specs
}

// words makes a text whose length is now and then beyond a limit of the store.
func (w *world) words(about string) string {
	n := w.pick(1000)
	switch {
	case n == 999 && !w.grouped:
		return about + strings.Repeat("x", perdure.MaxPayloadBytes)
	case n > 950:
		return fmt.Sprint(about, n, strings.Repeat("y", perdure.MaxInlineBytes))
	case n > 900:
		return fmt.Sprint("\x01payload:", about, n)
	}
	return fmt.Sprint(about, n)
}

func (w *world) limits() perdure.Limits {
	if w.pick(2) == 0 {
		return perdure.Limits{}
	}
	return perdure.Limits{MaxNodes: int64(w.pick(12)), Calls: int64(w.pick(6)), Tokens: int64(w.pick(200)),
		CostMicros: int64(w.pick(200))}
}

func (w *world) createTree() *op {
	if len(w.m.trees) > 5 {
		return nil
	}
	spec := perdure.TreeSpec{Kind: "run", Limits: w.limits(), Root: w.spec()}
	if w.pick(4) == 0 {
		spec.IdempotencyKey = fmt.Sprint("key", w.pick(4))
	}
	var owner *session
	if w.pick(3) == 0 {
		if owner = w.session(); owner != nil {
			spec.Owner = owner.ss
		}
	}
	var tree perdure.Tree
	return &op{
		name: "create tree",
		run: func(ctx context.Context) string {
			var err error
			tree, err = w.store().CreateTree(ctx, spec)
			return text(err, "tree %s", tree.ID)
		},
		want: func() string {
			if owner == nil {
				return w.m.createTree(tree.ID, &spec, nil)
			}
			return w.m.createTree(tree.ID, &spec, owner.m)
		},
	}
}

func (w *world) submit() *op {
	id, ok := w.task()
	if !ok {
		return nil
	}
	specs := w.specs()
	return &op{
		name: fmt.Sprintf("submit %d children to %s", len(specs), id),
		run: func(ctx context.Context) string {
			ids, err := w.store().Submit(ctx, id, specs...)
			return text(err, "made %s", idList(ids))
		},
		want: func() string { return w.m.submit(id, specs) },
	}
}

func (w *world) claim() *op {
	s := w.session()
	if s == nil {
		return nil
	}
	limit := 1 + w.pick(4)
	var only []perdure.TreeID
	if len(w.m.trees) > 0 && w.pick(4) == 0 {
		only = []perdure.TreeID{w.m.trees[w.pick(len(w.m.trees))].id}
	}
	var got []*perdure.Lease
	return &op{
		name: fmt.Sprintf("%s claims %d of %v", s.m.id, limit, only),
		run: func(ctx context.Context) string {
			var err error
			perdure.LookAgain(w.store())
			got, err = s.ss.Claim(ctx, perdure.ClaimRequest{Max: limit, Trees: only})
			return text(err, "claimed%s", claimed(got))
		},
		want: func() string {
			leases := w.m.claim(s.m, limit, only)
			var sb strings.Builder
			for i, l := range leases {
				t := l.task
				fmt.Fprintf(&sb, " %s/%d/%d/%d/%d", t.id, l.fence, l.attempt, t.pending(), t.depth)
				if i < len(got) {
					w.leases = append(w.leases, &lease{Lease: got[i], m: l, s: s})
				}
			}
			return "claimed" + sb.String()
		},
	}
}

func claimed(leases []*perdure.Lease) string {
	var sb strings.Builder
	for _, l := range leases {
		fmt.Fprintf(&sb, " %s/%d/%d/%d/%d", l.Task.ID, l.Fence(), l.Task.Attempts, l.Task.Pending, l.Task.Depth)
	}
	return sb.String()
}

// claimTree claims between other operations. It may miss tasks that
// became claimable in the same transaction; what it takes has to be claimable.
func (w *world) claimTree() *op {
	s := w.session()
	if s == nil || len(w.m.trees) == 0 {
		return nil
	}
	tree, limit := w.m.trees[w.pick(len(w.m.trees))], 1+w.pick(4)
	if !tree.mayRun(s.m) {
		return nil
	}
	var got []*perdure.Lease
	return &op{
		name: fmt.Sprintf("%s claims %d of %s in a group", s.m.id, limit, tree.id),
		run: func(ctx context.Context) string {
			var err error
			got, err = s.ss.ClaimTree(ctx, tree.id, limit)
			return text(err, "claimed %d", len(got))
		},
		want: func() string { return w.mayTake(s, got, tree, limit) },
	}
}

// claimKnown claims without a look at what other processes did: it may miss
// tasks, but has to find those it takes claimable.
func (w *world) claimKnown() *op {
	s := w.session()
	if s == nil {
		return nil
	}
	limit := 1 + w.pick(4)
	var got []*perdure.Lease
	return &op{
		name: fmt.Sprintf("%s claims %d of the known", s.m.id, limit),
		run: func(ctx context.Context) string {
			var err error
			got, err = s.ss.ClaimKnown(ctx, limit)
			return text(err, "claimed %d", len(got))
		},
		want: func() string {
			if len(got) > 0 {
				s.m.turn = w.m.tasks[got[len(got)-1].Task.ID].tree.number
			}
			return w.mayTake(s, got, nil, limit)
		},
	}
}

// mayTake takes what was claimed, which has to be claimable.
func (w *world) mayTake(s *session, got []*perdure.Lease, tree *mTree, limit int) string {
	for _, l := range got {
		t := w.m.tasks[l.Task.ID]
		if t == nil || tree != nil && t.tree != tree || !t.claimable() || !t.tree.mayRun(s.m) {
			return fmt.Sprintf("claimed but %s, it was not claimable", l.Task.ID)
		}
		w.leases = append(w.leases, &lease{Lease: l, m: w.m.take(t, s.m), s: s})
	}
	return fmt.Sprintf("claimed %d", min(len(got), limit))
}

func (w *world) complete() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	r := perdure.Result{Text: w.words("result"), Partial: w.pick(3) == 0, KeepCalls: w.pick(2) == 0}
	if w.pick(3) == 0 {
		r.Data = json.RawMessage(fmt.Sprintf(`{"n":%d}`, w.pick(100)))
	}
	return l.op("complete", func(ctx context.Context) string { return text(l.Complete(ctx, r), "done") },
		func() string { return w.m.complete(l.m, r) })
}

func (w *world) fail() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	f := perdure.Failure{Kind: "model", Message: w.words("message")[:4], Retry: w.pick(2) == 0,
		KeepCalls: w.pick(2) == 0}
	if w.pick(8) == 0 {
		f.After = time.Hour
	}
	return l.op(fmt.Sprintf("fail retry=%v after=%v", f.Retry, f.After), func(ctx context.Context) string {
		retried, err := l.Fail(ctx, f)
		return text(err, "retried %v", retried)
	}, func() string { return w.m.fail(l.m, f) })
}

func (w *world) release() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	return l.op("release", func(ctx context.Context) string { return text(l.Release(ctx), "done") },
		func() string { return w.m.suspend(l.m, false) })
}

func (w *world) wait() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	return l.op("wait", func(ctx context.Context) string { return text(l.Wait(ctx), "done") },
		func() string { return w.m.suspend(l.m, true) })
}

func (w *world) spawn() *op {
	l := w.lease()
	if l == nil || l.m.task.depth > 3 {
		return nil
	}
	specs := w.specs()
	return l.op(fmt.Sprintf("spawn %d", len(specs)), func(ctx context.Context) string {
		ids, err := l.Spawn(ctx, specs)
		return text(err, "made %s", idList(ids))
	}, func() string { return w.m.spawn(l.m, specs) })
}

func (w *world) spawnLeased() *op {
	l := w.lease()
	if l == nil || l.m.task.depth > 3 {
		return nil
	}
	spec := w.spec()
	var child *perdure.Lease
	return l.op("spawn a leased child", func(ctx context.Context) string {
		var err error
		if child, err = l.SpawnLeased(ctx, spec); err != nil {
			return text(err, "")
		}
		return "claimed" + claimed([]*perdure.Lease{child})
	}, func() string {
		made, why := w.m.spawnLeased(l.m, spec)
		if made == nil {
			return why
		}
		if child != nil {
			w.leases = append(w.leases, &lease{Lease: child, m: made, s: l.s})
		}
		return fmt.Sprintf("claimed %s/1/1/0/%d", made.task.id, made.task.depth)
	})
}

func (w *world) begin() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	spec := perdure.CallSpec{Position: w.pick(2), Model: "m", RequestHash: fmt.Sprint("h", w.pick(8)/7),
		ReserveTokens: int64(w.pick(30)), ReserveCostMicros: int64(w.pick(30))}
	return l.op(fmt.Sprintf("begin call %d %s", spec.Position, spec.RequestHash), func(ctx context.Context) string {
		c, replayed, reserved, err := perdure.TryCall(ctx, l.Lease, spec)
		if reserved {
			return waits
		}
		if replayed {
			return text(err, "replayed %s %s", c.ID, c.Response)
		}
		return text(err, "began %s", c.ID)
	}, func() string { return w.m.begin(l.m, spec) })
}

func (w *world) settle() *op {
	l := w.calling()
	if l == nil || w.pick(8) == 0 {
		l = w.lease()
	}
	if l == nil || len(l.m.task.calls) == 0 {
		return nil
	}
	calls := l.m.task.calls
	id := perdure.CallID(calls[len(calls)-1-w.pick(min(2, len(calls)))].id)
	r := perdure.CallResult{Response: w.words("answer"), Tries: 1 + w.pick(2), InputTokens: int64(w.pick(30)),
		OutputTokens: int64(w.pick(30)), CachedTokens: int64(w.pick(3))}
	if w.pick(3) > 0 {
		cost := int64(w.pick(30))
		r.CostMicros = &cost
	}
	if w.pick(5) == 0 {
		r.Err = &perdure.TaskError{Kind: "model", Message: "no"}
	}
	return l.op(fmt.Sprintf("settle %s", id),
		func(ctx context.Context) string { return text(l.SettleCall(ctx, id, r), "done") },
		func() string { return w.m.settle(l.m, id, r) })
}

func (w *world) stream() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	part := w.words("part")[:4]
	return l.op("stream", func(ctx context.Context) string { return text(l.AppendOutput(ctx, part), "done") },
		func() string { return w.m.stream(l.m, part) })
}

func (w *world) note() *op {
	l := w.lease()
	if l == nil {
		return nil
	}
	return l.op("note", func(ctx context.Context) string {
		return text(l.AppendEvent(ctx, perdure.EventTaskProgress, map[string]int{"n": 1}), "done")
	}, func() string { return w.m.stream(l.m, "") })
}

func (w *world) cancelTask() *op {
	id, ok := w.task()
	if !ok || w.pick(3) > 0 {
		return nil
	}
	return &op{
		name: "cancel " + id.String(),
		run: func(ctx context.Context) string {
			n, err := w.store().CancelTask(ctx, id, "enough")
			return text(err, "cancelled %d", n)
		},
		want: func() string { return w.m.cancel(id, "enough") },
	}
}

func (w *world) cancelTree() *op {
	if len(w.m.trees) == 0 || w.pick(4) > 0 {
		return nil
	}
	t := w.m.trees[w.pick(len(w.m.trees))]
	return &op{
		name: "cancel " + string(t.id),
		run: func(ctx context.Context) string {
			n, err := w.store().CancelTree(ctx, t.id, "stop")
			return text(err, "cancelled %d", n)
		},
		want: func() string { return w.m.cancel(t.root.id, "stop") },
	}
}

func (w *world) retry() *op {
	id, ok := w.failed()
	if w.pick(10) == 0 {
		id, ok = w.task()
	}
	if !ok {
		return nil
	}
	return &op{
		name: "retry " + id.String(),
		run:  func(ctx context.Context) string { return text(w.store().RetryTask(ctx, id), "done") },
		want: func() string { return w.m.retry(id) },
	}
}

func (w *world) recover() *op {
	if len(w.m.trees) == 0 {
		return nil
	}
	t, s := w.m.trees[w.pick(len(w.m.trees))], w.session()
	return &op{
		name: "recover " + string(t.id),
		run: func(ctx context.Context) string {
			var owner *perdure.Session
			if s != nil {
				owner = s.ss
			}
			r, err := w.store().Recover(ctx, t.id, owner)
			return text(err, "done %d requeued %d pending %d given up %d running %d", r.Done, r.Requeued, r.Pending, r.GivenUp,
				r.Running)
		},
		want: func() string {
			if s == nil {
				return w.m.recover(t, nil)
			}
			return w.m.recover(t, s.m)
		},
	}
}

func (w *world) prune() *op {
	if w.pick(4) > 0 {
		return nil
	}
	failed := w.pick(3) == 0
	return &op{
		name: fmt.Sprintf("prune failed=%v", failed),
		run: func(ctx context.Context) string {
			w.follow(ctx) // what goes is read before
			r, err := w.store().Prune(ctx, perdure.PruneRequest{
				Policy: perdure.RetentionPolicy{Completed: time.Nanosecond, Failed: time.Nanosecond, IncludeFailed: failed}})
			var names []string
			for _, t := range r.Trees {
				names = append(names, string(t.ID))
			}
			return text(err, "pruned %s", strings.Join(names, " "))
		},
		want: func() string { return w.m.prune(failed) },
	}
}

func (w *world) openSession() *op {
	if len(w.sessions) > 5 || w.pick(3) > 0 {
		return nil
	}
	at := w.at
	s := &session{store: at}
	return &op{
		name: fmt.Sprint("open session of store ", at),
		run: func(ctx context.Context) string {
			var err error
			s.ss, err = w.stores[at].OpenSession(ctx, "test")
			return text(err, "opened")
		},
		want: func() string {
			w.m.lastSession++
			s.m = &mSession{number: w.m.lastSession, id: s.ss.ID()}
			w.sessions = append(w.sessions, s)
			return "opened"
		},
	}
}

// endSession closes a session, or lets it die: in both cases other sessions
// may take over its leases.
func (w *world) endSession() *op {
	s := w.session()
	if s == nil || w.pick(4) > 0 {
		return nil
	}
	die := w.pick(2) == 0
	return &op{
		name: fmt.Sprintf("end session %s die=%v", s.m.id, die),
		run: func(ctx context.Context) string {
			if die {
				return text(s.ss.Die(ctx), "ended")
			}
			return text(s.ss.Close(ctx), "ended")
		},
		want: func() string {
			w.bury(func(o *session) bool { return o == s })
			return "ended"
		},
	}
}

// reopen closes a store, with the sessions that it has open, and opens it anew.
func (w *world) reopen() *op {
	if w.pick(6) > 0 {
		return nil
	}
	at := w.at
	return &op{
		name: fmt.Sprint("reopen store ", at),
		run: func(ctx context.Context) string {
			if err := w.stores[at].Close(); err != nil {
				return text(err, "")
			}
			s, err := perdure.Open(ctx, w.cfg)
			if err == nil {
				w.stores[at] = s
			}
			return text(err, "reopened")
		},
		want: func() string {
			w.bury(func(o *session) bool { return o.store == at })
			kept := w.leases[:0]
			for _, l := range w.leases {
				if l.s.store != at {
					kept = append(kept, l)
				}
			}
			w.leases = kept
			return "reopened"
		},
	}
}
