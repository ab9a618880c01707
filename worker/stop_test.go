package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

func TestCancelledTaskStopsItsHandler(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	tree := createTree(t, s, "test", "p")
	began, cause := make(chan struct{}), make(chan error, 1)
	h := handlerFunc(func(ctx context.Context, _ *perdure.Lease) error {
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	})
	start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h)})
	<-began
	if _, err := s.CancelTree(t.Context(), tree.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-cause; !errors.Is(err, perdure.ErrLeaseLost) {
		t.Errorf("cause is %v, want a lost lease", err)
	}
	if got := task(t, s, tree.Root); got.State != perdure.Cancelled {
		t.Errorf("task is %s", got.State)
	}
}

func TestDrainLetsWorkFinish(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	first, second := createTree(t, s, "test", "first"), createTree(t, s, "test", "second")
	began, finish := make(chan struct{}, 2), make(chan struct{})
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		began <- struct{}{}
		select {
		case <-finish:
		case <-ctx.Done():
			return ctx.Err()
		}
		return complete(ctx, l)
	})
	w, err := worker.New(worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h),
		Concurrency: 1, DrainTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-began
	cancel()
	close(finish)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	states := map[perdure.State]int{task(t, s, first.Root).State: 1}
	states[task(t, s, second.Root).State]++
	if states[perdure.Completed] != 1 || states[perdure.Queued] != 1 {
		t.Errorf("states are %v, want one completed and one never begun", states)
	}
}

// TestStopGivesWorkBack lets the worker cancel its work: the task goes on
// elsewhere as the same attempt.
func TestStopGivesWorkBack(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	tree := createTree(t, s, "test", "p")
	began, cause := make(chan struct{}), make(chan error, 1)
	h := handlerFunc(func(ctx context.Context, _ *perdure.Lease) error {
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return fmt.Errorf("model: %w", ctx.Err())
	})
	_, stop := start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h), DrainTimeout: -1})
	<-began
	stop()
	if err := <-cause; !errors.Is(err, worker.ErrStopping) {
		t.Errorf("cause is %v", err)
	}
	if got := task(t, s, tree.Root); got.State != perdure.Queued || got.Error != nil {
		t.Errorf("task is %s with error %v", got.State, got.Error)
	}
	var attempts atomic.Int64
	again := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		attempts.Store(int64(l.Task.Attempts))
		return complete(ctx, l)
	})
	start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(again)})
	if got := wait(t, s, tree.ID); got.State != perdure.Completed {
		t.Errorf("tree is %s", got.State)
	}
	if attempts.Load() != 1 {
		t.Errorf("it went on as attempt %d", attempts.Load())
	}
}

// TestDrainTimeoutEnds lets the time to drain pass: the handler that goes on is
// cancelled then.
func TestDrainTimeoutEnds(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	tree := createTree(t, s, "test", "p")
	began := make(chan struct{})
	h := handlerFunc(func(ctx context.Context, _ *perdure.Lease) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	_, stop := start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h),
		DrainTimeout: time.Millisecond})
	<-began
	stop()
	if got := task(t, s, tree.Root); got.State != perdure.Queued {
		t.Errorf("task is %s", got.State)
	}
}

// TestStress starts and stops workers over and over while tasks come in: no
// task is lost or done twice, and nothing is left running.
func TestStress(t *testing.T) {
	t.Parallel()
	const rounds, tasks = 25, 60
	s := openStore(t)
	var done atomic.Int64
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.ID%5 == 0 && l.Task.Attempts == 1 {
			return &worker.Failure{Retry: true, After: 1, Err: errors.New("once more")}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := complete(ctx, l)
		if err == nil {
			done.Add(1)
		}
		return err
	})
	trees := make([]perdure.Tree, tasks)
	for i := range trees {
		trees[i] = createTree(t, s, "test", "p")
	}
	ss := openSession(t, s)
	for round := range rounds {
		w, err := worker.New(worker.Config{Store: s, Session: ss, Handlers: handlers(h),
			Concurrency: 1 + round%4, DrainTimeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		changed := s.Changed()
		go func() { ended <- w.Run(ctx) }()
		if round%3 == 0 && done.Load() < tasks {
			<-changed
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	start(t, worker.Config{Store: s, Session: ss, Handlers: handlers(h)})
	for _, tree := range trees {
		if got := wait(t, s, tree.ID); got.State != perdure.Completed {
			t.Errorf("tree is %s", got.State)
		}
		// By the log and not by what handlers observed: one that is cancelled in
		// its last step may not hear that the step was made.
		if n := completions(t, s, tree.ID); n != 1 {
			t.Errorf("%d completions of the task of tree %s", n, tree.ID)
		}
	}
}

func completions(t *testing.T, s *perdure.Store, tree perdure.TreeID) int {
	t.Helper()
	events, err := s.Events(t.Context(), perdure.EventFilter{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Kind == perdure.EventTaskCompleted {
			n++
		}
	}
	return n
}
