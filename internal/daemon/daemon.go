// Package daemon connects the parts of the program: store, session, models, executor,
// worker and API. It starts and stops them in order. Commands use it in their own
// process, to execute their own trees ([Daemon.Work]), or as a server that executes all
// trees of a store ([Daemon.Serve]).
package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/model/command"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

// Config configures a daemon.
type Config struct {
	// Dir is the .perdure folder, DSN the URL of a PostgreSQL database to use instead
	// of the one in Dir.
	Dir string
	DSN string
	// Heads is the folder for the heads of the log, see [perdure.Config].
	Heads string
	// Copies is the folder for copies of stores and loops, see [perdure.Config].
	Copies string
	// ReadOnly opens a store that cannot be written, see [perdure.Config]. It excludes a session.
	ReadOnly bool
	// Creating is called if the store is created, Replaced if it was put back, see [perdure.Config].
	Creating func()
	Replaced func()
	// Session is the kind of session to open ("run", "serve"). If it is empty, the
	// process answers requests but executes no trees.
	Session string
	// Models configures models, Agents coding agents.
	Models ModelConfig
	Agents AgentConfig
	// Own is the configuration of a run by the daemon's own settings. A request for a run that
	// names no model gets its models. Programs that a loop or a run has started can ask for the
	// models and the endpoints that it names.
	Own json.RawMessage
	// LoopDir is the folder of the loops' snapshots; empty: "loops" in Dir.
	LoopDir string
	// Reminders is a folder with templates of reminders; empty: the built-in ones.
	Reminders string
	// Handoff configures the handoffs of loops.
	Handoff loop.HandoffConfig
	// LoopHooks are the user's handlers at the hooks of loops. Their programs run
	// in HookDir.
	LoopHooks hook.Settings
	HookDir   string
	// Notify configures notifications.
	Notify NotifyConfig
	// Concurrency is the number of tasks that run at once. 0: 8.
	Concurrency int
	// ReplPython is the Python that runs the code of REPLs; empty: python3. ReplUnsandboxed
	// lets it run without a sandbox.
	ReplPython      string
	ReplUnsandboxed bool
	// DrainTimeout is the time that running tasks have to finish when the process
	// stops. 0: 30 seconds.
	DrainTimeout time.Duration
	// Retention is applied by Serve, every CollectEvery (0: one hour).
	Retention    perdure.RetentionPolicy
	CollectEvery time.Duration
	// IPC configures the socket for clients of the .aiwg daemon. It needs a session.
	IPC IPCConfig
	// Version is the version that the API returns.
	Version string
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 8)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 30*time.Second)
	c.CollectEvery = cmp.Or(c.CollectEvery, time.Hour)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Daemon is an open store with the parts of the program that use it. It is safe for
// concurrent use. Either Work or Serve is called, once.
type Daemon struct {
	cfg       Config
	store     *perdure.Store
	session   *perdure.Session // nil if Config.Session is empty
	models    *Models
	executor  *rlm.Executor
	engine    *loop.Engine
	handler   http.Handler
	notifiers []notifier
	ipc       *ipc // nil if Config.IPC has no socket
	draining  chan struct{}
	log       *slog.Logger

	mu     sync.Mutex // guards the fields below
	trees  []perdure.TreeID
	worker *worker.Worker
}

// Open opens the store, and a session if the configuration has one. Close it after use.
func Open(ctx context.Context, cfg Config) (*Daemon, error) {
	cfg = cfg.withDefaults()
	store, err := perdure.Open(ctx, perdure.Config{Dir: cfg.Dir, DSN: cfg.DSN, Heads: cfg.Heads,
		Copies: cfg.Copies, ReadOnly: cfg.ReadOnly, Creating: cfg.Creating, Replaced: cfg.Replaced, Logger: cfg.Logger})
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
	models.Logger, models.Findings = d.log, findings{d.store}
	if d.cfg.Session != "" {
		session, err := d.store.OpenSession(ctx, d.cfg.Session)
		if err != nil {
			return err
		}
		d.session = session
		models.Lock = session.LockFile()
	}
	models.Answered = d.hasAnswered
	d.models = NewModels(models)
	var err error
	if d.notifiers, err = d.newNotifiers(); err != nil {
		return err
	}
	d.executor, err = rlm.New(rlm.ExecutorConfig{Store: d.store, Resolver: d.models,
		Gates: true, GateOpened: d.notifyGate, Concurrency: d.cfg.Concurrency, Logger: d.log,
		Python: d.cfg.ReplPython, Unsandboxed: d.cfg.ReplUnsandboxed, Hidden: []string{d.cfg.Dir}, Do: d.do,
		Stopping: d.stopping})
	if err != nil {
		return err
	}
	if err := d.openLoops(ctx); err != nil {
		return err
	}
	d.handler = server.New(server.Config{
		Store: d.store, Launcher: launcher{d}, Session: d.session, Pauses: d.pauses,
		ResumeLoop: d.engine.Resume, Version: d.cfg.Version, Draining: d.draining, Logger: d.log,
	})
	return d.openIPC()
}

// pauses returns what trees wait for: models, and indexes that are being built.
func (d *Daemon) pauses() []string { return append(d.models.Waiting(), d.executor.Building()...) }

// hasAnswered reports whether a model at an address answered in a tree of the store.
func (d *Daemon) hasAnswered(ctx context.Context, name, baseURL string) bool {
	configs, err := d.store.AnsweredConfigs(ctx, name)
	if err != nil {
		d.log.Warn("read answered calls", "error", err)
	}
	return slices.ContainsFunc(configs, func(raw json.RawMessage) bool {
		var tree rlm.Config
		return json.Unmarshal(raw, &tree) == nil && (tree.BaseURL == baseURL || !strings.HasPrefix(name, schemeOpenAI+":"))
	})
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

// Handler returns the API.
func (d *Daemon) Handler() http.Handler { return d.handler }

// SessionID returns the ID of the session, or "" without one.
func (d *Daemon) SessionID() string {
	if d.session == nil {
		return ""
	}
	return d.session.ID()
}

// Own adds trees to those that Work executes.
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

// Work executes the trees of Own until ctx ends, waits for running tasks and returns.
func (d *Daemon) Work(ctx context.Context) error { return d.work(ctx, d.own, 0) }

// patient makes a server wait without limit until its store can be written again.
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
	expiring, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { d.expireGates(expiring) })
	defer done.Wait()
	defer stop()
	return w.Run(ctx)
}

// do does the work of a child in the place of the task that leased it.
func (d *Daemon) do(l, child *perdure.Lease) {
	d.mu.Lock()
	w := d.worker // it called the handler of l
	d.mu.Unlock()
	w.Do(l, child)
}

// stopping returns a context that ends when the worker is to end.
func (d *Daemon) stopping() context.Context {
	d.mu.Lock()
	w := d.worker
	d.mu.Unlock()
	return w.Stopping()
}

// placed adds the tree and the task to the environment of the programs that a handler
// starts. `perdure var` then selects the variables of this task.
type placed struct{ worker.Handler }

// Handle calls the handler with the environment.
func (p placed) Handle(ctx context.Context, l *perdure.Lease) error {
	env := []string{"PERDURE_TREE=" + string(l.Tree.ID), "PERDURE_TASK=" + l.Task.ID.String()}
	return p.Handler.Handle(command.WithEnv(ctx, env), l)
}

// expireEvery is the time between two checks of the trees that wait at gates.
const expireEvery = time.Second

// expireGates ends the trees that wait at a gate when their time limit is reached.
func (d *Daemon) expireGates(ctx context.Context) {
	each(ctx, expireEvery, func() {
		if err := d.store.ExpireGates(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("expire gates", "error", err)
		}
	})
}

// each calls do at once and after each interval until ctx ends.
func each(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Check returns an error if a tree cannot be executed here, for example because the
// model's key is missing.
func (d *Daemon) Check(ctx context.Context, tree *perdure.Tree) error {
	if err := checkOwner(tree); err != nil {
		return err
	}
	if tree.Kind == perdure.KindLoop {
		return d.engine.Check(ctx, tree)
	}
	return d.executor.Check(tree)
}

// checkAgain is the time after which a tree that cannot be executed here is checked
// again. A missing program can be installed meanwhile.
const checkAgain = 10 * time.Second

// allow returns a function that reports whether a tree can be executed here. Other trees
// keep their attempts for other processes. The function is called from one goroutine.
func (d *Daemon) allow(ctx context.Context) func(perdure.Tree) bool {
	type key struct { // a reopened tree may have another configuration
		id       perdure.TreeID
		reopened int
	}
	allowed := make(map[key]bool)
	refused := make(map[key]time.Time)
	return func(tree perdure.Tree) bool {
		k := key{tree.ID, tree.Reopened}
		if allowed[k] {
			return true
		}
		if checkOwner(&tree) != nil {
			return false
		}
		last, again := refused[k]
		if again && time.Since(last) < checkAgain {
			return false
		}
		if err := d.Check(ctx, &tree); err != nil {
			refused[k] = time.Now()
			if !again {
				d.log.Warn("tree cannot be executed here", "tree_id", string(tree.ID), "error", err)
			}
			return false
		}
		allowed[k] = true
		return true
	}
}

// launcher creates the trees that the API's clients request.
type launcher struct{ d *Daemon }

// Launch creates a tree, also in a process without a session; another process executes it
// then.
func (l launcher) Launch(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	run, err := l.d.runRequest(ctx, &req)
	if err != nil {
		return perdure.Tree{}, err
	}
	if req.Supervised {
		if err := l.d.checkSupervised("create tree", req.Kind, run.Config); err != nil {
			return perdure.Tree{}, err
		}
	}
	if req.Kind == perdure.KindLoop {
		return l.d.launchLoop(ctx, req)
	}
	if req.Kind != rlm.KindRun {
		return perdure.Tree{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "create tree",
			Msg: fmt.Sprintf("unknown kind %q", req.Kind), Hint: "the kinds are run and loop"}
	}
	return l.d.executor.Launch(ctx, run)
}

// runRequest returns the request for a run: that of a further question has the configuration of the
// tree that it names, with all models, others have the models of the daemon if they name none.
func (d *Daemon) runRequest(ctx context.Context, req *server.LaunchRequest) (rlm.LaunchRequest, error) {
	run := launchRequest(req)
	var err error
	switch {
	case req.Kind != rlm.KindRun:
	case req.Ask != "":
		run, err = d.executor.Further(ctx, run)
		run.Ask = "" // done
	default:
		run.Config, err = d.withModels(run.Config)
	}
	return run, err
}

func launchRequest(req *server.LaunchRequest) rlm.LaunchRequest {
	return rlm.LaunchRequest{Kind: req.Kind, Name: req.Name, Prompt: req.Prompt, ContextID: req.ContextID, Ask: req.Ask,
		Config: req.Config, IdempotencyKey: req.IdempotencyKey, Request: req.Request, Owner: req.Owner}
}

// Estimate returns what a run takes.
func (l launcher) Estimate(ctx context.Context, req server.LaunchRequest) (rlm.Estimate, error) {
	run, err := l.d.runRequest(ctx, &req)
	if err != nil {
		return rlm.Estimate{}, err
	}
	return l.d.executor.Estimate(ctx, run)
}

// Replay runs the code of a tree's REPLs again.
func (l launcher) Replay(ctx context.Context, id perdure.TreeID) (rlm.Replay, error) {
	return l.d.executor.Replay(ctx, id)
}

// Resume prepares a run to continue.
func (l launcher) Resume(ctx context.Context, req server.ResumeRequest) (perdure.RecoverReport, error) {
	if req.Supervised {
		if err := l.d.checkSupervised("resume tree", rlm.KindRun, req.Changes); err != nil {
			return perdure.RecoverReport{}, err
		}
	}
	return l.d.executor.Resume(ctx, rlm.ResumeRequest{Tree: req.Tree, Changes: req.Changes, Owner: req.Owner})
}
