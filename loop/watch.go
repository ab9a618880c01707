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

	mu     sync.Mutex // guards the rest
	denied int
	warned []string
	risky  []RiskyCall
	wanted []string // what a person is to be asked about
}

// hear is told what happens.
func (w *watch) hear(e agent.Event) {
	w.print(&e)
	w.gauge.Hear(&e)
	w.context()
	if e.Kind == agent.EventToolCall && e.Call != nil && w.sight != agent.SightNative {
		w.seen(e.Call)
	}
	if e.Kind != agent.EventToolResult {
		return
	}
	if e.Call != nil && mutates(e.Call) {
		w.ask(hook.PostToolCall, e.Call, map[string]any{"status": string(cmp.Or(e.Call.Status, agent.ToolCompleted))})
	}
	if w.full {
		w.stop(errFull)
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

// mutates tells whether a call may change something.
func mutates(c *agent.ToolCall) bool {
	return !slices.Contains([]agent.ToolKind{agent.ToolRead, agent.ToolSearch, agent.ToolFetch, agent.ToolThink}, c.Kind)
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
// for it.
func (w *watch) warn(text string) string {
	left := reinforce.MaxSession - reinforce.Tokens(w.r.state.Run.Reminder) - reinforce.Tokens(strings.Join(w.warned, "\n"))
	if text == "" || reinforce.Tokens(text) > left {
		return ""
	}
	w.warned = append(w.warned, text)
	return text
}
