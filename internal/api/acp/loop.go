package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// loopView shows a loop: its iterations as the plan, the turns of the agent and the checks as tool
// calls, and the rest as text.
type loopView struct {
	t    *turn
	tree perdure.TreeID
	// until is the check.
	until string
	// live is set unless past events are replayed. Quiet sends nothing: the editor has seen the
	// events.
	live, quiet bool
	// past is set while earlier events are shown: the plan is sent once after them.
	past  bool
	plan  []planEntry
	calls map[string]bool // by ID
}

// eventData is the data of the events that are not shown as lines.
type eventData struct {
	Iteration int    `json:"iteration"`
	Agent     string `json:"agent"`
	Passed    bool   `json:"passed"`
	Skipped   bool   `json:"skipped"`
	Final     bool   `json:"final"`
	Gate      int    `json:"gate"`
}

// newLoopView returns the view of a loop with its current configuration.
func newLoopView(ctx context.Context, t *turn, p *Project, id perdure.TreeID) (*loopView, config.Config, error) {
	l, err := p.Loop(ctx, id)
	if err != nil {
		return nil, config.Config{}, err
	}
	tree, err := p.Tree(ctx, id)
	if err != nil {
		return nil, config.Config{}, err
	}
	cfg, err := config.Of(&tree, &l)
	return &loopView{t: t, tree: id, until: cfg.Until, calls: make(map[string]bool)}, cfg, err
}

// followLoop follows a loop until it ends, pauses or leaves a gate unanswered.
func (t *turn) followLoop(ctx context.Context, p *Project, id perdure.TreeID, after int64) error {
	v, cfg, err := newLoopView(ctx, t, p, id)
	if err != nil {
		return err
	}
	if after > 0 {
		v.quiet = true
		if err := v.showPast(ctx, p); err != nil {
			return err
		}
		v.quiet = false
	}
	v.live = true
	tree, err := p.Tree(ctx, id)
	if err != nil {
		return err
	}
	g := newAsker(t, p, id, loopTarget(loop.ID(&tree)))
	g.leave = cfg.EndsAtGates()
	defer g.close()
	if err := g.consider(ctx, 0); err != nil { // one that another process has opened
		return err
	}
	for e, err := range p.Events(ctx, after, id) {
		if err != nil {
			return err
		}
		v.event(&e)
		if over, err := t.over(ctx, p, g, &e); over || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// over reports whether the turn ends after an event, and asks about gates.
func (t *turn) over(ctx context.Context, p *Project, g *asker, e *perdure.Event) (bool, error) {
	switch e.Kind {
	case loop.EventEnded:
		l, err := p.Loop(ctx, e.Tree)
		if err != nil || !l.Status.Ended() { // it was resumed after this event
			return false, err
		}
		_, err = p.WaitTree(ctx, e.Tree) // the tree ends after the loop
		return true, err
	case perdure.EventTreeCompleted, perdure.EventTreeFailed, perdure.EventTreeCancelled:
		tree, err := p.Tree(ctx, e.Tree)
		return err == nil && tree.State.Terminal(), err
	case loop.EventPaused:
		l, err := p.Loop(ctx, e.Tree)
		return err == nil && l.Status == record.Paused && l.Control != record.Resume, err
	case perdure.EventLoopGateOpened, perdure.EventLoopGateToken:
		if err := g.consider(ctx, 0); err != nil {
			return false, err
		}
	case perdure.EventLoopGateAnswered:
		var d eventData
		_ = json.Unmarshal(e.Data, &d) // without a number there is no question
		g.answered(d.Gate)
	default: // the loop continues
	}
	if !g.leave || !g.found {
		return false, nil
	}
	l, err := p.Loop(ctx, e.Tree)
	if err != nil || p.Tokens == nil {
		return err == nil, err
	}
	standing, err := state.Read(l.State) // set when the handlers of the gate were called
	return standing.Gate > 0, err
}

// event shows an event.
func (v *loopView) event(e *perdure.Event) {
	var d eventData
	_ = json.Unmarshal(e.Data, &d) // fields of another type are not used
	switch e.Kind {
	case loop.EventActivity:
		v.activity(e)
	case loop.EventIteration:
		v.iteration(&d)
	case loop.EventMeasured:
		v.measured(&d, v.t.s.cfg.View.Line(e))
	case loop.EventReverted:
		v.call(v.turnID(d.Iteration), object{"status": statusFailed})
		v.say(e)
	default:
		v.say(e)
	}
}

// showPast shows the newest events so far.
func (v *loopView) showPast(ctx context.Context, p *Project) error {
	page, err := p.NewestEvents(ctx, 0, v.tree, MaxReplayedEvents)
	if err != nil {
		return err
	}
	v.past = true
	for i := range page.Events {
		v.event(&page.Events[i])
	}
	v.past = false
	v.sendPlan()
	return nil
}

// say shows an event as text.
func (v *loopView) say(e *perdure.Event) { v.sayLine(v.t.s.cfg.View.Line(e)) }

func (v *loopView) sayLine(line string) {
	if !v.quiet {
		v.t.s.say(v.t.ss.id, line)
	}
}

func (v *loopView) update(kind string, fields object) {
	if !v.quiet {
		v.t.s.update(v.t.ss.id, kind, fields)
	}
}

func (v *loopView) turnID(iteration int) string { return fmt.Sprintf("%s/turn-%d", v.tree, iteration) }

func (v *loopView) checkID(iteration int) string {
	return fmt.Sprintf("%s/check-%d", v.tree, iteration)
}

// iteration shows the beginning of an iteration, which can be one that is repeated after a crash.
func (v *loopView) iteration(d *eventData) {
	v.call(v.turnID(d.Iteration), object{"title": fmt.Sprintf("Iteration %d: %s", d.Iteration, d.Agent), "kind": "edit",
		"status": statusInProgress})
	v.setPlan(d.Iteration, fmt.Sprintf("Iteration %d", d.Iteration), statusInProgress)
}

// measured shows the end of an iteration with its check.
func (v *loopView) measured(d *eventData, line string) {
	if d.Final || d.Iteration == 0 {
		v.sayLine(line)
		return
	}
	v.call(v.turnID(d.Iteration), object{"status": statusCompleted})
	status := statusFailed
	if d.Passed {
		status = statusCompleted
	}
	if !d.Skipped {
		v.call(v.checkID(d.Iteration), object{"title": "Check: " + human.OneLine(v.until), "kind": "execute",
			"status": status, "content": textContent(line)})
	}
	_, result, _ := strings.Cut(line, ": ")
	v.setPlan(d.Iteration, fmt.Sprintf("Iteration %d: %s", d.Iteration, result), statusCompleted)
}

// activity shows what the agent does in the title of its tool call.
func (v *loopView) activity(e *perdure.Event) {
	var a loop.Activity
	if !v.live || json.Unmarshal(e.Data, &a) != nil || !v.calls[v.turnID(a.Iteration)] {
		return
	}
	doing := cmp.Or(a.Waiting, a.Call, a.Message, "is working")
	v.call(v.turnID(a.Iteration), object{"title": fmt.Sprintf("Iteration %d: %s: %s", a.Iteration, a.Agent,
		human.OneLine(doing))})
}

// call sends a tool call, or an update of one that was sent.
func (v *loopView) call(id string, fields object) {
	kind := "tool_call_update"
	if !v.calls[id] {
		if fields["title"] == nil {
			return // its beginning was before the events that are known
		}
		kind = "tool_call"
		v.calls[id] = true
	}
	fields["toolCallId"] = id
	v.update(kind, fields)
}

// setPlan sets the entry of an iteration and sends the plan.
func (v *loopView) setPlan(iteration int, content, status string) {
	prefix := fmt.Sprintf("Iteration %d", iteration)
	set := false
	for i := range v.plan {
		if first, _, _ := strings.Cut(v.plan[i].Content, ":"); first == prefix {
			v.plan[i], set = entry(content, status), true
		}
	}
	if !set {
		v.plan = append(v.plan, entry(content, status))
	}
	v.sendPlan()
}

func (v *loopView) sendPlan() {
	if !v.past && len(v.plan) > 0 {
		v.update("plan", object{"entries": v.plan})
	}
}
