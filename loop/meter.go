package loop

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/hook"
)

// metering is what is measured of a turn.
type metering struct {
	meter *meter.Meter // nil without one
	// endpoints are the addresses of the meter for an agent that takes them; nil for one that gets
	// them in variables. uncounted says why there is no meter although a budget needs one.
	endpoints map[string]string
	uncounted string
	// last is the last request to a model that ended.
	last meter.Exchange
	// observed is set if the meter knows the context: other figures of it do not count then.
	observed bool
	// size is the window that the agent itself reported.
	size int64
	// most is the largest used part of the context.
	most   float64
	source agent.Source
}

// counts reports whether the loop must count all requests of an agent, and can.
func (r *run) counts(a agent.Agent) bool {
	_, ok := a.(agent.Metered)
	return ok && r.state.Counts && r.cfg.MustCount()
}

// startMeter starts the meter of a turn, if the loop has one or a budget needs it.
func (w *watch) startMeter(a agent.Agent) error {
	if !w.r.cfg.Meter && !w.r.counts(a) {
		return nil
	}
	var given map[meter.Provider]string
	if m, ok := a.(agent.Metered); ok {
		addresses, err := m.Endpoints(w.r.files.Root(), w.r.cfg.Env)
		if err != nil && !w.r.cfg.Meter {
			w.uncounted = err.Error()
			return nil
		}
		if err == nil {
			given = make(map[meter.Provider]string)
			for name, address := range addresses {
				given[meter.Provider(name)] = address
			}
		}
	}
	upstreams, err := meter.Upstreams(os.Environ(), given)
	if err != nil {
		return fail("meter", "%s", err)
	}
	w.meter, err = meter.Start(meter.Config{Upstreams: upstreams, Rate: w.r.e.cfg.Rate, Observe: w.exchanged,
		Admit:  w.admit,
		Logger: w.r.e.cfg.Logger})
	if err != nil || given == nil {
		return err
	}
	w.endpoints = make(map[string]string)
	for name := range given {
		w.endpoints[string(name)] = w.meter.URL(name)
	}
	return nil
}

// admit refuses the requests of a turn that was stopped. When the context is full, the turn ends
// before the next request.
func (w *watch) admit() error {
	w.hearing.Lock()
	if w.full && w.observed {
		w.stop(errFull)
	}
	w.hearing.Unlock()
	return context.Cause(w.ctx)
}

// meterEnv returns the variables with which the agent sends its requests to the meter.
func (w *watch) meterEnv() []string {
	if w.meter == nil {
		return nil
	}
	if w.endpoints != nil {
		return w.meter.Direct(os.Environ())
	}
	name := w.r.agentName()
	return w.meter.Variables(meter.DialectOf(strings.TrimPrefix(name, "acp:")), os.Environ())
}

// closeMeter ends the meter and waits for the figures of all requests. It can be called again.
func (w *watch) closeMeter() {
	if w.meter == nil {
		return
	}
	if err := w.meter.Close(); err != nil {
		w.r.e.cfg.Logger.Debug("meter", "error", err)
	}
}

// exchanged hears of a request of the agent that ended.
func (w *watch) exchanged(x meter.Exchange) {
	if x.API == "" {
		return
	}
	w.hearing.Lock()
	w.last = x
	window := cmp.Or(contextOf(&x).Window, w.size)
	w.hearing.Unlock()
	e := agent.Event{Kind: agent.EventUsage, Usage: new(usageOf(&x.Total)), CostMicros: x.Total.Cost()}
	if x.Context != nil {
		e.Context = &agent.Context{Used: x.Context.Used, Size: window, Source: agent.SourceObserved}
		if x.Context.Estimated {
			e.Context.Source = agent.SourceEstimated
		}
	}
	w.hear(e)
	if x.Limited {
		w.hear(agent.Event{Kind: agent.EventNotice, Text: "[rate limit" + untilText(x.Until) + "]"})
	}
	if x.Overflow {
		w.hear(agent.Event{Kind: agent.EventNotice, Text: "[a request did not fit into the model's context]"})
	}
}

func untilText(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return ", until " + until.UTC().Format(time.TimeOnly)
}

func contextOf(x *meter.Exchange) meter.Context {
	if x.Context == nil {
		return meter.Context{}
	}
	return *x.Context
}

// usageOf returns the sum of the requests of a turn as an agent would report it.
func usageOf(t *meter.Total) agent.Usage {
	u := agent.Usage{InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedTokens,
		CacheWriteTokens: t.CacheWriteTokens, Reported: t.Answers > 0, Source: agent.SourceObserved}
	if t.Estimated > 0 {
		u.Source = agent.SourceEstimated
	}
	return u
}

// preferObserved leaves out the agent's own figures of the context once the meter has some, so
// that a threshold is not crossed again when two figures differ.
func (w *watch) preferObserved(e *agent.Event) {
	if w.meter == nil || e.Kind != agent.EventUsage || e.Context == nil {
		return
	}
	if e.Context.Source == agent.SourceReported {
		w.size = max(e.Context.Size, 0)
		if w.observed {
			e.Context = nil
		}
		return
	}
	w.observed = true
}

// fill keeps the largest used part of the context.
func (w *watch) fill() {
	used, source := w.gauge.Used()
	if used >= w.most || source != agent.SourceEstimated && w.source == agent.SourceEstimated {
		w.most, w.source = used, source
	}
}

// measured completes the result of a turn with the figures of the meter, and the failure with
// what the provider said. The larger usage counts: an agent can leave requests out, and the
// meter does not see those that pass it by.
func (w *watch) measured(result *agent.Result, failure *agent.Error) (*agent.Result, *agent.Error) {
	w.fill() // without any event
	percent := int(w.most * 100)
	w.r.state.Run.Measured = state.Measured{ContextPercent: percent, Context: w.source}
	w.r.state.Uncounted = w.uncounted
	if w.meter == nil {
		return result, failure
	}
	total := w.last.Total
	seen := usageOf(&total)
	w.noteUncounted(result, &seen)
	if seen.Reported {
		full := agent.Result{}
		if result != nil {
			full = *result
		}
		if own := full.Usage; !own.Reported || tokensOf(&seen) >= tokensOf(&own) {
			full.Usage = seen
			// The agent's own cost is that of the requests which it counts.
			if cost := total.Cost(); cost != nil || !isMost(&own, &seen) {
				full.CostMicros = cost
			}
		}
		result = &full
	}
	return result, explained(failure, &w.last)
}

func tokensOf(u *agent.Usage) int64 { return u.InputTokens + u.OutputTokens }

// tolerance is how far two counts of the same requests may differ, as a part of the larger one: a
// provider's count and an agent's estimate do.
const tolerance = 0.02

// isMost reports whether a usage covers the requests of another one.
func isMost(u, of *agent.Usage) bool {
	return u.Reported && float64(tokensOf(u)) >= float64(tokensOf(of))*(1-tolerance)
}

// noteUncounted records that requests of a turn have passed the meter by.
func (w *watch) noteUncounted(result *agent.Result, seen *agent.Usage) {
	if result == nil || !result.Usage.Reported && (seen.Reported || result.Messages == 0) {
		return
	}
	if own := &result.Usage; own.Reported && (tokensOf(own) == 0 || isMost(seen, own)) {
		return
	}
	text := fmt.Sprintf("the meter saw %s of %s, which reports %s: its other requests went to another address",
		human.Count(tokensOf(seen), "token"), w.r.agentName(), human.Count(tokensOf(&result.Usage), "token"))
	if !result.Usage.Reported {
		text = fmt.Sprintf("the meter saw no request of %s: they went to another address", w.r.agentName())
	}
	w.r.state.Uncounted = text
	t := &w.r.state.Run
	t.Warnings = append(t.Warnings, text)
	w.r.warnings.add(hook.Warning{Kind: "meter", Iteration: t.Number, Message: text})
}

// explained returns a failure of a turn for which the agent gave no reason, with the reason that
// the provider gave for the last request.
func explained(failure *agent.Error, x *meter.Exchange) *agent.Error {
	if failure == nil || failure.Kind != agent.KindFailed {
		return failure
	}
	with := *failure
	switch {
	case x.Overflow:
		with.Kind = agent.KindOverflow
	case x.Limited && x.Until.IsZero() && strings.Contains(strings.ToLower(x.Message), "quota"):
		with.Kind = agent.KindQuota
	case x.Limited:
		with.Kind, with.Until = agent.KindRateLimit, x.Until
	default:
		return failure
	}
	with.Msg = fmt.Sprintf("%s; the provider answered %d: %s", with.Msg, x.Status, cmp.Or(x.Message, "no reason given"))
	return &with
}

// addMeasured adds how a turn was measured to that of the iteration: the worst source of the
// usage, and the fullest context.
func addMeasured(sum *state.Measured, turn state.Measured) {
	order := []agent.Source{"", agent.SourceReported, agent.SourceObserved, agent.SourceEstimated}
	if slices.Index(order, turn.Usage) > slices.Index(order, sum.Usage) {
		sum.Usage = turn.Usage
	}
	if turn.Context != "" && (sum.Context == "" || turn.ContextPercent >= sum.ContextPercent) {
		sum.ContextPercent, sum.Context = turn.ContextPercent, turn.Context
	}
}
