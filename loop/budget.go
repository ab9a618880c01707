package loop

import (
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// unnoticed is the overhead of an iteration that never causes a warning. For an
// agent that ends within a second a snapshot is a large share, and harmless.
const unnoticed = time.Second

// overruns adds a warning for each budget of time that an iteration exceeded.
func (r *run) overruns(out *state.Outcome, detection time.Duration) {
	for _, w := range overruns(&r.cfg, &out.Times, detection) {
		out.Warnings = append(out.Warnings, w.Message)
		w.Iteration = out.Iteration
		r.warnings.add(w)
	}
}

// overruns returns a warning for each budget that an iteration exceeds. detection is
// the time that regression detection took.
func overruns(c *config.Config, t *state.Times, detection time.Duration) []hook.Warning {
	var all []hook.Warning
	if c.DetectionBudget > 0 && detection > c.DetectionBudget {
		all = append(all, hook.Warning{Kind: hook.WarnLatency,
			Message: fmt.Sprintf("regression detection took %s; the budget is %s",
				detection.Round(time.Millisecond), c.DetectionBudget)})
	}
	added, work := t.Snapshot+t.Hooks+t.Engine, t.Agent+t.Check+t.Metrics
	if c.OverheadPercent <= 0 || work <= 0 || time.Duration(added)*time.Millisecond <= unnoticed {
		return all
	}
	if percent := 100 * float64(added) / float64(work); percent > c.OverheadPercent {
		all = append(all, hook.Warning{Kind: hook.WarnOverhead, Message: fmt.Sprintf("snapshots, hooks and bookkeeping "+
			"added %.1f %% to the time of agent and check; the budget is %g %%",
			percent, c.OverheadPercent)})
	}
	return all
}

// warnings holds warnings until the next save, which writes them as events. Handlers
// of tool calls may add warnings concurrently.
type warnings struct {
	mu  sync.Mutex // guards all
	all []hook.Warning
}

func (w *warnings) add(one hook.Warning) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, one)
}

// warnHandler is a handler that did not do what it is there for.
const warnHandler hook.WarningKind = "handler"

// observe receives the notices of a runner of handlers.
func (w *warnings) observe(n hook.Notice) {
	if n.Warning != nil {
		w.add(*n.Warning)
	}
	if rec := n.Record; rec != nil && rec.Fault != nil {
		w.add(hook.Warning{Kind: warnHandler, Iteration: rec.Iteration,
			Message: fmt.Sprintf("handler %q of %s failed: %s", rec.Handler, rec.Hook,
				clip.Bytes(rec.Fault.Message, maxAgentText))})
	}
}

func (w *warnings) take() []record.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []record.Event
	for _, one := range w.all {
		events = append(events, record.Event{Kind: EventWarning,
			Data: map[string]any{"iteration": one.Iteration, "kind": one.Kind, "message": one.Message}})
	}
	w.all = nil
	return events
}
