package loop

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/agenthook"
	"github.com/perdure/perdure/internal/risk"
	"github.com/perdure/perdure/internal/toolcall"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// maxRisky is how many risky calls of an iteration are kept.
const maxRisky = 100

// callsFile is the name of the journal of tool calls.
const callsFile = "tool-calls.jsonl"

// callsPath is where the loop's journal of tool calls is.
func (r *run) callsPath() string { return filepath.Join(r.e.dir(&r.l.Tree), callsFile) }

// policy is how calls of tools are judged.
func (r *run) policy() *toolcall.Policy {
	return &toolcall.Policy{Root: r.files.Root(), Own: []string{r.e.cfg.Dir}, Answers: r.cfg.RiskAnswers, Allowed: r.state.Allowed}
}

// asked is a call that an agent asked for.
type asked struct {
	call     agent.ToolCall
	decision agent.Decision
	// before is what there was before a risky call; nil before others.
	before *toolcall.Before
	// ended tells that it was made, text what the agent is told of that.
	ended bool
	text  string
}

// decide answers an agent that asks before it calls a tool, over its protocol.
func (w *watch) decide(_ context.Context, c agent.ToolCall) agent.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.before(&c, "", false)
}

// answer answers an agent's own hooks.
func (w *watch) answer(_ context.Context, q *agenthook.Question) agenthook.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.native++
	if q.Event != agenthook.PreToolUse {
		status := agent.ToolCompleted
		if q.Event == agenthook.PostToolUseFailure {
			status = agent.ToolFailed
		}
		q.Call.Status = status
		return agenthook.Answer{Verdict: agenthook.Pass, Text: w.after(&q.Call, true)}
	}
	d := w.before(&q.Call, q.Dir, true)
	if !d.Allow {
		return agenthook.Answer{Verdict: agenthook.Deny, Text: d.Message}
	}
	return agenthook.Answer{Verdict: agenthook.Pass, Text: d.Message}
}

// before judges a call that is about to be made. What the table of risks or a handler
// blocks is not done; what one warns of is done, and the agent is told: natively, or
// with the next prompt. Before a risky call a snapshot is taken. A call that is asked
// for twice, over the protocol and by a hook, is judged once.
func (w *watch) before(c *agent.ToolCall, dir string, native bool) agent.Decision {
	if !toolcall.Mutates(c) {
		return agent.Decision{Allow: true}
	}
	if a := w.find(c); a != nil && !a.ended && a.call.Command == c.Command && slices.Equal(a.call.Paths, c.Paths) {
		return a.decision
	}
	a := &asked{call: *c}
	w.asked = append(w.asked, a)
	j, answer, text := w.judge(c, dir)
	line := toolcall.NewLine(toolcall.Asked, w.r.state.Run.Number, c, &j)
	line.Answer = answer
	if answer == risk.Gate {
		line.Wanted = j.Wanted()
		text += "\nA person is asked about it after your turn. Go on with something else."
	}
	if toolcall.Allowed(answer) && len(j.Findings) > 0 {
		line.Snapshot = w.snapshot(j.Findings[0].Level)
		a.before = w.r.policy().LookBefore(c, dir, &j)
	}
	if err := w.calls.Append(&line); err != nil { // what nobody will know of is not done
		answer, text = risk.Block, err.Error()
	}
	if toolcall.Allowed(answer) {
		a.decision = agent.Decision{Allow: true, Message: w.warn(text, native)}
	} else {
		a.decision = agent.Decision{Message: firstOf(text, "this call is not allowed here")}
	}
	return a.decision
}

// judge asks the table of risks and the handlers of pre_tool_call.
func (w *watch) judge(c *agent.ToolCall, dir string) (j toolcall.Judgement, answer risk.Answer, text string) {
	answer = risk.Allow
	if !w.r.cfg.Plain {
		began := time.Now()
		j = w.r.policy().Judge(c, dir)
		answer, text = j.Answer, j.Text()
		w.logged(hook.PreToolCall, began, verdictOf(answer), c)
	}
	inputs := map[string]any{"destructive": j.Destructive()}
	if len(j.Findings) > 0 {
		inputs["risk_level"], inputs["risk_pattern"] = string(j.Findings[0].Level), string(j.Findings[0].Pattern)
	}
	out := w.ask(hook.PreToolCall, c, inputs)
	if out.Verdict == hook.Allow {
		return j, answer, text
	}
	if out.Verdict == hook.Block {
		answer = risk.Block
	} else if answer == risk.Allow {
		answer = risk.Warn
	}
	return j, answer, strings.TrimSpace(text + "\n" + said(&out))
}

// said is what handlers said of a call.
func said(out *hook.Outcome) string {
	var lines []string
	for _, r := range out.Reasons {
		lines = append(lines, r.Content)
	}
	return strings.TrimSpace(strings.Join(lines, "\n") + "\n" + out.Inject)
}

func verdictOf(a risk.Answer) hook.Verdict {
	return map[risk.Answer]hook.Verdict{risk.Allow: hook.Allow, risk.Warn: hook.Warn, risk.Gate: hook.Block, risk.Block: hook.Block}[a]
}

// logged writes what was built in said of a call to the hook log.
func (w *watch) logged(name hook.Name, began time.Time, v hook.Verdict, c *agent.ToolCall) {
	err := w.r.log.Append(hook.Record{Time: began, Hook: name, LoopID: ID(&w.r.l.Tree), Iteration: w.r.state.Run.Number, Handler: "tool calls",
		Kind: hook.KindBuiltin, Duration: time.Since(began), Verdict: v, StateChanges: map[string]any{"tool": c.Name, "call_id": c.ID}})
	if err != nil {
		w.r.e.cfg.Logger.Warn("no line in the hook log", "tree_id", string(w.r.l.Tree.ID), "error", err)
	}
}

// snapshot takes one before a risk of a level; empty when none is taken.
func (w *watch) snapshot(level risk.Level) workspace.ID {
	if !w.r.cfg.SnapshotBefore(level) {
		return ""
	}
	id, _, err := w.r.files.Snapshot(w.ctx)
	if err != nil {
		w.r.e.cfg.Logger.Warn("no snapshot before a risky call", "tree_id", string(w.r.l.Tree.ID), "error", err)
	}
	return id
}

// find is the call as it was asked for; nil when it was not. Where names of calls are
// others in an agent's stream than at its hooks, calls of one kind are taken in their
// order.
func (w *watch) find(c *agent.ToolCall) *asked {
	for _, a := range slices.Backward(w.asked) {
		if c.ID != "" && a.call.ID == c.ID {
			return a
		}
	}
	return nil
}

// after looks at what a call did that was made, and returns what the agent is told of
// it: the tests that it lost, and what handlers say.
func (w *watch) after(c *agent.ToolCall, native bool) string {
	if !toolcall.Mutates(c) {
		return ""
	}
	a := w.find(c)
	if a == nil && !native {
		a = w.next(c)
	}
	switch {
	case a == nil:
		a = &asked{call: *c}
		w.asked = append(w.asked, a)
		w.unasked++
		w.seen(c)
	case a.ended:
		return a.text
	}
	a.ended = true
	inputs := map[string]any{"status": string(cmp.Or(c.Status, agent.ToolCompleted))}
	if a.before != nil {
		a.text = w.lost(a, inputs)
	}
	out := w.ask(hook.PostToolCall, c, inputs)
	if out.Verdict != hook.Allow || out.Inject != "" {
		a.text = strings.TrimSpace(a.text + "\n" + said(&out))
	}
	a.text = w.warn(a.text, native)
	return a.text
}

// next is the first call of a kind that was allowed and of which no end is known.
func (w *watch) next(c *agent.ToolCall) *asked {
	for _, a := range w.asked {
		if !a.ended && a.decision.Allow && a.call.Kind == c.Kind && w.native > 0 {
			return a
		}
	}
	return nil
}

// lost says which tests and checks a risky call lost, as far as its files show it.
func (w *watch) lost(a *asked, inputs map[string]any) string {
	began := time.Now()
	e, err := a.before.LookAfter(w.ctx, w.r.cfg.Detection)
	if err != nil {
		w.r.e.cfg.Logger.Warn("a risky call was not looked at", "tree_id", string(w.r.l.Tree.ID), "error", err)
		return ""
	}
	a.before = nil
	verdict := hook.Allow
	if len(e.Findings) > 0 {
		verdict = hook.Warn
	}
	w.logged(hook.PostToolCall, began, verdict, &a.call)
	line := toolcall.NewLine(toolcall.Ended, w.r.state.Run.Number, &a.call, nil)
	line.After = e
	if err := w.calls.Append(&line); err != nil {
		w.r.e.cfg.Logger.Warn("a call is not written down", "tree_id", string(w.r.l.Tree.ID), "error", err)
	}
	inputs["tests_before"], inputs["tests_after"], inputs["findings"] = e.TestsBefore, e.TestsAfter, e.Findings
	return e.Text()
}

// seen keeps a risky call of an agent that did not ask.
func (w *watch) seen(c *agent.ToolCall) {
	if w.r.cfg.Plain || c.Status == agent.ToolPending || !toolcall.Mutates(c) {
		return
	}
	j := w.r.policy().Judge(c, "")
	if len(j.Findings) == 0 {
		return
	}
	line := toolcall.NewLine(toolcall.Seen, w.r.state.Run.Number, c, &j)
	if key := string(line.Pattern) + " " + line.Target; !w.told[key] { // calls are told several times
		w.told[key] = true
		if err := w.calls.Append(&line); err != nil {
			w.r.e.cfg.Logger.Warn("a call is not written down", "tree_id", string(w.r.l.Tree.ID), "error", err)
		}
	}
}

// takeCalls takes over what the journal has of calls since it was read last: after a
// turn, or after a crash in one. What is taken twice is taken once, since the place is
// written down with it.
func (r *run) takeCalls() error {
	lines, next, err := toolcall.ReadJournal(r.callsPath(), r.state.CallsRead)
	if err != nil {
		return err
	}
	t := &r.state.Run
	for i := range lines {
		l := &lines[i]
		if l.What == toolcall.Ended {
			if at := slices.IndexFunc(t.Risky, func(k toolcall.Risky) bool { return k.CallID == l.CallID }); at >= 0 {
				t.Risky[at].After = l.After
			}
			continue
		}
		if l.Answer != "" && !toolcall.Allowed(l.Answer) {
			t.Denied++
		}
		t.Wanted = append(t.Wanted, l.Wanted...)
		if l.Pattern == "" {
			continue
		}
		t.Risky = append(t.Risky, l.Risky())
		r.note(EventRisky, map[string]any{"iteration": l.Iteration, "tool": l.Tool, "target": l.Target, "risk_pattern": l.Pattern,
			"risk_level": l.Level, "answer": l.Answer, "snapshot": l.Snapshot})
	}
	t.Risky = slices.Clone(t.Risky[max(0, len(t.Risky)-maxRisky):])
	r.state.CallsRead = next
	return nil
}

// riskGate asks a person about the calls that were refused until then.
func (r *run) riskGate(out *Outcome) (string, error) {
	wanted := r.state.Run.Wanted
	return r.openGate(record.GateDestructive, record.Question{
		Title: fmt.Sprintf("the agent wants to do what is not allowed: %s", clip(wanted[0], 200)),
		Text:  "- " + strings.Join(wanted, "\n- ") + "\n\n" + r.describe(out),
		Options: []record.Option{
			{Answer: answerApprove, Effect: "these calls are allowed from now on, and the loop goes on"},
			{Answer: answerContinue, Effect: "the loop goes on without them; a reason given with the answer goes into the next prompt"},
			{Answer: answerAbort, Effect: "the loop ends; the files stay as they are"},
		}})
}
