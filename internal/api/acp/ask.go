package acp

import (
	"context"

	"github.com/perdure/perdure/internal/jsonrpc"
)

// question is a permission request.
type question struct {
	// ID is the tool call, Title one line, Text Markdown.
	ID, Title, Text string
	Options         []option
}

// option is an answer to a question.
type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// ask asks the user and returns the ID of the chosen option, "" if the question was cancelled. When
// ctx ends, the question is withdrawn.
func (t *turn) ask(ctx context.Context, q *question) (string, error) {
	call := object{"toolCallId": q.ID, "title": q.Title, "kind": "other", "status": statusPending,
		"content": textContent(q.Text)}
	t.s.update(t.ss.id, "tool_call", clone(call))
	got := make(chan jsonrpc.Reply, 1)
	id := t.s.conn.Send(methodPermission, object{"sessionId": t.ss.id, "toolCall": call, "options": q.Options},
		func(r jsonrpc.Reply) { got <- r })
	answer, err := t.answer(ctx, got, id)
	status := statusCompleted
	if answer == "" {
		status = statusFailed
	}
	t.s.update(t.ss.id, "tool_call_update", object{"toolCallId": q.ID, "status": status})
	return answer, err
}

// answer waits for the response to a permission request.
func (t *turn) answer(ctx context.Context, got <-chan jsonrpc.Reply, id int64) (string, error) {
	var r jsonrpc.Reply
	select {
	case <-ctx.Done():
		t.s.conn.Notify(methodWithdraw, object{"requestId": id})
		return "", context.Cause(ctx)
	case r = <-got:
	}
	if r.Err != nil {
		t.s.cfg.Logger.Warn("permission request", "error", r.Err)
		return "", errNoAnswer
	}
	var out struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	_ = jsonrpc.Lenient(r.Result, &out) // an invalid answer is no answer
	if out.Outcome.Outcome != "selected" {
		return "", nil
	}
	return out.Outcome.Option, nil
}

// clone returns a copy of an object, because an update adds a field to it.
func clone(o object) object {
	c := make(object, len(o)+1)
	for k, v := range o {
		c[k] = v
	}
	return c
}
