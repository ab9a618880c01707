package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/loop/turnguard"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

// errFull is the cause of a turn that was stopped because the agent's context is
// full.
var errFull = errors.New("the context is full")

// watch follows a turn of an agent: what it says goes to its task, its calls of
// tools to the handlers of hooks, and a context that fills up makes a handoff.
type watch struct {
	r    *run
	ctx  context.Context
	stop context.CancelCauseFunc
	out  *output
	now  *activity

	hearing sync.Mutex // guards the following: the agent and the meter report events
	gauge   *agent.Gauge
	full    bool // the turn ends at the next boundary
	tally   *tally
	metering

	mu      sync.Mutex      // guards the following, and Unpermitted of the turn
	waits   int             // of the agent that were reported
	refused map[string]bool // names of calls that were refused for want of permission

	reading sync.Mutex // guards read
	// read reads what the agent reports in files of its own; nil without such files.
	read func()

	// line is where the agent's own hooks ask; nil without any.
	line  *vendorhook.Line
	calls *turnguard.Guard
	kept  *policy.Journal
}

// watch begins to follow a turn: calls are written down from here on, and the agent's
// own hooks are listened to.
func (r *run) watch(ctx context.Context, stop context.CancelCauseFunc, a agent.Agent, prompt string) (*watch, error) {
	t := &r.state.Run
	t.Sight = agent.SightNone
	if seen, ok := a.(agent.Watcher); ok {
		t.Sight = seen.Sight()
	}
	w := &watch{r: r, ctx: ctx, stop: stop, refused: map[string]bool{},
		gauge: agent.NewGauge(r.e.cfg.Handoff.Window, prompt)}
	var err error
	if w.tally, err = r.newTally(ctx, a); err != nil {
		return nil, err
	}
	runs, ok := a.(agent.Hooked)
	hooked := ok && runs.Hooked() && len(r.e.cfg.Hook) > 0
	if w.kept, err = policy.OpenJournal(r.callsPath()); err != nil {
		return nil, err
	}
	if w.calls, err = r.guard(ctx, w.kept, t.Sight == agent.SightNative, hooked); err == nil && len(r.e.cfg.Hook) > 0 {
		// A turn that is stopped leaves its hooks without an answer until its processes are gone.
		w.line, err = vendorhook.Listen(context.WithoutCancel(ctx), r.e.cfg.Sockets, w.answer)
	}
	if err != nil {
		return nil, errors.Join(err, w.kept.Close())
	}
	w.out, w.now = r.outputOf(ctx), r.newActivity(ctx)
	if err = w.startMeter(a); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// reader keeps the function that reads what the agent reports in files.
func (w *watch) reader(read func()) {
	w.reading.Lock()
	defer w.reading.Unlock()
	w.read = read
}

// answer answers a hook. It first reads what the agent has reported in files, which can stop the
// turn. A turn that is stopped gets no answer: after one, also a denial, the agent would send
// its model another request.
func (w *watch) answer(ctx context.Context, q *vendorhook.Question) vendorhook.Answer {
	w.reading.Lock()
	read := w.read
	w.reading.Unlock()
	if read != nil {
		read()
	}
	if w.ctx.Err() == nil {
		if a := w.calls.Answer(ctx, q); w.ctx.Err() == nil {
			return a
		}
	}
	<-ctx.Done()
	return vendorhook.Answer{Verdict: vendorhook.Deny, Text: "the turn is stopped"}
}

// env says where the agent's own hooks ask, and where the meter is.
func (w *watch) env() []string {
	env := w.meterEnv()
	if w.line != nil {
		env = append(env, vendorhook.SocketVariable+"="+w.line.Socket())
	}
	return env
}

// command is what the agent runs as its hook; nil for nothing.
func (w *watch) command() []string {
	if w.line == nil {
		return nil
	}
	return append(slices.Clone(w.r.e.cfg.Hook), "--socket", w.line.Socket())
}

// close ends the watching. How the calls were seen is known by then: natively only
// when the agent's hooks asked, and for each call that was made.
func (w *watch) close() error {
	w.closeMeter()
	w.now.close()
	w.out.close()
	var err error
	if w.line != nil {
		err = w.line.Close() // then nothing is asked any more
	}
	err = errors.Join(err, w.kept.Close())
	t := &w.r.state.Run
	t.Inject = strings.TrimSpace(t.Inject + "\n" + w.calls.Warned())
	sight, unasked := w.calls.Sight(t.Sight)
	if t.Sight = sight; unasked > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf("the agent made %s without asking its hook: such calls were seen, not "+
			"judged",
			human.Count(int64(unasked), "tool call")))
	}
	return err
}

// hear receives the events.
func (w *watch) hear(e agent.Event) {
	w.hearing.Lock()
	defer w.hearing.Unlock()
	w.preferObserved(&e)
	w.print(&e)
	w.gauge.Hear(&e)
	w.context()
	w.calls.Hear(&e)
	w.tally.hear(&e)
	w.report(&e)
	w.now.hear(&e, w.tally)
	if e.Kind == agent.EventUsage { // no other event changes the usage
		if text := w.tally.exceeded(); text != "" {
			w.stop(&spentError{text})
		}
	}
	if w.full && e.Kind == agent.EventToolResult {
		w.stop(errFull)
	}
}

// print streams what the agent says to its task.
func (w *watch) print(e *agent.Event) {
	text := ""
	if slices.Contains([]agent.EventKind{agent.EventMessage, agent.EventOutput, agent.EventStderr, agent.EventNotice,
		agent.EventBackground},
		e.Kind) {
		text = e.Text
	}
	if e.Kind == agent.EventToolCall && e.Call != nil {
		text = "[" + e.Call.Title + "]"
	}
	w.out.say(text)
}

// context records the work when the agent's context is nearly full. If the agent
// itself reported the fill, or the meter observed it, the turn ends at the next boundary and a
// fresh session continues. An estimate does not end the turn, because the agent may have compacted
// its context without reporting it.
func (w *watch) context() {
	w.fill()
	t := w.r.e.cfg.Handoff.Thresholds.WithDefaults()
	threshold, crossed := w.gauge.Crosses(t.Warn, t.Stop)
	if !crossed {
		return
	}
	used, source := w.gauge.Used()
	said, stop := ledger.WarnMessage, threshold >= t.Stop
	if stop {
		said = ledger.StopMessage
		w.full = source != agent.SourceEstimated
	}
	w.out.say(fmt.Sprintf("[%s (%d %%, %s)]", said, int(used*100), source))
	w.r.hand(w.ctx, "context_limit", ledger.Op{Kind: ledger.OpContext, Used: used, Source: string(source)})
	w.r.note(EventContext, map[string]any{"iteration": w.r.state.Run.Number, "used_percent": int(used * 100),
		"source": source, "stop": w.full})
}
