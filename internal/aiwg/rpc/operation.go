package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
)

// operation is one request about a task whose work item is locked.
type operation struct {
	s  *Server
	c  *conn
	k  *workItem
	id perdure.TaskID
	// fence is the token that the worker passed, nil if it passed none.
	fence *int64
}

// operation finds the task of a request, whose other parameters are read, and locks its
// work item. done unlocks it.
func (s *Server) operation(ctx context.Context, c *conn, p *params) (t *operation, done func(), err error) {
	t = &operation{s: s, c: c, fence: p.fence()}
	task, err := s.findTask(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if t.fence == nil {
		s.awaitEnd(ctx, s.items.other(task.ID, c))
	}
	if tree, err := s.store.Tree(ctx, task.Tree); err != nil || tree.Kind != Kind {
		return nil, nil, cmp.Or(err, importedError(&task))
	}
	t.id, t.k = task.ID, s.items.acquire(task.ID)
	return t, func() { s.items.release(t.id, t.k) }, nil
}

// importedError is the error for a change of an imported task.
func importedError(t *perdure.Task) error {
	return &Error{Code: CodeConflict, Message: fmt.Sprintf("task %q was imported; imported tasks are not executed", t.ID),
		Data: &ErrorData{Code: perdure.CodeConflict, TaskID: t.ID, Hint: "submit its prompt again with task.submit"}}
}

// maxClosing is the longest wait for the end of a connection. Its last request is
// answered before the end is noticed.
const maxClosing = 500 * time.Millisecond

// awaitEnd waits for the end of a connection, so that a client that opens a connection
// for each request does not find its task held by its previous one.
func (s *Server) awaitEnd(ctx context.Context, c *conn) {
	if c == nil {
		return
	}
	select {
	case <-c.ended:
	case <-time.After(maxClosing):
	case <-ctx.Done():
	}
}

// heldBy returns the error for a task that another worker holds.
func (t *operation) heldBy(owner string) *Error {
	return &Error{Code: CodeLease, Message: fmt.Sprintf("task %q is leased by %s", t.id, owner),
		Data: &ErrorData{Code: perdure.CodeConflict, TaskID: t.id, Hint: "if you are its worker, pass the fence that " +
			"task.start returned"}}
}

func (t *operation) stale() *Error {
	return &Error{Code: CodeLease, Message: fmt.Sprintf("lease of task %q is lost: the fence is outdated", t.id),
		Data: &ErrorData{Code: perdure.CodeLeaseLost, TaskID: t.id}}
}

func refusedState(t *perdure.Task, want perdure.State, hint string) error {
	return &perdure.Error{Code: perdure.CodeConflict, Op: "change task",
		Err: &perdure.StateError{Task: t.ID, Is: t.State, Want: want}, Hint: hint}
}

// worker is the event of task.start. Its fence is the worker's token until the next
// task.start, also if the task was claimed again meanwhile, for example after the daemon
// died.
type worker struct {
	Fence int64 `json:"worker_fence"`
	PID   int64 `json:"pid,omitempty"`
}

// begin leases the task for the connection; pid is the worker's process, for the event.
func (t *operation) begin(ctx context.Context, pid int64) error {
	if t.s.stopping() {
		return errStopping()
	}
	if err := t.dropLost(ctx); err != nil {
		return err
	}
	switch owner := t.s.items.owner(t.k); {
	case t.k.lease == nil:
	case t.fence != nil && *t.fence != t.k.fence:
		return t.stale()
	case t.fence != nil || owner == t.c:
		t.s.items.assign(t.k, t.c)
		return nil
	case owner != nil:
		return t.heldBy("another connection")
	default: // the worker is disconnected
		t.s.releaseLease(ctx, t.k)
	}
	task, err := t.s.store.Task(ctx, t.id)
	if err != nil {
		return err
	}
	if err := t.claim(ctx, &task); err != nil {
		return err
	}
	t.k.fence = t.k.lease.Fence()
	t.s.items.setPID(t.k, pid)
	return t.k.lease.AppendEvent(ctx, perdure.EventTaskProgress, worker{t.k.fence, pid})
}

// resume leases a task again for its last worker.
func (t *operation) resume(ctx context.Context, task *perdure.Task) error {
	if err := t.claim(ctx, task); err != nil {
		return err
	}
	// No other worker can start it now.
	fence, err := t.s.lastWorker(ctx, task.Tree)
	if err == nil && t.fence != nil && *t.fence != fence {
		err = t.stale()
	}
	if err != nil {
		t.s.releaseLease(ctx, t.k)
		return err
	}
	t.k.fence = fence
	return nil
}

// claim leases a task that is queued, or whose server died.
func (t *operation) claim(ctx context.Context, task *perdure.Task) error {
	l, err := t.s.claim(ctx, task.Tree)
	if err != nil {
		return err
	}
	if l == nil {
		return t.whyNot(ctx)
	}
	t.k.lease = l
	t.s.items.assign(t.k, t.c)
	return nil
}

// lastWorker returns the token of the last worker that started the task of a tree.
func (s *Server) lastWorker(ctx context.Context, tree perdure.TreeID) (fence int64, err error) {
	for f := (perdure.EventFilter{Tree: tree}); ; {
		page, err := s.store.Events(ctx, f)
		if err != nil || len(page) == 0 {
			return fence, err
		}
		for i := range page {
			var w worker
			if page[i].Kind == perdure.EventTaskProgress && json.Unmarshal(page[i].Data, &w) == nil && w.Fence != 0 {
				fence = w.Fence
			}
		}
		f.After = page[len(page)-1].Seq
	}
}

// whyNot returns why the task cannot be claimed.
func (t *operation) whyNot(ctx context.Context) error {
	task, err := t.s.store.Task(ctx, t.id)
	switch {
	case err != nil:
		return err
	case task.State == perdure.Running:
		return t.heldBy("another process")
	case task.State == perdure.Queued && task.ReadyAt.After(time.Now()):
		return &perdure.Error{Code: perdure.CodeConflict, Op: "start task",
			Msg: fmt.Sprintf("task %q waits for its next attempt at %s", t.id, task.ReadyAt.Format(time.RFC3339))}
	}
	return refusedState(&task, perdure.Running, "")
}

// dropLost clears the work item if its lease is lost: the task was cancelled.
func (t *operation) dropLost(ctx context.Context) error {
	if t.k.lease == nil {
		return nil
	}
	lost, err := t.s.session.Lost(ctx, []*perdure.Lease{t.k.lease})
	if err == nil && len(lost) > 0 {
		t.s.items.clear(t.k)
	}
	return err
}

// authorize checks that the connection may change the task to the state want, and makes
// it the owner. A worker whose task was queued again gets it back if no other worker
// started it.
func (t *operation) authorize(ctx context.Context, want perdure.State) error {
	if t.k.lease != nil {
		switch owner := t.s.items.owner(t.k); {
		case t.fence != nil && *t.fence != t.k.fence:
			return t.stale()
		case t.fence == nil && owner != nil && owner != t.c:
			return t.heldBy("another connection")
		}
		t.s.items.assign(t.k, t.c)
		return nil
	}
	task, err := t.s.store.Task(ctx, t.id)
	if err != nil {
		return err
	}
	lost := task.Lease != nil && task.Lease.Lost
	switch {
	case lost || task.State == perdure.Queued && !task.StartedAt.IsZero():
		return t.resume(ctx, &task)
	case task.State == perdure.Queued && t.fence == nil: // existing clients do not start a task first
		return t.begin(ctx, 0)
	case task.State == perdure.Running:
		return t.heldBy("another process")
	}
	return refusedState(&task, want, "task.start starts a queued task")
}

// settle calls end, which ends the lease, and clears the work item.
func (t *operation) settle(ctx context.Context, want perdure.State, end func(l *perdure.Lease) error) error {
	if err := t.authorize(ctx, want); err != nil {
		return err
	}
	err := end(t.k.lease)
	if err == nil {
		t.s.items.clear(t.k)
	}
	return t.explainLost(ctx, want, err)
}

// explainLost clears the work item after a change that found the lease lost, and returns
// why it is lost: mostly because the task was cancelled.
func (t *operation) explainLost(ctx context.Context, want perdure.State, err error) error {
	if !errors.Is(err, perdure.ErrLeaseLost) {
		return err
	}
	t.s.items.clear(t.k)
	if task, readErr := t.s.store.Task(ctx, t.id); readErr == nil && task.State.Terminal() {
		return refusedState(&task, want, "")
	}
	return err
}

// complete completes the task with a result. It can be repeated with the same result: the
// first answer could have been lost.
func (t *operation) complete(ctx context.Context, r perdure.Result) error {
	if t.k.lease == nil {
		now, err := t.s.store.Task(ctx, t.id)
		if err != nil || now.State == perdure.Completed && now.Result == r.Text {
			return err
		}
	}
	return t.settle(ctx, perdure.Completed, func(l *perdure.Lease) error { return l.Complete(ctx, r) })
}

// fail ends the attempt. It can be repeated, as complete.
func (t *operation) fail(ctx context.Context, f perdure.Failure) error {
	if t.k.lease == nil {
		now, err := t.s.store.Task(ctx, t.id)
		again := now.State == perdure.Failed && now.Error != nil && now.Error.Kind == f.Kind && now.Error.Message == f.Message
		if err != nil || again {
			return err
		}
	}
	return t.settle(ctx, perdure.Failed, func(l *perdure.Lease) error {
		_, err := l.Fail(ctx, f)
		return err
	})
}

// append appends to the output, in parts that fit into the store.
func (t *operation) append(ctx context.Context, text string) error {
	if err := t.authorize(ctx, perdure.Running); err != nil {
		return err
	}
	for text != "" {
		part := clip.Prefix(text, perdure.MaxPayloadBytes)
		if err := t.k.lease.AppendOutput(ctx, part); err != nil {
			return t.explainLost(ctx, perdure.Running, err)
		}
		text = text[len(part):]
	}
	return nil
}
