// Package daemon puts the parts of the program together: store, session,
// models, executor, worker and API. It decides what runs, in which order it
// starts and how it stops. The command line uses the same parts in two ways:
// in process, for its own trees ([Daemon.Work]), and as a server for everybody
// on this store ([Daemon.Serve]).
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

// Defaults of [Config].
const (
	DefaultConcurrency  = 8
	DefaultDrainTimeout = 30 * time.Second
	DefaultCollectEvery = time.Hour
)

// Config says what to put together.
type Config struct {
	// Dir is the .perdure folder, DSN a PostgreSQL address to use instead of
	// the database in it.
	Dir string
	DSN string
	// Session, when set, is the kind of session to open ("run", "serve"): the
	// process executes trees. Without one it only answers requests.
	Session string
	// Models says how models are reached, Agents how coding agents are.
	Models ModelConfig
	Agents AgentConfig
	// LoopDir is the folder in which loops keep their snapshots; empty: "loops" in
	// Dir.
	LoopDir string
	// Reminders is a folder with templates of what agents of loops are reminded of;
	// empty: the built-in ones.
	Reminders string
	// Handoff says how loops hand work over.
	Handoff loop.HandoffConfig
	// LoopHooks are the user's handlers at the hooks of loops. Their programs run
	// in HookDir.
	LoopHooks hook.Settings
	HookDir   string
	// Notify says how people are told what a loop wants of them.
	Notify NotifyConfig
	// Concurrency is how many tasks run at once. 0: DefaultConcurrency.
	Concurrency int
	// DrainTimeout is how long running tasks may finish when the process
	// stops. 0: DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Retention is applied by Serve, every CollectEvery (0:
	// DefaultCollectEvery).
	Retention    perdure.RetentionPolicy
	CollectEvery time.Duration
	// IPC is for clients of the .aiwg layout's daemon; it needs a session.
	IPC IPCConfig
	// Version is what the API tells.
	Version string
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.CollectEvery == 0 {
		c.CollectEvery = DefaultCollectEvery
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Daemon is the parts of the program over one open store. Its methods may be
// called from several goroutines at once; Work and Serve once, and not both.
type Daemon struct {
	cfg      Config
	store    *perdure.Store
	session  *perdure.Session // nil without one
	models   *Models
	executor *rlm.Executor
	engine   *loop.Engine
	handler  http.Handler
	told     []way // by which people are told
	ipc      *ipc  // nil without
	draining chan struct{}
	log      *slog.Logger

	mu     sync.Mutex // guards the fields below
	trees  []perdure.TreeID
	worker *worker.Worker
}

// Open opens the store, and a session if one is asked for. Close it after use.
func Open(ctx context.Context, cfg Config) (*Daemon, error) {
	cfg = cfg.withDefaults()
	store, err := perdure.Open(ctx, perdure.Config{Dir: cfg.Dir, DSN: cfg.DSN, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	d := &Daemon{cfg: cfg, store: store, draining: make(chan struct{}), log: cfg.Logger, trees: []perdure.TreeID{}}
	if err := d.assemble(ctx); err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return d, nil
}

func (d *Daemon) assemble(ctx context.Context) error {
	models := d.cfg.Models
	models.Logger = d.log
	if d.cfg.Session != "" {
		session, err := d.store.OpenSession(ctx, d.cfg.Session)
		if err != nil {
			return err
		}
		d.session = session
		models.Lock = session.LockFile()
	}
	d.models = NewModels(models)
	var err error
	if d.told, err = d.ways(d.hold()); err != nil {
		return err
	}
	executor, err := rlm.New(rlm.ExecutorConfig{Store: d.store, Resolver: d.models,
		Gates: true, GateOpened: d.tellGate, Logger: d.log})
	if err != nil {
		return err
	}
	d.executor = executor
	if err := d.openLoops(); err != nil {
		return err
	}
	d.handler = server.New(server.Config{
		Store: d.store, Launcher: launcher{d}, Session: d.session, Pauses: d.models.Waiting,
		ResumeLoop: d.engine.Resume, Version: d.cfg.Version, Draining: d.draining, Logger: d.log,
	})
	return d.openIPC()
}

// Close ends the session and closes the store.
func (d *Daemon) Close(ctx context.Context) error {
	errs := []error{d.closeIPC()}
	if d.executor != nil {
		errs = append(errs, d.executor.Close())
	}
	if d.models != nil {
		d.models.Close()
	}
	if d.session != nil {
		errs = append(errs, d.session.Close(context.WithoutCancel(ctx)))
	}
	return errors.Join(append(errs, d.store.Close())...)
}

// Handler is the API.
func (d *Daemon) Handler() http.Handler { return d.handler }

// SessionID names the session that executes trees here; empty without one.
func (d *Daemon) SessionID() string {
	if d.session == nil {
		return ""
	}
	return d.session.ID()
}

// Waiting tells which models are waited for and why, one line each.
func (d *Daemon) Waiting() []string { return d.models.Waiting() }

// Own makes trees this process's own: Work executes them.
func (d *Daemon) Own(trees ...perdure.TreeID) {
	d.mu.Lock()
	d.trees = append(d.trees, trees...)
	w := d.worker
	d.mu.Unlock()
	if w != nil {
		w.Wake()
	}
}

func (d *Daemon) own() []perdure.TreeID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]perdure.TreeID{}, d.trees...)
}

// Work executes the process's own trees until ctx ends; then it drains. It
// returns when nothing runs any more.
func (d *Daemon) Work(ctx context.Context) error { return d.work(ctx, d.own, 0) }

// patient is the patience of a server: it waits until its store can be written
// again.
const patient = -1

func (d *Daemon) work(ctx context.Context, trees func() []perdure.TreeID, patience time.Duration) error {
	w, err := worker.New(worker.Config{
		Store: d.store, Session: d.session,
		Handlers: map[string]worker.Handler{rlm.KindRun: placed{d.executor}, rpc.Kind: placed{d.executor},
			perdure.KindLoop: d.engine},
		Concurrency: d.cfg.Concurrency, DrainTimeout: d.cfg.DrainTimeout,
		Trees: trees, Allow: d.allow(ctx), Patience: patience, Logger: d.log,
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.worker = w
	d.mu.Unlock()
	w.Wake()
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { d.endWaiting(looking) })
	defer looks.Wait()
	defer stop()
	return w.Run(ctx)
}

// overdueEvery is how often trees that wait at a gate are looked at.
const overdueEvery = time.Second

// endWaiting lets trees end whose time is over while they wait for a person.
func (d *Daemon) endWaiting(ctx context.Context) {
	tick := time.NewTicker(overdueEvery)
	defer tick.Stop()
	for {
		if err := d.store.ExpireGates(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("look at gates", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Check tells whether a tree can be executed here: its models, keys and programs
// are found.
func (d *Daemon) Check(ctx context.Context, tree *perdure.Tree) error {
	if err := driven(tree); err != nil {
		return err
	}
	if tree.Kind == perdure.KindLoop {
		return d.engine.Check(ctx, tree)
	}
	return d.executor.Check(tree)
}

// checkAgain is how long a tree that cannot be executed here is left alone: a
// key does not appear in the environment of a process, but a program may be
// installed.
const checkAgain = 10 * time.Second

// allow leaves trees that cannot be executed here to somebody who can, instead
// of using up their attempts. It is called from one goroutine.
func (d *Daemon) allow(ctx context.Context) func(perdure.Tree) bool {
	fine := make(map[perdure.TreeID]bool)
	refused := make(map[perdure.TreeID]time.Time)
	return func(tree perdure.Tree) bool {
		if fine[tree.ID] {
			return true
		}
		if driven(&tree) != nil {
			return false
		}
		last, again := refused[tree.ID]
		if again && time.Since(last) < checkAgain {
			return false
		}
		if err := d.Check(ctx, &tree); err != nil {
			refused[tree.ID] = time.Now()
			if !again {
				d.log.Warn("tree cannot be executed here", "tree_id", string(tree.ID), "error", err)
			}
			return false
		}
		fine[tree.ID] = true
		return true
	}
}

// launcher gives the API's requests for trees to the executor of their kind.
type launcher struct{ d *Daemon }

// Launch creates a tree. Without a session nobody here would execute it, which
// is fine: whoever resumes it does.
func (l launcher) Launch(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	if req.Kind == perdure.KindLoop {
		return l.d.launchLoop(ctx, req)
	}
	if req.Kind != rlm.KindRun {
		return perdure.Tree{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "create tree",
			Msg: "kind " + quote(req.Kind) + " is not known here", Hint: "the kinds of this version are run and loop"}
	}
	return l.d.executor.Launch(ctx, rlm.LaunchRequest{
		Name: req.Name, Prompt: req.Prompt, ContextID: req.ContextID, Config: req.Config,
		IdempotencyKey: req.IdempotencyKey, Owner: req.Owner,
	})
}
