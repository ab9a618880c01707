package rlm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
	"github.com/perdure/perdure/rlm/internal/refcache"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// KindRun is the kind of the trees this package runs.
const KindRun = "run"

// ModelOptions are how a run wants to ask a model. Zero values leave it to the
// resolver.
type ModelOptions struct {
	// BaseURL is the endpoint of an OpenAI-compatible model.
	BaseURL string
	// Timeout bounds one request, Tries is how many are sent for one answer.
	Timeout Duration
	Tries   int
	// Concurrency is how many requests may be in flight at once.
	Concurrency int
	// Patience and MaxWait are Patience and MaxPause of a model.Guarded: 0 is the default,
	// negative is none and any.
	Patience, MaxWait Duration
	// Unsent is set if the model is asked nothing: only its window and its price matter,
	// and its key may be missing.
	Unsent bool
	// Cache asks for answers that were given before to be given again.
	Cache bool
	// Params are further fields of each request. Headers are further headers, whose values name
	// environment variables.
	Params, Headers Fields
}

// Resolver finds models by name ("builtin:extract", "openai:NAME", …). It is
// called from many goroutines, and more than once for the same name; what it
// returns is shared and retries by itself (see model.Guarded). An error for a
// name that is not known, or whose key is missing here, is an *perdure.Error
// with a hint.
type Resolver interface {
	Resolve(name string, opt ModelOptions) (model.Model, error)
}

// ExecutorConfig says what an [Executor] works with.
type ExecutorConfig struct {
	// Store holds the trees. Required.
	Store *perdure.Store
	// Resolver finds the models. Required.
	Resolver Resolver
	// Price returns what a call costs in millionths of a US dollar, and whether
	// that is known. It is called from many goroutines. Nil: what the models
	// say themselves (see model.Pricer); of those that do not, builtin: and
	// mock: models cost nothing, all other prices are unknown.
	Price func(name string, u model.Usage) (micros int64, known bool)
	// Gates has tasks for which no model is left wait at a gate of their tree until
	// a person answers it, see [perdure.Store.AnswerGate]. Without it they fail.
	Gates bool
	// GateOpened, when set, is called after a gate was opened.
	GateOpened func(ctx context.Context, tree *perdure.Tree, gate int)
	// Concurrency is how many tasks are executed at once of runs that do not say, for
	// estimates of their time. 0: 1.
	Concurrency int
	// Python is the interpreter that runs the code of REPLs; empty: python3. Hidden are folders
	// that the code must not read, in addition to the store's.
	Python string
	Hidden []string
	// Unsandboxed lets the code of REPLs run on a machine that has no sandbox for it, with the
	// rights of this process.
	Unsandboxed bool
	// Do does the work of a child of l that was leased for it: the method of the
	// [github.com/perdure/perdure/worker.Worker] whose handler this executor is. Nil: each sub-call
	// of a REPL goes through the queue, which takes longer.
	Do func(l, child *perdure.Lease)
	// Stopping returns a context that ends when that worker is stopping: a REPL or a search then goes
	// back to the queue instead of asking for its next reply, and code that runs is ended at once.
	// Nil: never.
	Stopping func() context.Context
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c *ExecutorConfig) validate() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("create executor: Store is missing"))
	}
	if c.Resolver == nil {
		errs = append(errs, errors.New("create executor: Resolver is missing"))
	}
	return errors.Join(errs...)
}

// Executor launches runs and does the work of their tasks. Its methods may be
// called from many goroutines. It starts none of its own, and its Handle is
// what a worker needs for trees of [KindRun].
type Executor struct {
	cfg  ExecutorConfig
	runs *refcache.Set[runKey, *run] // that are worked on, and a few others
	// blocks are the records of REPLs, consoles those of them that wait for sub-calls.
	blocks   *record.Records
	python   *python.Engine
	consoles *consoles
	builds   builds

	shapeOnce sync.Once // for the fields below: the schema of plans
	shape     *jsonreply.Shape
	shapeErr  error
}

// New checks the configuration and returns an executor, to be closed after use.
func New(cfg ExecutorConfig) (*Executor, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Executor{cfg: cfg, runs: refcache.New[runKey, *run](maxIdleRuns),
		blocks: record.New(cfg.Store), python: new(python.Engine), consoles: newConsoles(cfg.Logger)}, nil
}

// Close closes the contexts and the engines of REPLs that are open. Call it after the last
// Handle has returned.
func (e *Executor) Close() error {
	e.consoles.close()
	return e.runs.Close()
}

// Check reports whether a tree can be executed here: its configuration is known
// and its models are found, keys and programs included.
func (e *Executor) Check(tree *perdure.Tree) error {
	cfg, err := ParseConfig(tree.Config)
	if err != nil {
		return err
	}
	_, err = findTeam(e.cfg.Resolver, &cfg)
	return err
}

// errStopping is the cause of an attempt that is left because the worker is stopping.
var errStopping = errors.New("the worker is stopping")

// stopping returns errStopping if the worker is stopping.
func (e *Executor) stopping() error {
	if e.cfg.Stopping != nil && e.cfg.Stopping().Err() != nil {
		return errStopping
	}
	return nil
}

// untilStopping returns a context that also ends when the worker is stopping, with errStopping.
func (e *Executor) untilStopping(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unwatch := func() bool { return true }
	if e.cfg.Stopping != nil {
		worker := e.cfg.Stopping()
		if worker.Err() != nil { // at once, and not in another goroutine
			cancel(errStopping)
		}
		unwatch = context.AfterFunc(worker, func() { cancel(errStopping) })
	}
	return ctx, func() {
		unwatch()
		cancel(nil)
	}
}

// runKey identifies a run by its tree and by how often that was reopened, each time with a
// configuration of its own.
type runKey struct {
	tree     perdure.TreeID
	reopened int
}

// Handle does one attempt of one task and settles it through its lease. It can
// be interrupted at any point and be called again for the same task. An error
// has a method Failure that says how the attempt ends; when ctx ended, it is
// ctx's.
func (e *Executor) Handle(ctx context.Context, l *perdure.Lease) (err error) {
	key := runKey{l.Tree.ID, l.Tree.Reopened}
	entry, err := e.runs.Get(ctx, key, func(ctx context.Context) (*run, error) { return e.load(ctx, &l.Tree) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.runs.Put(entry)) }()
	if l.Task.Pending > 0 {
		return l.Wait(ctx) // it was retried before its children had ended
	}
	n, err := nodeOf(&l.Task)
	if err != nil {
		return err
	}
	a := &attempt{e: e, entry: entry, run: entry.Value, l: l, node: n, cuts: make(map[int64]chunks)}
	if err := a.begin(ctx); err != nil {
		return err
	}
	if done, err := a.decided(ctx); done || err != nil {
		return err
	}
	if skipped, err := a.skipped(ctx); skipped || err != nil {
		return err
	}
	return a.settle(ctx, a.work(ctx))
}

// work executes the task.
func (a *attempt) work(ctx context.Context) error {
	n := a.node
	switch {
	case n.Reduce != nil:
		return a.reduceInputs(ctx)
	case n.Search > 0:
		return a.search(ctx)
	case n.Call != nil:
		return a.subCall(ctx)
	case n.Repl != nil:
		return a.repl(ctx)
	case n.leaf():
		return a.read(ctx)
	}
	return a.breakDown(ctx)
}

// begin finds what the attempt needs to know of other tasks.
func (a *attempt) begin(ctx context.Context) error {
	if err := a.checkAgent(); err != nil {
		return err
	}
	if a.node.Of == 0 {
		return nil
	}
	of, err := a.e.cfg.Store.Task(ctx, a.node.Of)
	a.of = of.Prompt
	return err
}

// breakDown does the work of a task that has children, or is to have some.
func (a *attempt) breakDown(ctx context.Context) error {
	n := a.node
	children, err := a.children(ctx, a.l.Task.ID)
	if err != nil {
		return err
	}
	family, err := a.family(ctx, children, n)
	if err != nil {
		return err
	}
	if n.Plans && !a.divided(family) {
		return a.continuePlan(ctx, children, family)
	}
	if len(children) == 0 {
		if begun, err := a.decompose(ctx, family); begun || err != nil {
			return err
		}
	}
	return a.merge(ctx, family)
}

// attempt is one attempt of one task.
type attempt struct {
	e      *Executor
	entry  *refcache.Entry[runKey, *run]
	run    *run
	l      *perdure.Lease
	node   *node
	of     string           // the prompt of the task that node.Of names
	limits json.RawMessage  // see journaled.Limits; set while a model is asked
	cuts   map[int64]chunks // the context in parts of a size; see cutRanges
	next   int              // see positions
	short  bool             // an answer of this attempt is not good enough
	asked  atomic.Int64     // requests sent, those answered from the journal not counted

	mu       sync.Mutex         // guards refusals
	refusals map[request]string // see refusedBefore
}

// timed returns a context that ends when the tree's time is over.
func (a *attempt) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := a.l.Tree.Deadline()
	if deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, deadline, errTimeLimit)
}

// outOfTime returns the failure of an attempt whose context ended because the
// tree's time is over, nil when it did not.
func (a *attempt) outOfTime(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errTimeLimit) {
		return nil
	}
	return failf(KindBudget, "%w (%s, see --timeout)", errTimeLimit, a.l.Tree.Limits.WallTime)
}

// lastWrite returns a context for a write that is made although the work was
// cancelled: what was paid for is kept.
func lastWrite(ctx context.Context) (context.Context, context.CancelFunc) {
	const enough = 10 * time.Second
	return context.WithTimeout(context.WithoutCancel(ctx), enough)
}

// release gives the task back to the queue: the worker is stopping.
func (a *attempt) release(ctx context.Context) error {
	last, done := lastWrite(ctx)
	defer done()
	return a.l.Release(last)
}

// children lists the children of a task in order.
func (a *attempt) children(ctx context.Context, parent perdure.TaskID) ([]perdure.Task, error) {
	const page = 1000
	var all []perdure.Task
	f := perdure.TaskFilter{Tree: a.l.Tree.ID, Parent: &parent, Limit: page}
	for {
		got, err := a.e.cfg.Store.Tasks(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
		if len(got) < page {
			return all, nil
		}
		f.After = got[len(got)-1].ID
	}
}

// prompt is what the task asks: the tree's prompt, for a file of a batch with
// its name; below a planned task, that task's.
func (a *attempt) prompt() string {
	switch {
	case a.node.Step != nil:
		return a.l.Task.Prompt
	case a.node.Of != 0:
		return a.of
	case a.node.Call != nil:
		return a.l.Task.Prompt
	}
	prompt := a.run.root.Prompt
	if a.run.cfg.Batch {
		prompt = forFile(prompt, a.node.File)
	}
	return prompt
}

// query is what a retrieval engine looks for: the prompt without the names of
// files, so that it is the same all over the tree.
func (a *attempt) query() string {
	if a.run.cfg.Batch {
		return forFile(a.run.root.Prompt, "")
	}
	return a.prompt()
}

// complete ends the task with a result. If a child was retried meanwhile, the task waits for it,
// and its next lease makes the result with what that child answered.
func (a *attempt) complete(ctx context.Context, text string, d *Data) error {
	if a.l.Task.Parent == 0 {
		text = d.numbered(text)
	}
	if from := Origin(a.l.Tree.Config); a.l.Task.Parent == 0 && a.run.cfg.Ask != "" && !slices.Contains(d.Notes, from) {
		d.Notes = slices.Insert(d.Notes, 0, from) // the last note says why a result is partial
	}
	if a.l.Task.Parent == 0 && a.run.reader != nil {
		d.LeftOut = leftOut(a.run.reader.Manifest(), maxLeftOut)
		d.Notes = append(brokenFiles(a.run.reader.Manifest()), d.Notes...)
		d.addNotes(a.run.refusals())
		if err := a.run.nameCells(d.Citations); err != nil {
			return err
		}
		if a.run.cfg.Cite && !a.run.models[0].ranked && d.shownCitations() == 0 {
			d.addNotes([]string{noteNoQuote})
		}
	}
	raw, err := encode("result", d)
	if err != nil {
		return err
	}
	last, done := lastWrite(ctx)
	defer done()
	err = a.l.Complete(last, perdure.Result{Text: text, Data: raw, Partial: d.partial(), Skipped: d.Skipped,
		KeepCalls: !a.short})
	if errors.Is(err, perdure.ErrConflict) { // a child was retried meanwhile: the task ends after it
		return a.l.Wait(last)
	}
	if err == nil && a.l.Task.Parent == 0 {
		a.e.runs.Finish(a.entry)
	}
	return err
}
