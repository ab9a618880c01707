package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/agenthook"
	"github.com/perdure/perdure/internal/toolcall"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/reinforce"
	"github.com/perdure/perdure/relay"
)

// errFull is the cause of a turn that was stopped because the agent's context is
// full.
var errFull = errors.New("the context is full")

// watch follows a turn of an agent: what it says goes to its task, its calls of
// tools to the handlers of hooks, and a context that fills up makes a handoff.
type watch struct {
	r     *run
	ctx   context.Context
	stop  context.CancelCauseFunc
	gauge *agent.Gauge
	sight agent.Sight
	out   *output
	full  bool // the turn ends at the next boundary

	// line is where the agent's own hooks ask; nil without any.
	line *agenthook.Line
	// hooked tells that the agent runs hooks of its own, which ask.
	hooked bool

	mu    sync.Mutex // guards the rest
	calls *toolcall.Journal
	asked []*asked
	told  map[string]bool // risky calls that were only seen
	// native counts what the agent's own hooks asked, unasked the calls that were made
	// although nobody had asked.
	native, unasked int
	// tokens counts what the agent was told, warned is what it is to be told with the
	// next prompt.
	tokens int
	warned []string
}

// watch begins to follow a turn: calls are written down from here on, and the agent's
// own hooks are listened to.
func (r *run) watch(ctx context.Context, stop context.CancelCauseFunc, a agent.Agent, prompt string) (*watch, error) {
	t := &r.state.Run
	t.Sight = agent.SightNone
	if seen, ok := a.(agent.Watcher); ok {
		t.Sight = seen.Sight()
	}
	w := &watch{r: r, ctx: ctx, stop: stop, gauge: agent.NewGauge(r.e.cfg.Handoff.Window, prompt), sight: t.Sight, told: make(map[string]bool)}
	var err error
	if w.calls, err = toolcall.OpenJournal(r.callsPath()); err != nil {
		return nil, err
	}
	if len(r.e.cfg.Hook) > 0 {
		runs, ok := a.(agent.Hooked)
		w.hooked = ok && runs.Hooked()
		if w.line, err = agenthook.Listen(ctx, r.e.dir(&r.l.Tree), w.answer); err != nil {
			return nil, errors.Join(err, w.calls.Close())
		}
	}
	w.out = r.outputOf(ctx)
	return w, nil
}

// env says where the agent's own hooks ask.
func (w *watch) env() []string {
	if w.line == nil {
		return nil
	}
	return []string{agenthook.SocketVariable + "=" + w.line.Socket()}
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
	w.out.close()
	var err error
	if w.line != nil {
		err = w.line.Close() // then nothing is asked any more
	}
	err = errors.Join(err, w.calls.Close())
	t := &w.r.state.Run
	t.Inject = strings.TrimSpace(t.Inject + "\n" + strings.Join(w.warned, "\n"))
	switch {
	case w.native > 0 && w.unasked == 0:
		t.Sight = agent.SightNative
	case w.hooked && w.unasked > 0:
		t.Warnings = append(t.Warnings, fmt.Sprintf("the agent made %s without asking its hook: such calls were seen, not judged",
			counted(w.unasked, "call of a tool", "calls of tools")))
	}
	return err
}

// hear is told what happens.
func (w *watch) hear(e agent.Event) {
	w.print(&e)
	w.gauge.Hear(&e)
	w.context()
	w.called(&e)
	if e.Kind != agent.EventToolResult {
		return
	}
	if w.full {
		w.stop(errFull)
	}
}

// called is told of calls of tools.
func (w *watch) called(e *agent.Event) {
	if e.Call == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.Kind == agent.EventToolResult:
		w.after(e.Call, false)
	case e.Kind == agent.EventToolCall && w.sight != agent.SightNative && !w.hooked:
		w.seen(e.Call)
	}
}

// print streams what the agent says to its task.
func (w *watch) print(e *agent.Event) {
	text := ""
	if slices.Contains([]agent.EventKind{agent.EventMessage, agent.EventOutput, agent.EventStderr, agent.EventNotice}, e.Kind) {
		text = e.Text
	}
	if e.Kind == agent.EventToolCall && e.Call != nil {
		text = "[" + e.Call.Title + "]"
	}
	w.out.say(text)
}

// context records the work when the agent's context is nearly full. One that the
// agent itself reports as full ends the turn at the next boundary, and a fresh
// session goes on; an estimate does not, since it knows nothing of what the agent
// has shortened by itself.
func (w *watch) context() {
	t := w.r.e.cfg.Handoff.Thresholds.WithDefaults()
	threshold, crossed := w.gauge.Crosses(t.Warn, t.Stop)
	if !crossed {
		return
	}
	used, source := w.gauge.Used()
	said, stop := relay.WarnMessage, threshold >= t.Stop
	if stop {
		said = relay.StopMessage
		w.full = source == agent.SourceReported
	}
	w.out.say(fmt.Sprintf("[%s (%d %%, %s)]", said, int(used*100), source))
	w.r.hand(w.ctx, "context_limit", relay.Op{Kind: relay.OpContext, Used: used, Source: string(source)})
	w.r.note(EventContext, map[string]any{"iteration": w.r.state.Run.Number, "used_percent": int(used * 100), "source": source, "stop": w.full})
}

// ask asks the handlers about a call of a tool.
func (w *watch) ask(name hook.Name, c *agent.ToolCall, more map[string]any) hook.Outcome {
	inputs := map[string]any{"tool": c.Name, "kind": string(c.Kind), "target": cmp.Or(c.Command, strings.Join(c.Paths, " "), c.Title),
		"command": c.Command, "paths": c.Paths, "input": c.Input, "call_id": c.ID}
	for key, value := range more {
		inputs[key] = value
	}
	out, err := w.r.ask(w.ctx, name, strings.TrimSpace(cmp.Or(c.Title, c.Name, string(c.Kind))), inputs)
	if err != nil { // nobody knows what it would have said
		return hook.Outcome{Verdict: hook.Block, Reasons: []hook.Reason{{Content: err.Error()}}}
	}
	return out
}

// warn keeps what the agent is told beside a call, as long as a session has room
// for it: natively, or with the next prompt.
func (w *watch) warn(text string, native bool) string {
	n := reinforce.Tokens(text)
	if text == "" || n > reinforce.MaxSession-reinforce.Tokens(w.r.state.Run.Reminder)-w.tokens {
		return ""
	}
	w.tokens += n
	if !native {
		w.warned = append(w.warned, text)
	}
	return text
}
