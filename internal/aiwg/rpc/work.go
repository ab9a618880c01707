package rpc

import (
	"context"
	"encoding/json"
	"math"

	"github.com/perdure/perdure"
)

// changed is the answer to what changes a task: its record with a few members
// before it. fence is the token that further changes may carry, while the task is
// leased.
type changed struct {
	record json.RawMessage
	taskID perdure.TaskID
	tree   perdure.TreeID
	fence  int64
}

// MarshalJSON writes the record's members behind the others.
func (a changed) MarshalJSON() ([]byte, error) {
	head := struct {
		TaskID perdure.TaskID `json:"taskId"`
		Tree   perdure.TreeID `json:"treeId"`
		Fence  int64          `json:"fence,omitempty"`
	}{a.taskID, a.tree, a.fence}
	raw, err := encode(head)
	if err != nil {
		return nil, err
	}
	return append(append(raw[:len(raw)-1], ','), a.record[1:]...), nil
}

// changed is that answer for a task.
func (s *Server) changed(ctx context.Context, id perdure.TaskID, fence int64) (any, error) {
	t, err := s.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	record, err := s.record(ctx, t.Tree)
	return changed{record, id, t.Tree, fence}, err
}

// work does something about a task, at its locked desk, and answers with what
// the task is then.
func (s *Server) work(ctx context.Context, c *conn, p params, do func(*turn) error) (any, error) {
	t, done, err := s.turn(ctx, c, p)
	if err != nil {
		return nil, err
	}
	err = do(t)
	fence := int64(0)
	if t.k.lease != nil {
		fence = t.k.fence
	}
	done()
	if err != nil {
		return nil, err
	}
	return s.changed(ctx, t.id, fence)
}

func errStopping() error {
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: "serve", Msg: "the daemon is stopping",
		Hint: "try again when it runs"}
}

// start leases a task for the connection.
func (s *Server) start(ctx context.Context, c *conn, p params) (any, error) {
	pid, _, err := p.whole(0, math.MaxInt32, "pid")
	if err != nil {
		return nil, err
	}
	return s.work(ctx, c, p, func(t *turn) error { return t.begin(ctx, pid) })
}

func (s *Server) complete(ctx context.Context, c *conn, p params) (any, error) {
	r, err := p.outcome()
	if err != nil {
		return nil, err
	}
	return s.work(ctx, c, p, func(t *turn) error { return t.complete(ctx, r) })
}

func (s *Server) fail(ctx context.Context, c *conn, p params) (any, error) {
	f, err := p.failure()
	if err != nil {
		return nil, err
	}
	return s.work(ctx, c, p, func(t *turn) error { return t.fail(ctx, f) })
}

// appendOutput adds to the output. The answer is short: it may be sent often.
func (s *Server) appendOutput(ctx context.Context, c *conn, p params) (any, error) {
	text, there, err := p.text("chunk", "output", "text")
	if err == nil && !there {
		err = invalidParams("Missing required parameter: chunk")
	}
	if err != nil {
		return nil, err
	}
	t, done, err := s.turn(ctx, c, p)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := t.append(ctx, text); err != nil {
		return nil, err
	}
	return map[string]any{"taskId": t.id, "appended": len(text), "fence": t.k.fence}, nil
}
