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
	"github.com/perdure/perdure/internal/risk"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// maxRisky is how many risky calls of an iteration are kept.
const maxRisky = 100

// RiskyCall is a call of a tool that can do harm, and what was done about it.
type RiskyCall struct {
	At      time.Time    `json:"timestamp"`
	Tool    string       `json:"tool"`
	Target  string       `json:"target"`
	Pattern risk.Pattern `json:"risk_pattern"`
	Level   risk.Level   `json:"risk_level"`
	// Answer is what was answered; empty when the call was only seen.
	Answer risk.Answer `json:"answer,omitempty"`
	// Snapshot is what was there before it; empty when none was taken.
	Snapshot workspace.ID `json:"snapshot_path,omitempty"`
}

// risks are those of a call, with the answers that the configuration gives.
func (r *run) risks(c *agent.ToolCall) []risk.Finding {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then nobody can name it either
	}
	found := risk.Assess(c, risk.Where{Root: r.files.Root(), Home: home})
	for i := range found {
		f := &found[i]
		f.Answer = cmp.Or(r.cfg.RiskAnswers[f.Pattern], f.Answer)
		if f.Answer == risk.Gate && slices.Contains(r.state.Allowed, permit(f)) {
			f.Answer = risk.Warn // a person allowed it
		}
	}
	return found
}

// permit names what a person allows.
func permit(f *risk.Finding) string { return string(f.Pattern) + " " + f.Target }

// decide answers an agent that asks before it calls a tool. What the table of risks
// or a handler blocks is not done; what one warns of is done, and the agent is told.
// Before a risky call a snapshot is taken.
func (w *watch) decide(_ context.Context, c agent.ToolCall) agent.Decision {
	if !mutates(&c) {
		return agent.Decision{Allow: true}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []risk.Finding
	if !w.r.cfg.Plain {
		found = w.r.risks(&c)
	}
	answer, text := risk.Strictest(found), texts(found)
	inputs := map[string]any{"destructive": slices.ContainsFunc(found, func(f risk.Finding) bool { return f.Destructive })}
	if len(found) > 0 {
		inputs["risk_level"], inputs["risk_pattern"] = string(found[0].Level), string(found[0].Pattern)
	}
	if out := w.ask(hook.PreToolCall, &c, inputs); out.Verdict != hook.Allow {
		for _, r := range out.Reasons {
			text = strings.TrimSpace(text + "\n" + r.Content)
		}
		text = strings.TrimSpace(text + "\n" + out.Inject)
		if out.Verdict == hook.Block {
			answer = risk.Block
		}
	}
	allowed := answer == risk.Allow || answer == risk.Warn
	w.log(&c, found, answer, allowed)
	if !allowed {
		w.denied++
		if answer == risk.Gate {
			text += "\nA person is asked about it after your turn. Go on with something else."
		}
		return agent.Decision{Message: firstOf(text, "this call is not allowed here")}
	}
	return agent.Decision{Allow: true, Message: w.warn(text)}
}

// texts is what the agent is told of risks.
func texts(found []risk.Finding) string {
	var lines []string
	for _, f := range found {
		if line := f.Target + ": " + f.Text; f.Text != "" && f.Answer != risk.Allow && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// log keeps a risky call, with a snapshot of before it when it is let through.
func (w *watch) log(c *agent.ToolCall, found []risk.Finding, answer risk.Answer, allowed bool) {
	if len(found) == 0 || len(w.risky) >= maxRisky {
		return
	}
	f := &found[0]
	call := RiskyCall{At: time.Now().UTC(), Tool: cmp.Or(c.Name, string(c.Kind)), Target: clip(f.Target, 300), Pattern: f.Pattern, Level: f.Level, Answer: answer}
	if allowed && w.r.cfg.SnapshotBefore(f.Level) {
		id, _, err := w.r.files.Snapshot(w.ctx)
		if err != nil {
			w.r.e.cfg.Logger.Warn("no snapshot before a risky call", "tree_id", string(w.r.l.Tree.ID), "error", err)
		}
		call.Snapshot = id
	}
	w.risky = append(w.risky, call)
	if answer == risk.Gate {
		for i := range found {
			if found[i].Answer == risk.Gate {
				w.wanted = append(w.wanted, permit(&found[i]))
			}
		}
	}
}

// seen keeps a risky call of an agent that does not ask.
func (w *watch) seen(c *agent.ToolCall) {
	if w.r.cfg.Plain || c.Status == agent.ToolPending || !mutates(c) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.r.risks(c)
	if len(found) == 0 || slices.ContainsFunc(w.risky, func(k RiskyCall) bool { return k.Target == clip(found[0].Target, 300) && k.Pattern == found[0].Pattern }) {
		return // it was asked for, or told already
	}
	w.log(c, found, "", false)
}

// keepRisky takes over what a turn's watch kept of risky calls.
func (r *run) keepRisky(w *watch) {
	t := &r.state.Run
	t.Risky = append(t.Risky, w.risky...)
	t.Risky = t.Risky[max(0, len(t.Risky)-maxRisky):]
	t.Wanted = append(t.Wanted, w.wanted...)
	for _, call := range w.risky {
		r.note(EventRisky, map[string]any{"iteration": t.Number, "tool": call.Tool, "target": call.Target, "risk_pattern": call.Pattern,
			"risk_level": call.Level, "answer": call.Answer, "snapshot": call.Snapshot})
	}
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
