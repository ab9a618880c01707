package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// Defaults of [Config].
const (
	DefaultConcurrency   = 4
	DefaultDrainTimeout  = 10 * time.Second
	DefaultSettleTimeout = 10 * time.Second
	DefaultPatience      = 3 * time.Second
)

// ErrStopping is the cause of a handler's context that was cancelled because
// the worker stops. The handler returns soon; its task goes back to the queue.
var ErrStopping = errors.New("worker is stopping")

// Handler does the work of one attempt of a task.
//
// It settles the task by itself through the lease (Complete, Spawn, Wait) and
// returns nil, or returns an error, which fails the attempt. It must return
// soon after ctx ended; the cause of ctx is then [perdure.ErrLeaseLost] or
// [ErrStopping]. It is called from many goroutines, and again for a task that
// waited for children, that failed, or whose process died: it has to find out
// from the store what was done already.
type Handler interface {
	Handle(ctx context.Context, l *perdure.Lease) error
}

// Config says what a worker runs, and how much at once.
type Config struct {
	// Store and Session are where tasks are claimed. Required. The session is
	// the caller's, to be closed after Run has returned.
	Store   *perdure.Store
	Session *perdure.Session
	// Handlers by the kind of the tree. Required, not to be changed later.
	// Trees of other kinds are left alone.
	Handlers map[string]Handler
	// Concurrency is how many tasks run at once. 0: DefaultConcurrency.
	Concurrency int
	// Trees, when set, returns the trees to claim from; it is asked before
	// each claim, from one goroutine. See [Worker.Wake]. Nil: all trees.
	Trees func() []perdure.TreeID
	// Allow, when set, decides whether a tree may be executed here.
	Allow func(perdure.Tree) bool
	// DrainTimeout is how long work continues after the context of Run ended.
	// 0: DefaultDrainTimeout; negative: not at all.
	DrainTimeout time.Duration
	// SettleTimeout bounds the writes that settle an attempt while stopping.
	// 0: DefaultSettleTimeout.
	SettleTimeout time.Duration
	// Patience is how long the store may refuse all writes (a full disk, a
	// server that restarts) before Run gives up. It gives up at once when an
	// attempt came to nothing because its result could not be written: it
	// would be paid for again and again. 0: DefaultPatience; negative: it goes
	// on for ever, and such an attempt is one that failed.
	Patience time.Duration
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.SettleTimeout = cmp.Or(c.SettleTimeout, DefaultSettleTimeout)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c *Config) validate() error {
	var errs []error
	check := func(ok bool, msg string) {
		if !ok {
			errs = append(errs, errors.New("create worker: "+msg))
		}
	}
	check(c.Store != nil, "Store is missing")
	check(c.Session != nil, "Session is missing")
	check(len(c.Handlers) > 0, "Handlers is empty")
	for kind, h := range c.Handlers {
		check(h != nil, "Handlers has no handler for \""+kind+"\"")
	}
	check(c.Concurrency > 0, "Concurrency is below 1")
	check(c.SettleTimeout > 0, "SettleTimeout is not above 0")
	return errors.Join(errs...)
}

// Worker claims tasks and runs them. Its methods may be called from several
// goroutines, Run only from one at a time.
type Worker struct {
	cfg  Config
	wake chan struct{} // holds one: look for work again

	mu      sync.Mutex // guards the fields below
	running map[*perdure.Lease]running
	// ended are tasks whose handler says it settled them; see checkLeases.
	ended []*perdure.Lease
	// owed are attempts whose end could not be written yet.
	owed []debt
	// fault is why the worker gives up.
	fault error
	// run is the context of Run, stop ends it.
	run  context.Context //nolint:containedctx // handlers must know whether Run is to end
	stop context.CancelFunc
}

// running is the work on a task; nested is set if it is done in the place of another one.
type running struct {
	ctx    context.Context //nolint:containedctx // Do derives that of another task from it
	cancel context.CancelCauseFunc
	nested bool
}

// New checks the configuration and returns a worker that does nothing until
// Run.
func New(cfg Config) (*Worker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Worker{
		cfg:     cfg,
		wake:    make(chan struct{}, 1),
		running: make(map[*perdure.Lease]running),
	}, nil
}

// Wake makes a worker look for work now; it is called when Config.Trees or
// Config.Allow would answer differently from before. It never blocks.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// free returns how many places are free.
func (w *Worker) free() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.cfg.Concurrency
	for _, r := range w.running {
		if !r.nested {
			n--
		}
	}
	return n
}

// Running returns how many tasks are being worked on.
func (w *Worker) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}

// Stopping returns a context that ends when Run is to end: it claims no more tasks. A handler may
// then give its task back between two steps of its work, or leave work that can be repeated. Only
// handlers that Run called may call it.
func (w *Worker) Stopping() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run
}

// Run works until ctx ends, then drains and stops as the package comment says.
// It returns nil then, and an error when the store refuses claims for another
// reason than being unavailable for a while, or for longer than
// Config.Patience; the work under way is drained then, too. Nothing it started
// is left when it returns; tasks whose end could not be written are free again
// when the session is closed.
func (w *Worker) Run(ctx context.Context) error {
	work, cancelWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelWork(nil)
	watch, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	run, stop := context.WithCancel(ctx)
	defer stop()
	w.mu.Lock()
	w.run, w.stop = run, stop
	w.mu.Unlock()

	var tasks, watcher sync.WaitGroup
	watcher.Go(func() { w.watchLeases(watch) })
	err := w.claimLoop(ctx, func(l *perdure.Lease) {
		r := w.begin(work, l, false)
		tasks.Go(func() { w.end(l, w.attempt(r.ctx, l)) })
	})
	w.drain(&tasks, cancelWork)
	stopWatch()
	watcher.Wait()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.SettleTimeout)
	defer done()
	w.checkLeases(last)
	if oweErr := w.payDebts(last); err == nil && oweErr != nil {
		w.cfg.Logger.Warn("settle tasks at the end", "error", oweErr)
	}
	return err
}

// Do does the work of a child that the handler of l leased with [perdure.Lease.SpawnLeased], in
// the place of l: it calls the handler of the tree and settles the attempt as Run does, and
// returns when that is done. How the attempt ended is read from the store. When the worker is
// stopping, it begins no work: the child goes back to the queue, and the handler waits for it
// as for other children. Only handlers that Run called may call it.
func (w *Worker) Do(l, child *perdure.Lease) {
	w.mu.Lock()
	ctx := w.running[l].ctx
	w.mu.Unlock()
	stopping := w.Stopping().Err() != nil
	r := w.begin(ctx, child, true)
	settled := !stopping && w.attempt(r.ctx, child)
	// The lease that was lost is that of l, and perhaps not the child's.
	if stopping || !settled && errors.Is(context.Cause(ctx), perdure.ErrLeaseLost) {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.SettleTimeout)
		defer done()
		w.settle(last, debt{lease: child})
	}
	w.end(child, settled)
}

// begin takes a place for a task, unless it is done in that of another one.
func (w *Worker) begin(ctx context.Context, l *perdure.Lease, nested bool) running {
	r := running{nested: nested}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[l] = r
	return r
}

// end frees the place of a task, so that another may be claimed. settled says
// that the handler settled the task itself.
func (w *Worker) end(l *perdure.Lease, settled bool) {
	w.mu.Lock()
	r := w.running[l]
	delete(w.running, l)
	if settled {
		w.ended = append(w.ended, l)
	}
	w.mu.Unlock()
	r.cancel(nil)
	if !r.nested {
		w.Wake()
	}
}

// drain waits for the work under way, at last by cancelling it.
func (w *Worker) drain(tasks *sync.WaitGroup, cancelWork context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tasks.Wait()
	}()
	if w.cfg.DrainTimeout > 0 {
		timer := time.NewTimer(w.cfg.DrainTimeout)
		defer timer.Stop()
		select {
		case <-done:
			return
		case <-timer.C:
		}
	}
	if n := w.Running(); n > 0 {
		w.cfg.Logger.Info("worker cancels its work to stop", "tasks", n)
	}
	cancelWork(ErrStopping)
	<-done
}
