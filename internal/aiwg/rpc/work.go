package rpc

import (
	"context"
	"encoding/json"
	"math"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// changed is the answer to a request that changes a task: its record after a few other
// members. fence is the worker's token while the task is leased.
type changed struct {
	record json.RawMessage
	taskID perdure.TaskID
	tree   perdure.TreeID
	fence  int64
}

// MarshalJSON writes the other members and then those of the record.
func (a changed) MarshalJSON() ([]byte, error) {
	head := struct {
		TaskID perdure.TaskID `json:"taskId"`
		Tree   perdure.TreeID `json:"treeId"`
		Fence  int64          `json:"fence,omitempty"`
	}{a.taskID, a.tree, a.fence}
	raw, err := jsontree.Marshal(head, "")
	if err != nil {
		return nil, err
	}
	return append(append(raw[:len(raw)-1], ','), a.record[1:]...), nil
}

// changed returns the answer for a task.
func (s *Server) changed(ctx context.Context, id perdure.TaskID, fence int64) (any, error) {
	t, err := s.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	record, err := s.record(ctx, id)
	return changed{record, id, t.Tree, fence}, err
}

// work calls do with the task of a request and returns the changed task.
func (s *Server) work(ctx context.Context, c *conn, p *params, do func(*operation) error) (any, error) {
	t, done, err := s.operation(ctx, c, p)
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
		Hint: "retry when the daemon runs again"}
}

// start leases a task for the connection.
func (s *Server) start(ctx context.Context, c *conn, p *params) (any, error) {
	pid, _ := p.whole(0, math.MaxInt32, "pid")
	return s.work(ctx, c, p, func(t *operation) error { return t.begin(ctx, pid) })
}

func (s *Server) complete(ctx context.Context, c *conn, p *params) (any, error) {
	r := p.outcome()
	return s.work(ctx, c, p, func(t *operation) error { return t.complete(ctx, r) })
}

func (s *Server) fail(ctx context.Context, c *conn, p *params) (any, error) {
	f := p.failure()
	return s.work(ctx, c, p, func(t *operation) error { return t.fail(ctx, f) })
}

// appendOutput appends to the output. The answer is short, because it is sent often.
func (s *Server) appendOutput(ctx context.Context, c *conn, p *params) (any, error) {
	text, there := p.text("chunk", "output", "text")
	if !there {
		p.fail("Missing required parameter: chunk")
	}
	t, done, err := s.operation(ctx, c, p)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := t.append(ctx, text); err != nil {
		return nil, err
	}
	return map[string]any{"taskId": t.id, "appended": len(text), "fence": t.k.fence}, nil
}
