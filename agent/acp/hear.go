package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// emit reports an event. The time this takes does not count as silence of the agent.
func (r *run) emit(e agent.Event) {
	if r.turn.Observe == nil {
		return
	}
	r.activity.begin()
	defer r.activity.end()
	r.observing.Lock()
	defer r.observing.Unlock()
	r.turn.Observe(e)
}

// report emits an event, and ends the prompt of an agent that retries although its quota is used up.
func (r *run) report(e agent.Event) {
	r.emit(e)
	switch e.Kind {
	case agent.EventRateLimited:
	case agent.EventMessage, agent.EventThought, agent.EventToolCall, agent.EventToolResult:
		r.limit.Store(nil)
		return
	default:
		return
	}
	failure := spokenError(e.Text, time.Now())
	if failure.Class() == agent.ClassWait || failure.Kind == agent.KindQuota {
		r.limit.Store(failure)
	}
	r.mu.Lock()
	quit := r.quit
	r.mu.Unlock()
	if failure.Kind == agent.KindQuota && quit != nil {
		quit(failure)
	}
}

// Notified takes a notification of the agent.
func (r *run) Notified(m *jsonrpc.Message, raw json.RawMessage) {
	switch m.Method {
	case methodUpdate:
		r.updated(m.Params, raw)
	case methodTakeBack:
		r.takenBack(m.Params)
	default:
		r.emit(agent.Event{Kind: agent.EventUnknown, Raw: raw})
	}
}

// updated takes a session/update.
func (r *run) updated(params, raw json.RawMessage) {
	var p struct {
		SessionID string `json:"sessionId"`
		Update    update `json:"update"`
	}
	if jsonrpc.Lenient(params, &p) != nil || p.Update.Kind == "" {
		r.emit(agent.Event{Kind: agent.EventUnknown, Raw: raw})
		return
	}
	r.mu.Lock()
	foreign := r.session != "" && p.SessionID != r.session
	events := r.story.take(&p.Update, foreign)
	r.mu.Unlock()
	for _, e := range events {
		e.Raw = raw
		r.report(e)
	}
}

// Asked takes a request of the agent.
func (r *run) Asked(m *jsonrpc.Message, raw json.RawMessage) {
	if m.Method == methodPermission {
		r.askPermission(m, raw)
		return
	}
	r.emit(agent.Event{Kind: agent.EventUnknown, Raw: raw})
	r.conn.Refuse(m.ID, jsonrpc.CodeNoMethod, "method is not supported by this client")
}

// Strange handles unexpected JSON.
func (r *run) Strange(raw json.RawMessage) {
	r.emit(agent.Event{Kind: agent.EventUnknown, Raw: raw})
}

// Noise takes a line that is not a message.
func (r *run) Noise(line []byte) {
	text := strings.TrimSpace(clean(string(line)))
	r.emit(agent.Event{Kind: agent.EventOutput, Text: model.Redact(clip.Prefix(text, maxLineBytes))})
}

// Left takes a message over the limit. It ends the connection if an answer is missing without it.
func (r *run) Left(f jsonrpc.Frame) error {
	text := fmt.Sprintf("a message of %d bytes was left out: at most %d are taken", f.Size, r.a.cfg.MaxFrameBytes)
	r.note(fmt.Sprintf("a message of more than %d bytes was left out", r.a.cfg.MaxFrameBytes))
	r.emit(agent.Event{Kind: agent.EventNotice, Text: text})
	if jsonrpc.Droppable(f.Data) {
		return nil
	}
	return jsonrpc.TooLarge(f.Size, r.a.cfg.MaxFrameBytes)
}
