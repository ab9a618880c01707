package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/worker"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m)
}

type handlerFunc func(ctx context.Context, l *perdure.Lease) error

func (f handlerFunc) Handle(ctx context.Context, l *perdure.Lease) error { return f(ctx, l) }

func openStore(t *testing.T) *perdure.Store {
	t.Helper()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openSession(t *testing.T, s *perdure.Store) *perdure.Session {
	t.Helper()
	ss, err := s.OpenSession(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

func createTree(t *testing.T, s *perdure.Store, kind, prompt string) perdure.Tree {
	t.Helper()
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: kind, Root: perdure.TaskSpec{Prompt: prompt}})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// start runs a worker until the returned function is called.
func start(t *testing.T, cfg worker.Config) (w *worker.Worker, stop func()) {
	t.Helper()
	w, err := worker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return w, stop
}

// wait returns the tree when it is terminal.
func wait(t *testing.T, s *perdure.Store, id perdure.TreeID) perdure.Tree {
	t.Helper()
	for {
		changed := s.Changed()
		tree, err := s.Tree(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if tree.State.Terminal() {
			return tree
		}
		<-changed
	}
}

func task(t *testing.T, s *perdure.Store, id perdure.TaskID) perdure.Task {
	t.Helper()
	got, err := s.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func complete(ctx context.Context, l *perdure.Lease) error {
	return l.Complete(ctx, perdure.Result{Text: "done: " + l.Task.Prompt})
}

func handlers(h worker.Handler) map[string]worker.Handler {
	return map[string]worker.Handler{"test": h}
}

func TestConfigTellsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := worker.New(worker.Config{Concurrency: -1, SettleTimeout: -1, Handlers: map[string]worker.Handler{"x": nil}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Store", "Session", `"x"`, "Concurrency", "SettleTimeout"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
}

func TestCompletesTasks(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	trees := make([]perdure.Tree, 20)
	for i := range trees {
		trees[i] = createTree(t, s, "test", strings.Repeat("x", i))
	}
	other := createTree(t, s, "other", "not for us")
	start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(handlerFunc(complete))})
	for i, tree := range trees {
		wait(t, s, tree.ID)
		if got, want := task(t, s, tree.Root).Result, "done: "+strings.Repeat("x", i); got != want {
			t.Errorf("result %q, want %q", got, want)
		}
	}
	if got := task(t, s, other.Root); got.State != perdure.Queued {
		t.Errorf("the tree of another kind is %s", got.State)
	}
}

func TestRunsAsManyAtOnceAsConfigured(t *testing.T) {
	t.Parallel()
	const limit, tasks = 3, 12
	s := openStore(t)
	arrived, leave := make(chan struct{}, tasks), make(chan struct{})
	var inside, most atomic.Int64
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		arrived <- struct{}{}
		<-leave
		return complete(ctx, l)
	})
	var trees []perdure.Tree
	for range tasks {
		trees = append(trees, createTree(t, s, "test", "p"))
	}
	w, _ := start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h), Concurrency: limit})
	for range limit {
		<-arrived // all places are used
	}
	if n := w.Running(); n != limit {
		t.Errorf("%d are running, want %d", n, limit)
	}
	close(leave)
	for _, tree := range trees {
		wait(t, s, tree.ID)
	}
	if most.Load() > limit {
		t.Errorf("%d ran at once, the limit is %d", most.Load(), limit)
	}
}

// family spawns as the prompt says, "2:8" for a binary tree of depth 8, and
// counts the leaves below.
type family struct {
	s     *perdure.Store
	width int
	depth int
}

func (f family) Handle(ctx context.Context, l *perdure.Lease) error {
	kids, err := f.s.Tasks(ctx, perdure.TaskFilter{Tree: l.Tree.ID, Parent: &l.Task.ID})
	switch {
	case err != nil:
		return err
	case l.Task.Depth == f.depth:
		return l.Complete(ctx, perdure.Result{Text: "1"})
	case len(kids) == 0:
		_, err := l.Spawn(ctx, make([]perdure.TaskSpec, f.width))
		return err
	}
	sum := 0
	for _, k := range kids {
		var n int
		if err := json.Unmarshal([]byte(k.Result), &n); err != nil {
			return err
		}
		sum += n
	}
	raw, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return l.Complete(ctx, perdure.Result{Text: string(raw)})
}

func TestOnePlaceFinishesDeepTrees(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		width, depth int
		leaves       string
	}{
		{"chain of 50", 1, 50, "1"},
		{"binary tree of depth 8", 2, 8, "256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			tree := createTree(t, s, "test", "p")
			start(t, worker.Config{Store: s, Session: openSession(t, s), Concurrency: 1,
				Handlers: handlers(family{s, tt.width, tt.depth})})
			if got := wait(t, s, tree.ID); got.State != perdure.Completed {
				t.Fatalf("tree is %s", got.State)
			}
			if got := task(t, s, tree.Root).Result; got != tt.leaves {
				t.Errorf("counted %s leaves, want %s", got, tt.leaves)
			}
		})
	}
}

func events(t *testing.T, s *perdure.Store, tree perdure.TreeID, kind perdure.EventKind) []perdure.Event {
	t.Helper()
	all, err := s.Events(t.Context(), perdure.EventFilter{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	var out []perdure.Event
	for _, e := range all {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

func TestPanicFailsTheAttempt(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "test", Root: perdure.TaskSpec{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	start(t, worker.Config{Store: s, Session: openSession(t, s),
		Handlers: handlers(handlerFunc(func(context.Context, *perdure.Lease) error { panic("boom") }))})
	if got := wait(t, s, tree.ID); got.State != perdure.Failed {
		t.Fatalf("tree is %s", got.State)
	}
	if got := task(t, s, tree.Root).Error; got == nil || got.Kind != worker.KindPanic ||
		!strings.Contains(got.Message, "boom") {
		t.Errorf("error is %+v", got)
	}
	notes := events(t, s, tree.ID, worker.EventPanic)
	if len(notes) != 1 || !strings.Contains(string(notes[0].Data), "worker_test.go") {
		t.Errorf("events of the panic: %v", notes)
	}
}

func TestErrorsAreTriedAgainAsTheySay(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var calls atomic.Int64
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		calls.Add(1)
		if l.Task.Prompt == "hopeless" {
			return &worker.Failure{Kind: "hopeless", Err: errors.New("no use")}
		}
		if l.Task.Attempts < 3 {
			return &worker.Failure{Kind: "again", Retry: true, After: 1, Err: errors.New("not yet")}
		}
		return complete(ctx, l)
	})
	good, bad := createTree(t, s, "test", "good"), createTree(t, s, "test", "hopeless")
	start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h)})
	if got := wait(t, s, good.ID); got.State != perdure.Completed {
		t.Errorf("good tree is %s", got.State)
	}
	if got := wait(t, s, bad.ID); got.State != perdure.Failed {
		t.Errorf("hopeless tree is %s", got.State)
	}
	if got := task(t, s, bad.Root).Error; got == nil || got.Kind != "hopeless" || got.Message != "no use" {
		t.Errorf("error is %+v", got)
	}
	if calls.Load() != 4 {
		t.Errorf("%d attempts, want 3 and 1", calls.Load())
	}
}

func TestUnsettledTaskFails(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	tree := createTree(t, s, "test", "p")
	start(t, worker.Config{Store: s, Session: openSession(t, s),
		Handlers: handlers(handlerFunc(func(context.Context, *perdure.Lease) error { return nil }))})
	if got := wait(t, s, tree.ID); got.State != perdure.Failed {
		t.Fatalf("tree is %s", got.State)
	}
	if got := task(t, s, tree.Root).Error; got == nil || got.Kind != worker.KindUnsettled {
		t.Errorf("error is %+v", got)
	}
}

func TestTreesRestrictTheClaim(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	foreign, mine := createTree(t, s, "test", "foreign"), createTree(t, s, "test", "mine")
	var trees atomic.Pointer[[]perdure.TreeID]
	trees.Store(&[]perdure.TreeID{})
	w, stop := start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(handlerFunc(complete)),
		Trees: func() []perdure.TreeID { return *trees.Load() }})
	trees.Store(&[]perdure.TreeID{mine.ID})
	w.Wake()
	wait(t, s, mine.ID)
	stop()
	if got := task(t, s, foreign.Root); got.State != perdure.Queued || got.Attempts > 1 {
		t.Errorf("foreign task is %s", got.State)
	}
}

func TestAllowDecidesAboutTrees(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	denied, allowed := createTree(t, s, "test", "denied"), createTree(t, s, "test", "allowed")
	_, stop := start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(handlerFunc(complete)),
		Allow: func(tree perdure.Tree) bool { return tree.ID == allowed.ID }})
	wait(t, s, allowed.ID)
	stop()
	if got := task(t, s, denied.Root); got.State != perdure.Queued {
		t.Errorf("denied task is %s", got.State)
	}
}

// A child that a handler leases is worked on in the place of its task: with one place for
// tasks it does not wait for another, and what its handler leaves unsettled is settled.
func TestDo(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var w *worker.Worker
	var calls atomic.Int64
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.Parent != 0 {
			if calls.Add(1) == 1 {
				return errors.New("it failed")
			}
			return complete(ctx, l)
		}
		if l.Task.Attempts > 1 || l.Fence() > 1 {
			return complete(ctx, l)
		}
		for _, want := range []perdure.State{perdure.Failed, perdure.Completed} {
			child, err := l.SpawnLeased(ctx, perdure.TaskSpec{Prompt: "part", MaxAttempts: 1})
			if err != nil {
				return err
			}
			w.Do(l, child)
			if got := task(t, s, child.Task.ID); got.State != want {
				t.Errorf("the child is %s, want %s: %+v", got.State, want, got.Error)
			}
		}
		return complete(ctx, l)
	})
	tree := createTree(t, s, "test", "whole")
	session := openSession(t, s)
	var err error
	w, err = worker.New(worker.Config{Store: s, Session: session, Handlers: handlers(h), Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	if got := wait(t, s, tree.ID); got.State != perdure.Completed {
		t.Errorf("the tree is %s", got.State)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A worker that is stopping begins no work on a child: the child is free for other workers, and
// its task waits for it.
func TestDoWhileStopping(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var w *worker.Worker
	ctx, stop := context.WithCancel(t.Context())
	var children []perdure.TaskID
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.Parent != 0 {
			stop()
			return complete(ctx, l)
		}
		for range 2 {
			child, err := l.SpawnLeased(ctx, perdure.TaskSpec{Prompt: "part"})
			if err != nil {
				return err
			}
			children = append(children, child.Task.ID)
			w.Do(l, child)
			if w.Stopping().Err() == nil {
				t.Error("the worker is not stopping")
			}
		}
		return l.Wait(ctx)
	})
	tree := createTree(t, s, "test", "whole")
	var err error
	w, err = worker.New(worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h), Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	for i, want := range []perdure.State{perdure.Completed, perdure.Queued} {
		got := task(t, s, children[i])
		if got.State != want || got.Lease != nil || got.Error != nil {
			t.Errorf("child %d is %s, want %s: leased to %+v, error %+v", i+1, got.State, want, got.Lease, got.Error)
		}
	}
	if got := task(t, s, tree.Root); got.State != perdure.Waiting {
		t.Errorf("the task is %s", got.State)
	}
}

// A child in the place of a task whose lease is lost ends with it: it is free for others.
func TestDoOfALostLease(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	session := openSession(t, s)
	var w *worker.Worker
	begun, ended := make(chan perdure.TaskID, 1), make(chan perdure.TaskID, 1)
	h := handlerFunc(func(ctx context.Context, l *perdure.Lease) error {
		if l.Task.Parent != 0 {
			begun <- l.Task.ID
			<-ctx.Done()
			return ctx.Err()
		}
		child, err := l.SpawnLeased(ctx, perdure.TaskSpec{Prompt: "part"})
		if err != nil {
			return err
		}
		w.Do(l, child)
		ended <- child.Task.ID
		return ctx.Err()
	})
	tree := createTree(t, s, "test", "whole")
	var err error
	w, err = worker.New(worker.Config{Store: s, Session: session, Handlers: handlers(h), Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-begun
	if _, err := s.CancelTree(t.Context(), tree.ID, "stop"); err != nil {
		t.Fatal(err)
	}
	if got := task(t, s, <-ended); got.State != perdure.Cancelled || got.Lease != nil {
		t.Errorf("the child is %s, leased to %+v", got.State, got.Lease)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
