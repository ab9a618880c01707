package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Defaults of [Config].
const (
	DefaultLatencyBudget   = 500 * time.Millisecond
	DefaultOverheadPercent = 10
	DefaultMaxInject       = 4 << 10
)

// Config configures [New].
type Config struct {
	// Handlers are asked in this order, those of one hook one after another.
	Handlers []Registration
	// Log gets a line for each invocation; nil for none. The runner does not close
	// it.
	Log *Log
	// Observe, when set, receives each invocation and each warning, before Run
	// or EndIteration returns. Runs at the same time call it at the same time.
	Observe func(Notice)
	// LatencyBudget is how long the built-in handlers of a hook that looks for
	// regressions may take together; more is a warning. 0: DefaultLatencyBudget;
	// negative: any time.
	LatencyBudget time.Duration
	// OverheadPercent is how much handlers may add to an iteration's time; more is
	// a warning. 0: DefaultOverheadPercent; negative: any.
	OverheadPercent float64
	// MaxInject is the longest [Outcome].Inject, in bytes. 0: DefaultMaxInject;
	// negative: nothing is injected.
	MaxInject int
	// Logger: nil discards.
	Logger *slog.Logger
}

// Registration is a handler at a hook.
type Registration struct {
	// Hook is where it is asked.
	Hook Name
	// Name is what people call it, unique at its hook; at most [MaxNameBytes]
	// without control characters. Required.
	Name string
	// Handler answers. Required.
	Handler Handler
	// Timeout ends an invocation. 0: the hook's own, see [Table]; negative: none.
	Timeout time.Duration
	// OnFault is the policy for faults. Empty: the hook's own policy, see
	// [Table].
	OnFault OnFault
}

func (c Config) withDefaults() Config {
	c.LatencyBudget = cmp.Or(c.LatencyBudget, DefaultLatencyBudget)
	c.OverheadPercent = cmp.Or(c.OverheadPercent, DefaultOverheadPercent)
	c.MaxInject = cmp.Or(c.MaxInject, DefaultMaxInject)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c Config) validate() error {
	var errs []error
	names := make(map[[2]string]bool)
	for i, reg := range c.Handlers {
		field := fmt.Sprintf("Handlers[%d]", i)
		if !reg.Hook.known() {
			errs = append(errs, unknownHook(field+".Hook", reg.Hook))
		}
		if reg.Handler == nil {
			errs = append(errs, errors.New(field+".Handler: is missing"))
		}
		key := [2]string{string(reg.Hook), reg.Name}
		if names[key] {
			errs = append(errs, fmt.Errorf("%s.Name: %q is there twice at this hook", field, reg.Name))
		}
		names[key] = true
		errs = append(errs, checkName(field+".Name", reg.Name), checkOnFault(field+".OnFault", reg.OnFault))
	}
	return errors.Join(errs...)
}

func checkName(field, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return fmt.Errorf("%s: is missing", field)
	case strings.ContainsFunc(name, isControl):
		return fmt.Errorf("%s: contains a control character", field)
	}
	return within(field, MaxNameBytes, len(name))
}

func checkOnFault(field string, policy OnFault) error {
	return oneOf(field, string(policy), []string{string(FaultContinues), string(FaultBlocks)})
}

// Notice is the argument of [Config].Observe: one of its members is set.
type Notice struct {
	Record  *Record
	Warning *Warning
}

// WarningKind says what a [Warning] is about.
type WarningKind string

// The kinds of warnings.
const (
	// WarnLatency: regression detection took longer than LatencyBudget.
	WarnLatency WarningKind = "latency"
	// WarnSnapshot: there are files that a snapshot does not have, or not as they
	// were at one time. Runners do not warn of it.
	WarnSnapshot WarningKind = "snapshot"
	// WarnOverhead: handlers added more to an iteration than OverheadPercent.
	WarnOverhead WarningKind = "overhead"
	// WarnLog: a line may be missing in the log, or is not durable.
	WarnLog WarningKind = "log"
)

// Warning is something a person may want to know of the handlers.
type Warning struct {
	Kind WarningKind
	// Hook is empty when it is about an iteration.
	Hook      Name
	LoopID    string
	Iteration int
	// Took is how long it took, and Budget how long it may; Percent is set for
	// WarnOverhead and then Budget is not.
	Took, Budget time.Duration
	Percent      float64
	// Message says it in words.
	Message string
}

// Runner asks the handlers of one loop. It is safe for concurrent use.
type Runner struct {
	cfg     Config
	hooks   map[Name]*station
	metrics Metrics

	mu sync.Mutex // guards the hung of all handlers
}

// station is a hook with its handlers.
type station struct {
	row      Row
	handlers []*post
}

// post is a handler in its place.
type post struct {
	Registration
	kind     Kind
	patience time.Duration
	// hung are abandoned calls that have not returned; each sends its
	// answer when it does.
	hung []<-chan answer
}

// New checks the configuration; the error names everything that is wrong.
func New(cfg Config) (*Runner, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure hooks: %w", err)
	}
	r := &Runner{cfg: cfg.withDefaults(), hooks: make(map[Name]*station)}
	for _, row := range Table() {
		r.hooks[row.Hook] = &station{row: row}
	}
	for _, reg := range cfg.Handlers {
		at := r.hooks[reg.Hook]
		reg.Timeout = cmp.Or(reg.Timeout, at.row.Timeout)
		at.handlers = append(at.handlers,
			&post{Registration: reg, kind: kindOf(reg.Handler), patience: patienceWith(reg.Handler)})
	}
	return r, nil
}

// Has reports whether a hook has handlers: without, its inputs need not be made.
func (r *Runner) Has(name Name) bool {
	at := r.hooks[name]
	return at != nil && len(at.handlers) > 0
}

// Run asks the handlers of the message's hook one after another. All are asked,
// also after a BLOCK, unless ctx ends. Role, timestamp and sender of the message
// are filled in when they are missing.
//
// An error is one of the message, or wraps ctx.Err(); the verdict then is
// BLOCK, and the records are of the handlers that were asked. Faults of
// handlers are not errors.
func (r *Runner) Run(ctx context.Context, m Message) (Outcome, error) {
	m = m.withDefaults(time.Now())
	at := r.hooks[m.Metadata.HookName]
	err := m.validate()
	if at == nil {
		err = errors.Join(unknownHook("metadata.hook_name", m.Metadata.HookName), err)
	}
	if err != nil {
		return Outcome{Verdict: Block}, fmt.Errorf("run hook: %w", err)
	}
	out := Outcome{Verdict: Allow}
	var builtin time.Duration
	for _, h := range at.handlers {
		if ctx.Err() != nil {
			break
		}
		rec, reply := r.ask(ctx, at.row, h, m)
		out.add(rec, reply, max(0, r.cfg.MaxInject))
		r.keep(rec, h)
		if h.kind == KindBuiltin {
			builtin += rec.Duration
		}
	}
	if budget := r.cfg.LatencyBudget; at.row.Detects && budget > 0 && builtin > budget {
		r.warn(Warning{
			Kind: WarnLatency, Hook: at.row.Hook, LoopID: m.Metadata.LoopID, Iteration: m.Metadata.Iteration, Took: builtin,
			Budget: budget,
			Message: fmt.Sprintf("the built-in handlers of %s took %s; the budget is %s", at.row.Hook,
				builtin.Round(time.Millisecond), budget),
		})
	}
	if err := ctx.Err(); err != nil {
		out.Verdict = Block
		return out, fmt.Errorf("run hook %q: %w", at.row.Hook, err)
	}
	return out, nil
}

// ask asks one handler and writes down what came of it.
func (r *Runner) ask(ctx context.Context, row Row, h *post, m Message) (Record, Reply) {
	began := time.Now()
	reply, fault := r.invoke(ctx, h, m)
	rec := Record{
		Time: began.UTC().Truncate(time.Microsecond), Hook: row.Hook, LoopID: m.Metadata.LoopID,
		Iteration: m.Metadata.Iteration,
		Handler:   h.Name, Kind: h.kind, Duration: time.Since(began).Truncate(time.Microsecond),
		Verdict: reply.Metadata.Verdict, StateChanges: reply.Metadata.StateChanges,
	}
	if fault == nil {
		return rec, reply
	}
	rec.Fault = fault.recorded()
	// Of a reply with a fault only what is strict counts.
	rec.Verdict = ""
	if reply.Metadata.Verdict == Warn || reply.Metadata.Verdict == Block {
		rec.Verdict = reply.Metadata.Verdict
	}
	if policyOf(row, h.OnFault, m) == FaultBlocks {
		rec.Verdict = Block
	}
	r.cfg.Logger.Warn("hook handler failed", "hook", row.Hook, "handler", h.Name, "iteration", rec.Iteration,
		"duration_ms", rec.Duration.Milliseconds(), "error", rec.Fault.Message)
	return rec, reply
}

// policyOf returns the policy for a fault at a hook.
func policyOf(row Row, own OnFault, m Message) OnFault {
	if own == "" && row.Destructive && !m.destroys() {
		return FaultContinues
	}
	return cmp.Or(own, row.OnFault)
}

// keep counts a record, writes it to the log and passes it to Observe.
func (r *Runner) keep(rec Record, h *post) {
	r.metrics.Add(rec)
	if h.Timeout >= 0 {
		r.metrics.spend(rec.Iteration, rec.Duration)
	}
	if r.cfg.Log != nil {
		if err := r.cfg.Log.Append(rec); err != nil {
			r.warn(Warning{Kind: WarnLog, Hook: rec.Hook, LoopID: rec.LoopID, Iteration: rec.Iteration, Message: err.Error()})
		}
	}
	if r.cfg.Observe != nil {
		r.cfg.Observe(Notice{Record: &rec})
	}
}

// Record writes an invocation of a built-in handler that its caller made itself to the log.
func (r *Runner) Record(rec Record) {
	if r.cfg.Log == nil {
		return
	}
	if err := r.cfg.Log.Append(rec); err != nil {
		r.warn(Warning{Kind: WarnLog, Hook: rec.Hook, LoopID: rec.LoopID, Iteration: rec.Iteration, Message: err.Error()})
	}
}

func (r *Runner) warn(w Warning) {
	r.cfg.Logger.Warn("hooks", "kind", w.Kind, "hook", w.Hook, "iteration", w.Iteration, "message", w.Message)
	if r.cfg.Observe != nil {
		r.cfg.Observe(Notice{Warning: &w})
	}
}

// EndIteration returns what the handlers asked with this number of iteration
// took compared with the time the iteration took, and warns when it is more than
// OverheadPercent. It makes the lines of the log durable.
func (r *Runner) EndIteration(loopID string, iteration int, wall time.Duration) Overhead {
	if r.cfg.Log != nil {
		if err := r.cfg.Log.Sync(); err != nil {
			r.warn(Warning{Kind: WarnLog, LoopID: loopID, Iteration: iteration, Message: err.Error()})
		}
	}
	o := r.metrics.end(iteration, wall)
	if most := r.cfg.OverheadPercent; most > 0 && o.Percent > most {
		r.warn(Warning{
			Kind: WarnOverhead, LoopID: loopID, Iteration: iteration, Took: o.HookTime, Percent: o.Percent,
			Message: fmt.Sprintf("handlers added %.1f %% to iteration %d; the budget is %g %%", o.Percent, iteration, most),
		})
	}
	return o
}

// Metrics returns how long handlers took.
func (r *Runner) Metrics() *Metrics { return &r.metrics }

// Close waits until abandoned handlers have returned, or ctx ends; the
// error then names those that have not. The others it closes, each once, if they
// are an io.Closer and can be compared. Run is not called any more.
func (r *Runner) Close(ctx context.Context) error {
	var errs []error
	closed := make(map[io.Closer]bool)
	for _, row := range Table() {
		for _, h := range r.hooks[row.Hook].handlers {
			if !r.wait(ctx, h) {
				errs = append(errs, fmt.Errorf("handler %q of %s has not returned: %w", h.Name, row.Hook, ctx.Err()))
				continue
			}
			if c, ok := closer(h.Handler); ok && !closed[c] {
				closed[c] = true
				errs = append(errs, c.Close())
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close hooks: %w", err)
	}
	return nil
}
