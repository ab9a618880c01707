package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

// handlerFunc is a task's work.
type handlerFunc func(ctx context.Context, l *perdure.Lease) error

// Handle runs the function.
func (f handlerFunc) Handle(ctx context.Context, l *perdure.Lease) error { return f(ctx, l) }

func complete(ctx context.Context, l *perdure.Lease) error {
	return l.Complete(ctx, perdure.Result{Text: "done"})
}

// working runs fn while a worker with so many slots serves the store.
func working(b *bench, s *perdure.Store, slots int, h handlerFunc, fn func() error) error {
	return workingAs(b, s, slots, map[string]worker.Handler{"bench": h}, fn)
}

// workingRuns is working for runs.
func workingRuns(b *bench, s *perdure.Store, slots int, e *rlm.Executor, fn func() error) error {
	return workingAs(b, s, slots, map[string]worker.Handler{rlm.KindRun: e}, fn)
}

func workingAs(b *bench, s *perdure.Store, slots int, handlers map[string]worker.Handler, fn func() error) error {
	ss, err := s.OpenSession(b.ctx, "bench")
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Store: s, Session: ss, Handlers: handlers, Concurrency: slots})
	if err != nil {
		return err
	}
	b.worker = w
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	err = fn()
	stop()
	return errors.Join(err, <-ended)
}

// waitFor waits until a tree has so many completed tasks.
func waitFor(b *bench, s *perdure.Store, id perdure.TreeID, completed int64) error {
	return waitUntil(b.ctx, s, func() (bool, error) {
		p, err := s.Progress(b.ctx, id)
		return p.Completed >= completed, err
	})
}

// waitUntil calls done after each change of the store until it returns true.
func waitUntil(ctx context.Context, s *perdure.Store, done func() (bool, error)) error {
	for {
		changed := s.Changed()
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flat: tasks created by one call each from 64 callers, claimed and completed.
func flat(b *bench, round int) error {
	const slots = 64
	n := cmp.Or(b.n, 40_000)
	s, err := b.begin("flat")
	if err != nil {
		return err
	}
	defer s.Close()
	open := make(chan struct{})
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.Depth == 0 { // the root stays open while others create its children
			<-open
			return l.Wait(ctx)
		}
		return complete(ctx, l)
	})
	tree, err := create(b, s)
	if err != nil {
		return err
	}
	var took time.Duration
	err = working(b, s, slots+1, h, func() error {
		start := time.Now()
		err := parallel(slots, n, func(int) error {
			_, err := s.Submit(b.ctx, tree.Root, perdure.TaskSpec{Prompt: prompt})
			return err
		})
		if err == nil {
			err = waitFor(b, s, tree.ID, int64(n))
		}
		took = time.Since(start)
		close(open)
		return err
	})
	if err != nil {
		return err
	}
	rate := float64(n) / took.Seconds()
	return b.print("flat", "tasks of one tree, created by one call each from 64 callers, claimed and completed by 64 "+
		"slots", round,
		map[string]any{"tasks": n, "per_s": rounded(rate), "ratio_f": rounded(rate / b.f), "rss_mib": rss()})
}

// tree: 1+10+100+1000 nodes; a parent completes after its children.
func tree(b *bench, round int) error {
	const fan, depth, runs = 10, 3, 7
	s, err := b.begin("tree")
	if err != nil {
		return err
	}
	defer s.Close()
	specs := make([]perdure.TaskSpec, fan)
	for i := range specs {
		specs[i].Prompt = prompt
	}
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.Depth < depth && l.Fence() == 1 {
			_, err := l.Spawn(ctx, specs)
			return err
		}
		return complete(ctx, l)
	})
	took := make([]time.Duration, runs)
	err = working(b, s, 64, h, func() error {
		for i := range took {
			start := time.Now()
			t, err := create(b, s)
			if err == nil {
				err = waitFor(b, s, t.ID, 1111)
			}
			if err != nil {
				return err
			}
			took[i] = time.Since(start)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.print("tree", "1+10+100+1000 nodes, spawned level by level, 64 slots; one tree after another", round,
		quantiles(took, map[string]any{"nodes": 1111, "runs": runs}))
}

// idle: one tiny task at a time on a store at rest.
func idle(b *bench, round int) error {
	const runs = 500
	s, err := b.begin("idle")
	if err != nil {
		return err
	}
	defer s.Close()
	done := make(chan struct{}, 1)
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		err := complete(ctx, l)
		done <- struct{}{}
		return err
	})
	took := make([]time.Duration, runs)
	err = working(b, s, 4, h, func() error {
		for i := range took {
			start := time.Now()
			if _, err := create(b, s); err != nil {
				return err
			}
			<-done
			took[i] = time.Since(start)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.print("idle", "one tree of one task, created, claimed, completed; nothing else runs", round,
		quantiles(took, map[string]any{"runs": runs}))
}

// overhead: what scheduling, journal and recording add to each model call.
func overhead(b *bench, round int) error {
	const slots, latency = 64, 20 * time.Millisecond
	n := cmp.Or(b.n, 6400)
	s, err := b.begin("overhead")
	if err != nil {
		return err
	}
	defer s.Close()
	var calls atomic.Int64
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.Depth == 0 {
			return l.Wait(ctx)
		}
		call, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "mock", RequestHash: "h", ReserveTokens: 100})
		if err != nil {
			return err
		}
		<-time.After(latency)
		calls.Add(1)
		if err := l.SettleCall(ctx, call.ID,
			perdure.CallResult{Response: prompt, InputTokens: 50, OutputTokens: 50}); err != nil {
			return err
		}
		return complete(ctx, l)
	})
	t, err := fill(b, s, n)
	if err != nil {
		return err
	}
	start := time.Now()
	err = working(b, s, slots, h, func() error { return waitFor(b, s, t.ID, int64(n)) })
	if err != nil {
		return err
	}
	wall := time.Since(start)
	each := (wall - time.Duration(n)*latency/slots) / time.Duration(n)
	return b.print("overhead", fmt.Sprintf("%d calls of %s, concurrency %d: (wall − calls × latency / concurrency) / "+
		"calls", n, latency, slots),
		round, map[string]any{"calls": calls.Load(), "wall_s": rounded(wall.Seconds()),
			"overhead_us": rounded(float64(each.Nanoseconds()) / 1000)})
}
