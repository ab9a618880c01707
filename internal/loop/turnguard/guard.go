// Package turnguard guards the tool calls of one turn of an agent. It answers the agent's
// protocol and its hooks by the table of risks and the user's handlers, and checks what
// risky calls did. Package internal/toolguard/policy judges a call;
// internal/toolguard/vendorhook transports the answers to agents with hooks.
package turnguard

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
)

// Config configures a Guard. All fields but Policy, Asks, Hooked and Detect are required.
type Config struct {
	// Policy judges calls; nil judges none.
	Policy *policy.Policy
	// Detect selects the signs that count in the result of a risky call.
	Detect detect.Input
	// Journal stores the judgements.
	Journal *policy.Journal
	// LoopID and Iteration identify the turn.
	LoopID    string
	Iteration int
	// Room is the number of tokens that messages to the agent may have.
	Room int
	// Asks is set if the agent asks over its protocol, Hooked if it runs hooks.
	Asks, Hooked bool
	// Handlers runs the user's handlers.
	Handlers func(ctx context.Context, name hook.Name, content string, inputs map[string]any) (hook.Outcome, error)
	// Log writes to the hook log.
	Log func(hook.Record) error
	// Snapshot takes a snapshot before a call with a risk of a level; empty if none is
	// taken.
	Snapshot func(ctx context.Context, level risk.Level) (workspace.ID, error)
	Logger   *slog.Logger
}

// Guard guards the calls of one turn. It is safe for concurrent use.
type Guard struct {
	cfg Config
	ctx context.Context // the context of the turn

	mu    sync.Mutex // guards the fields below
	asked []*asked
	told  map[string]bool // risky calls that were only observed
	begun map[string]bool // names of calls in the agent's stream
	// same is set if the agent's stream and its hooks use the same names for calls.
	same bool
	// native counts the questions of the agent's hooks, unasked the calls that were made
	// without a question.
	native, unasked int
	// tokens counts the tokens of messages to the agent; warned is the message for the next
	// prompt.
	tokens int
	warned []string
}

// New returns a guard of a turn, which ends with ctx.
func New(ctx context.Context, cfg Config) *Guard {
	return &Guard{cfg: cfg, ctx: ctx, told: make(map[string]bool), begun: make(map[string]bool)}
}

// asked is a call that an agent asked for.
type asked struct {
	call     agent.ToolCall
	decision agent.Decision
	// before holds the files before a risky call; nil for other calls.
	before *policy.Before
	// ended is set when the call was made, text is the message to the agent about it;
	// streamed is set when the agent's stream reported the call, too.
	ended, streamed bool
	text            string
	// late is the warning about the call, for an agent that takes it only after the call.
	late string
}

// Decide answers an agent that asks before a tool call, over its protocol.
func (g *Guard) Decide(_ context.Context, c agent.ToolCall) agent.Decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.before(&c, "", false)
}

// Answer answers an agent's hooks.
func (g *Guard) Answer(_ context.Context, q *vendorhook.Question) vendorhook.Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.native++
	g.same = g.same || q.Call.ID != "" && g.begun[q.Call.ID]
	if q.Event != vendorhook.PreToolUse {
		q.Call.Status = agent.ToolCompleted
		if q.Event == vendorhook.PostToolUseFailure {
			q.Call.Status = agent.ToolFailed
		}
		return vendorhook.Answer{Verdict: vendorhook.Pass, Text: g.after(&q.Call, true)}
	}
	d := g.before(&q.Call, q.Dir, true)
	if !d.Allow {
		return vendorhook.Answer{Verdict: vendorhook.Deny, Text: d.Message}
	}
	if a := g.find(&q.Call); q.Late && a != nil {
		a.late, d.Message = d.Message, ""
	}
	return vendorhook.Answer{Verdict: vendorhook.Pass, Text: d.Message}
}

// before judges a call that is about to be made. A call that the table of risks or a
// handler blocks is refused; one that only warns is allowed, and the agent receives the
// warning through its hook or with the next prompt. A snapshot is taken before a risky
// call. A call asked for over both the protocol and a hook is judged once.
func (g *Guard) before(c *agent.ToolCall, dir string, native bool) agent.Decision {
	if !policy.Mutates(c) {
		return agent.Decision{Allow: true}
	}
	if a := g.find(c); a != nil && !a.ended && a.call.Command == c.Command && slices.Equal(a.call.Paths, c.Paths) {
		return a.decision
	}
	a := &asked{call: *c}
	g.asked = append(g.asked, a)
	j, answer, text := g.judge(c, dir)
	line := policy.NewLine(policy.Asked, g.cfg.Iteration, c, &j)
	line.Answer = answer
	if answer == risk.Gate {
		line.Wanted = j.Wanted()
		text += "\nA person decides about this call after your turn, with `perdure loop answer`. Continue with other work."
	}
	if policy.Allowed(answer) && len(j.Findings) > 0 {
		line.Snapshot = g.snapshot(j.Findings[0].Level)
		a.before = g.cfg.Policy.LookBefore(c, dir, &j)
	}
	if err := g.cfg.Journal.Append(&line); err != nil { // a call without a record is refused
		answer, text = risk.Block, err.Error()
	}
	if policy.Allowed(answer) {
		a.decision = agent.Decision{Allow: true, Message: g.warn(text, native)}
	} else {
		a.decision = agent.Decision{Message: cmp.Or(text, "this call is not allowed here")}
	}
	return a.decision
}

// judge applies the table of risks and the handlers of pre_tool_call.
func (g *Guard) judge(c *agent.ToolCall, dir string) (j policy.Judgement, answer risk.Answer, text string) {
	answer = risk.Allow
	if g.cfg.Policy != nil {
		began := time.Now()
		j = g.cfg.Policy.Judge(c, dir)
		answer, text = j.Answer, j.Text()
		g.logged(hook.PreToolCall, began, verdictOf(answer), c)
	}
	inputs := map[string]any{"destructive": j.Destructive()}
	if len(j.Findings) > 0 {
		inputs["risk_level"], inputs["risk_pattern"] = string(j.Findings[0].Level), string(j.Findings[0].Pattern)
	}
	out := g.ask(hook.PreToolCall, c, inputs)
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

// said returns the message of the handlers about a call.
func said(out *hook.Outcome) string {
	var lines []string
	for _, r := range out.Reasons {
		lines = append(lines, r.Content)
	}
	return strings.TrimSpace(strings.Join(lines, "\n") + "\n" + out.Inject)
}

func verdictOf(a risk.Answer) hook.Verdict {
	return map[risk.Answer]hook.Verdict{risk.Allow: hook.Allow, risk.Warn: hook.Warn, risk.Gate: hook.Block,
		risk.Block: hook.Block}[a]
}

// logged writes the built-in judgement of a call to the hook log.
func (g *Guard) logged(name hook.Name, began time.Time, v hook.Verdict, c *agent.ToolCall) {
	g.warnOf("write hook log", g.cfg.Log(hook.Record{Time: began, Hook: name, LoopID: g.cfg.LoopID,
		Iteration: g.cfg.Iteration, Handler: "tool calls", Kind: hook.KindBuiltin, Duration: time.Since(began), Verdict: v,
		StateChanges: map[string]any{"tool": c.Name, "call_id": c.ID}}))
}

// warnOf logs a failure; a nil error is ignored.
func (g *Guard) warnOf(what string, err error) {
	if err != nil {
		g.cfg.Logger.Warn(what, "loop_id", g.cfg.LoopID, "error", err)
	}
}

// snapshot takes a snapshot before a risk of a level; empty if none is taken.
func (g *Guard) snapshot(level risk.Level) workspace.ID {
	id, err := g.cfg.Snapshot(g.ctx, level)
	g.warnOf("take snapshot before a risky call", err)
	return id
}

// find returns the call as it was asked for; nil if it was not. If names of calls differ
// between an agent's stream and its hooks, calls are matched in order.
func (g *Guard) find(c *agent.ToolCall) *asked {
	for _, a := range slices.Backward(g.asked) {
		if c.ID != "" && a.call.ID == c.ID {
			return a
		}
	}
	return nil
}

// after checks what a call did and returns the message to the agent: lost tests, and
// messages of handlers.
func (g *Guard) after(c *agent.ToolCall, native bool) string {
	if !policy.Mutates(c) {
		return ""
	}
	a := g.find(c)
	if a == nil && !native && !g.same {
		a = g.next()
	}
	if a != nil && !native {
		a.streamed = true
	}
	switch {
	case a == nil:
		a = &asked{call: *c}
		g.asked = append(g.asked, a)
		g.unasked++
		g.seen(c)
	case a.ended:
		return a.text
	}
	a.ended = true
	inputs := map[string]any{"status": string(cmp.Or(c.Status, agent.ToolCompleted))}
	if a.before != nil {
		a.text = g.lost(a, inputs)
	}
	out := g.ask(hook.PostToolCall, c, inputs)
	if out.Verdict != hook.Allow || out.Inject != "" {
		a.text = strings.TrimSpace(a.text + "\n" + said(&out))
	}
	a.text = strings.TrimSpace(a.late + "\n" + g.warn(a.text, native))
	return a.text
}

// next returns the first allowed call that the stream has not reported yet. A command in
// Codex's hooks can be a file change in its stream.
func (g *Guard) next() *asked {
	for _, a := range g.asked {
		if !a.streamed && a.decision.Allow && g.native > 0 {
			return a
		}
	}
	return nil
}

// lost describes the tests and checks that a risky call lost, as far as the files show
// it.
func (g *Guard) lost(a *asked, inputs map[string]any) string {
	began := time.Now()
	e, err := a.before.LookAfter(g.ctx, &g.cfg.Detect)
	if err != nil {
		g.cfg.Logger.Warn("check result of a risky call", "loop_id", g.cfg.LoopID, "error", err)
		return ""
	}
	a.before = nil
	verdict := hook.Allow
	if len(e.Findings) > 0 {
		verdict = hook.Warn
	}
	g.logged(hook.PostToolCall, began, verdict, &a.call)
	line := policy.NewLine(policy.Ended, g.cfg.Iteration, &a.call, nil)
	line.After = e
	g.warnOf("write journal of tool calls", g.cfg.Journal.Append(&line))
	inputs["tests_before"], inputs["tests_after"], inputs["findings"] = e.TestsBefore, e.TestsAfter, e.Findings
	return e.Text()
}

// seen records a risky call of an agent that did not ask.
func (g *Guard) seen(c *agent.ToolCall) {
	if g.cfg.Policy == nil || c.Status == agent.ToolPending || !policy.Mutates(c) {
		return
	}
	j := g.cfg.Policy.Judge(c, "")
	if len(j.Findings) == 0 {
		return
	}
	line := policy.NewLine(policy.Seen, g.cfg.Iteration, c, &j)
	if key := string(line.Pattern) + " " + line.Target; !g.told[key] { // streams repeat calls
		g.told[key] = true
		g.warnOf("write journal of tool calls", g.cfg.Journal.Append(&line))
	}
}

// Hear processes an event of the turn.
func (g *Guard) Hear(e *agent.Event) {
	if e.Call == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun[e.Call.ID] = true
	switch {
	case e.Call.Status == agent.ToolDenied: // it was not made
	case e.Kind == agent.EventToolResult:
		g.after(e.Call, false)
	case e.Kind == agent.EventToolCall && !g.cfg.Asks && !g.cfg.Hooked:
		g.seen(e.Call)
	}
}

// Refused reports whether the guard refused a call that the agent asked for.
func (g *Guard) Refused(c *agent.ToolCall) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range slices.Backward(g.asked) {
		if !a.decision.Allow && (c.ID != "" && a.call.ID == c.ID || c.Command != "" && a.call.Command == c.Command) {
			return true
		}
	}
	return false
}

// Sight returns how the calls were observed: natively if the agent's hooks asked for each
// call that was made, otherwise as the agent reports. Unasked is the number of calls made
// without asking the hooks.
func (g *Guard) Sight(says agent.Sight) (s agent.Sight, unasked int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cfg.Hooked {
		unasked = g.unasked
	}
	if g.native > 0 && g.unasked == 0 {
		return agent.SightNative, 0
	}
	return says, unasked
}

// Warned returns the warnings for the next prompt.
func (g *Guard) Warned() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.warned, "\n")
}

// ask runs the handlers for a call.
func (g *Guard) ask(name hook.Name, c *agent.ToolCall, more map[string]any) hook.Outcome {
	inputs := map[string]any{"tool": c.Name, "kind": string(c.Kind),
		"target":  cmp.Or(c.Command, strings.Join(c.Paths, " "), c.Title),
		"command": c.Command, "paths": c.Paths, "input": c.Input, "call_id": c.ID}
	maps.Copy(inputs, more)
	out, err := g.cfg.Handlers(g.ctx, name, strings.TrimSpace(cmp.Or(c.Title, c.Name, string(c.Kind))), inputs)
	if err != nil { // a failed handler counts as a refusal
		return hook.Outcome{Verdict: hook.Block, Reasons: []hook.Reason{{Content: err.Error()}}}
	}
	return out
}

// warn adds a message about a call while the session has room for it: it is returned for
// the agent's hook, or kept for the next prompt.
func (g *Guard) warn(text string, native bool) string {
	n := reinforce.Tokens(text)
	if text == "" || n > g.cfg.Room-g.tokens {
		return ""
	}
	g.tokens += n
	if !native {
		g.warned = append(g.warned, text)
	}
	return text
}
