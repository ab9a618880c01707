package loop

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/permit"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

const (
	// maxUnpermitted is how many denied calls of an iteration are kept, maxCallText how much
	// of each, in bytes.
	maxUnpermitted = 20
	maxCallText    = 300
	// maxWaitEvents is how many waits of an agent a turn reports.
	maxWaitEvents = 200
)

// commands returns the commands that agents may run without asking: the check and its parts,
// those that record their work, and some that only read, which agents combine with them.
func (r *run) commands() []agent.CommandRule {
	rules := permit.Rules(r.cfg.Until)
	if program := r.e.cfg.Handoff.Program; program != "" {
		rules = append(rules, permit.Handoff(program)...)
	}
	return append(rules, permit.Reading()...)
}

// permission returns what the loop's agents may do without asking.
func (r *run) permission() agent.Permission { return cmp.Or(r.cfg.Permission, r.e.cfg.Permission) }

// checkHooks returns an error if an agent may run all calls and its hooks, which refuse destructive
// ones, are switched off. An agent that asks over its protocol needs none.
func (e *Engine) checkHooks(cfg *config.Config) error {
	if cmp.Or(cfg.Permission, e.cfg.Permission) != agent.PermissionAll || len(e.cfg.Hook) == 0 || cfg.Plain {
		return nil
	}
	for i, name := range cfg.Agents() {
		a, err := e.cfg.Agents.Agent(e.agentSpec(cfg, i))
		if err != nil { // it is not there, which is no reason to refuse the others
			continue
		}
		if seen, ok := a.(agent.Watcher); ok && seen.Sight() == agent.SightNative {
			continue
		}
		h, ok := a.(agent.HookChecker)
		if !ok {
			continue
		}
		if why := h.HooksOff(cfg.Workspace, cfg.Env); why != "" {
			return &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop",
				Msg: fmt.Sprintf("permission all: the hooks of agent %q, which refuse destructive calls, are switched off: %s",
					name, why),
				Hint: "switch them on, or use --permission edits"}
		}
	}
	return nil
}

// permits reports whether the permission allows a call for which an agent asks.
func (r *run) permits(c *agent.ToolCall) bool {
	switch r.permission() {
	case agent.PermissionRead:
		return !policy.Mutates(c)
	case agent.PermissionEdits:
		switch {
		case c.Kind == agent.ToolExecute || c.Command != "":
			return permit.Allows(r.commands(), c.Command)
		case c.Kind == agent.ToolEdit || c.Kind == agent.ToolDelete || c.Kind == agent.ToolMove:
			return true
		}
		return !policy.Mutates(c)
	case agent.PermissionAll, agent.PermissionOwn:
	}
	return true
}

// decide answers an agent that asks before a call: the guard decides, and then the permission.
func (w *watch) decide(ctx context.Context, c agent.ToolCall) agent.Decision {
	d := w.calls.Decide(ctx, c)
	if !d.Allow || w.r.permits(&c) {
		return d
	}
	w.denied(&c, "")
	return agent.Decision{Message: fmt.Sprintf("not permitted here (%s): continue without this call", w.r.permission())}
}

// report writes events about a turn while it goes on: calls that the agent's permissions
// denied, and waits that the agent makes by itself.
func (w *watch) report(e *agent.Event) {
	switch {
	case e.Kind == agent.EventRateLimited:
		w.waiting(e)
	case e.Kind == agent.EventToolResult && e.Call != nil && e.Call.Status == agent.ToolDenied && !w.calls.Refused(e.Call):
		w.denied(e.Call, e.Text)
	}
}

// waiting reports a wait of the agent.
func (w *watch) waiting(e *agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits++; w.waits > maxWaitEvents {
		return
	}
	data := map[string]any{"iteration": w.r.state.Run.Number, "agent": w.r.agentName(), "attempt": e.Attempt, "of": e.Of,
		"message": clip.Bytes(e.Text, maxCallText)}
	if !e.Until.IsZero() {
		data["until"] = e.Until.UTC()
	}
	w.write(EventAgentWaits, data)
}

// denied counts a call that was denied, and reports the first of those that are alike.
func (w *watch) denied(c *agent.ToolCall, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.ID != "" && w.refused[c.ID] {
		return
	}
	w.refused[c.ID] = true
	target := clip.Bytes(cmp.Or(c.Command, c.Title, c.Name, string(c.Kind)), maxCallText)
	u := &w.r.state.Run.Unpermitted
	if u.Count++; slices.Contains(u.Calls, target) || len(u.Calls) >= maxUnpermitted {
		return
	}
	data := map[string]any{"iteration": w.r.state.Run.Number, "agent": w.r.agentName(), "tool": c.Name, "target": target,
		"message": clip.Bytes(strings.TrimSpace(why), maxCallText)}
	if len(u.Calls) == 0 {
		data["hint"] = w.r.permissionHint(c.Kind)
	}
	u.Calls = append(u.Calls, target)
	w.write(EventDenied, data)
}

// denials returns the IDs of the calls that the agent's own permissions denied.
func (w *watch) denials() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.refused)
}

// permissionHint says how calls of a kind can be allowed.
func (r *run) permissionHint(kind agent.ToolKind) string {
	resume := "`perdure loop resume " + ID(&r.l.Tree) + " --permission "
	switch r.permission() {
	case agent.PermissionRead:
		return resume + "edits` allows edits and the check"
	case agent.PermissionAll, agent.PermissionOwn:
		return "the settings of the agent deny it"
	case agent.PermissionEdits:
	}
	if kind != agent.ToolExecute {
		return resume + "all` allows all tools"
	}
	return "the check, its parts and `perdure handoff` are allowed; " + resume + "all` allows all commands"
}

// write writes an event at once. One that cannot be written is only logged: the turn goes on.
func (w *watch) write(kind perdure.EventKind, data map[string]any) {
	if err := w.r.e.records.Report(w.ctx, w.r.l, record.Event{Kind: kind, Data: data}); err != nil && w.ctx.Err() == nil {
		w.r.e.cfg.Logger.Warn("event not written", "tree_id", string(w.r.l.Tree.ID), "kind", string(kind), "error", err)
	}
}
