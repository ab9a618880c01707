package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// maxAsking is how many permissions an agent may ask for at once.
const maxAsking = 256

// permissionRequest are the parameters of session/request_permission.
type permissionRequest struct {
	ToolCall json.RawMessage    `json:"toolCall"`
	Options  []permissionOption `json:"options"`
}

// permissionOption is one of the answers that an agent offers.
type permissionOption struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// The kinds of options. The "always" kinds also decide later calls, for which the
// agent then does not ask.
const (
	allowOnce    = "allow_once"
	allowAlways  = "allow_always"
	rejectOnce   = "reject_once"
	rejectAlways = "reject_always"
)

// choose returns the first option of the wanted kind, or of the fallback.
func choose(options []permissionOption, want, fallback string) (chosen permissionOption, ok bool) {
	for _, kind := range []string{want, fallback} {
		for _, o := range options {
			if o.Kind == kind && o.ID != "" {
				return o, true
			}
		}
	}
	return permissionOption{}, false
}

// outcome is the answer to a request for permission.
type outcome struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId,omitempty"`
	} `json:"outcome"`
}

func newOutcome(kind, optionID string) (o outcome) {
	o.Outcome.Outcome, o.Outcome.OptionID = kind, optionID
	return o
}

// askPermission handles a request for permission: it reports the call and asks in
// a separate goroutine, so that the agent's messages are read in the meantime.
func (r *run) askPermission(m *jsonrpc.Message, raw json.RawMessage) {
	var req permissionRequest
	if jsonrpc.Lenient(m.Params, &req) != nil {
		r.conn.Refuse(m.ID, jsonrpc.CodeInvalidParams, "invalid parameters")
		return
	}
	call := r.reportCall(m.ID, req.ToolCall, raw)
	ctx, stop := context.WithCancel(r.asking)
	if !r.admit(m.ID, stop) {
		stop()
		r.conn.Refuse(m.ID, jsonrpc.CodeInternal,
			fmt.Sprintf("more than %d requests for permission at once", maxAsking))
		return
	}
	r.asks.Go(func() {
		defer stop()
		defer r.dismiss(m.ID)
		r.conn.Answer(m.ID, r.decide(ctx, call, req.Options))
	})
}

// reportCall decodes the tool call of a request and emits it as an event.
func (r *run) reportCall(id, toolCall, raw json.RawMessage) agent.ToolCall {
	var f toolFields
	_ = jsonrpc.Lenient(toolCall, &f) // permission can be asked for an unknown call, too
	f.ToolCallID = cmp.Or(f.ToolCallID, "request "+string(id))
	r.mu.Lock()
	call := r.story.asks(&f)
	r.mu.Unlock()
	reported := call
	r.emit(agent.Event{Kind: agent.EventToolCall, Call: &reported, Raw: raw})
	return call
}

// decide asks the policy and finds the option for its decision.
func (r *run) decide(ctx context.Context, call agent.ToolCall, options []permissionOption) outcome {
	d := agent.Decision{Allow: true}
	if r.turn.Decide != nil && ctx.Err() == nil {
		r.activity.begin() // a person may need hours
		d = r.turn.Decide(ctx, call)
		r.activity.end()
	}
	if ctx.Err() != nil {
		return newOutcome("cancelled", "")
	}
	want, fallback := allowOnce, allowAlways
	if !d.Allow {
		r.denied.Store(true)
		r.mu.Lock()
		r.story.refused(call.ID)
		r.mu.Unlock()
		want, fallback = rejectOnce, rejectAlways
	}
	o, ok := choose(options, want, fallback)
	switch {
	case d.Allow && !ok:
		r.note("the agent asked for permission without an option to allow the call")
	case o.Kind == allowAlways:
		r.note("the agent had no option to allow a call once: it was allowed always")
	}
	if !ok {
		return newOutcome("cancelled", "")
	}
	return newOutcome("selected", o.ID)
}

// admit records a pending request, so that the agent can cancel it.
func (r *run) admit(id json.RawMessage, stop context.CancelFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.askedFor >= maxAsking {
		return false
	}
	r.askedFor++
	r.underWay[string(id)] = stop // of requests with the same ID, the last
	return true
}

func (r *run) dismiss(id json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.askedFor--
	delete(r.underWay, string(id))
}

// takenBack cancels a pending request that the agent canceled.
func (r *run) takenBack(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if jsonrpc.Lenient(params, &p) != nil {
		return
	}
	r.mu.Lock()
	stop := r.underWay[string(p.ID)]
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
}
