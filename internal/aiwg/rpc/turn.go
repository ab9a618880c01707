package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// turn is one request about a task, at its locked desk.
type turn struct {
	s  *Server
	c  *conn
	k  *desk
	id perdure.TaskID
	// fence is the token that the worker passed, nil without one.
	fence *int64
}

// turn finds the task that parameters name and locks its desk. done unlocks it.
func (s *Server) turn(ctx context.Context, c *conn, p params) (t *turn, done func(), err error) {
	t = &turn{s: s, c: c}
	if t.fence, err = p.fence(); err != nil {
		return nil, nil, err
	}
	name, err := p.taskID()
	if err != nil {
		return nil, nil, err
	}
	task, err := s.find(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if t.fence == nil {
		s.awaitEnd(ctx, s.desks.other(task.ID, c))
	}
	t.id, t.k = task.ID, s.desks.sit(task.ID)
	return t, func() { s.desks.rise(t.id, t.k) }, nil
}

// lastClosing is how long a task that somebody else seems to work on is waited
// for: the end of a connection is noticed a moment later, and the last thing a
// client sent before it closed it is done first.
const lastClosing = 500 * time.Millisecond

// awaitEnd waits a moment for the end of a connection: a client that opens one for
// each request does not find its task held by the one before.
func (s *Server) awaitEnd(ctx context.Context, c *conn) {
	if c == nil {
		return
	}
	timer := time.NewTimer(lastClosing)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// held says that somebody else works on the task.
func (t *turn) held(who string) *Error {
	return &Error{Code: CodeLease, Message: fmt.Sprintf("task %q is being worked on by %s", t.id, who),
		Data: &ErrorData{Code: perdure.CodeConflict, TaskID: t.id, Hint: "whoever works on it may pass the fence that " +
			"task.start returned"}}
}

func (t *turn) stale() *Error {
	return &Error{Code: CodeLease, Message: fmt.Sprintf("lease of task %q is lost: its fence is an old one", t.id),
		Data: &ErrorData{Code: perdure.CodeLeaseLost, TaskID: t.id}}
}

func refusedState(t *perdure.Task, want perdure.State, hint string) error {
	return &perdure.Error{Code: perdure.CodeConflict, Op: "change task",
		Err: &perdure.StateError{Task: t.ID, Is: t.State, Want: want}, Hint: hint}
}

// worker is the note of task.start in the log of the task. The fence in it is the
// token of the worker until the next one starts: a worker goes on with it although
// the task had to be claimed again, after its daemon died for example.
type worker struct {
	Fence int64 `json:"worker_fence"`
	PID   int64 `json:"pid,omitempty"`
}

// begin leases the task for the connection, as that of a process.
func (t *turn) begin(ctx context.Context, pid int64) error {
	if t.s.stopping() {
		return errStopping()
	}
	if err := t.dropLost(ctx); err != nil {
		return err
	}
	switch owner := t.s.desks.owner(t.k); {
	case t.k.lease == nil:
	case t.fence != nil && *t.fence != t.k.fence:
		return t.stale()
	case t.fence != nil || owner == t.c:
		t.s.desks.give(t.k, t.c)
		return nil
	case owner != nil:
		return t.held("another connection")
	default: // its worker is gone, as far as anybody knows
		t.s.release(ctx, t.k)
	}
	task, err := t.s.store.Task(ctx, t.id)
	if err != nil {
		return err
	}
	if err := t.claim(ctx, &task); err != nil {
		return err
	}
	t.k.fence = t.k.lease.Fence()
	return t.k.lease.AppendEvent(ctx, perdure.EventTaskProgress, worker{t.k.fence, pid})
}

// resume leases a task again for the worker who had it last.
func (t *turn) resume(ctx context.Context, task *perdure.Task) error {
	if err := t.claim(ctx, task); err != nil {
		return err
	}
	// Nobody can start it meanwhile.
	fence, err := t.s.lastWorker(ctx, task.Tree)
	if err == nil && t.fence != nil && *t.fence != fence {
		err = t.stale()
	}
	if err != nil {
		t.s.release(ctx, t.k)
		return err
	}
	t.k.fence = fence
	return nil
}

// claim leases a task that is queued, or whose worker died with another server.
func (t *turn) claim(ctx context.Context, task *perdure.Task) error {
	l, err := t.s.claim(ctx, task.Tree)
	if err != nil {
		return err
	}
	if l == nil {
		return t.whyNot(ctx)
	}
	t.k.lease = l
	t.s.desks.give(t.k, t.c)
	return nil
}

// lastWorker is the token of the last worker who started the task of a tree.
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

// whyNot says why the task cannot be claimed.
func (t *turn) whyNot(ctx context.Context) error {
	task, err := t.s.store.Task(ctx, t.id)
	switch {
	case err != nil:
		return err
	case task.State == perdure.Running:
		return t.held("another process")
	case task.State == perdure.Queued && task.ReadyAt.After(time.Now()):
		return &perdure.Error{Code: perdure.CodeConflict, Op: "start task",
			Msg: fmt.Sprintf("task %q is to be tried again at %s", t.id, task.ReadyAt.Format(time.RFC3339))}
	}
	return refusedState(&task, perdure.Running, "")
}

// dropLost clears the desk when the lease on it is lost: the task was cancelled.
func (t *turn) dropLost(ctx context.Context) error {
	if t.k.lease == nil {
		return nil
	}
	lost, err := t.s.session.Lost(ctx, []*perdure.Lease{t.k.lease})
	if err == nil && len(lost) > 0 {
		t.s.desks.clear(t.k)
	}
	return err
}

// reach makes sure that the connection may write about the task, which lies on
// the desk then; want is what it is to become. A worker that was silent for so
// long that its task went back to the queue has it again, if nobody else had it
// meanwhile.
func (t *turn) reach(ctx context.Context, want perdure.State) error {
	if t.k.lease != nil {
		switch owner := t.s.desks.owner(t.k); {
		case t.fence != nil && *t.fence != t.k.fence:
			return t.stale()
		case t.fence == nil && owner != nil && owner != t.c:
			return t.held("another connection")
		}
		t.s.desks.give(t.k, t.c)
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
	case task.State == perdure.Running:
		return t.held("another process")
	}
	return refusedState(&task, want, "task.start begins a task that is queued")
}

// settle does what ends the lease, and clears the desk.
func (t *turn) settle(ctx context.Context, want perdure.State, end func(l *perdure.Lease) error) error {
	if err := t.reach(ctx, want); err != nil {
		return err
	}
	err := end(t.k.lease)
	if err == nil {
		t.s.desks.clear(t.k)
	}
	return t.noticed(ctx, want, err)
}

// noticed clears the desk after a change that found the lease lost, and says why
// it is: mostly somebody has cancelled the task.
func (t *turn) noticed(ctx context.Context, want perdure.State, err error) error {
	if !errors.Is(err, perdure.ErrLeaseLost) {
		return err
	}
	t.s.desks.clear(t.k)
	if task, readErr := t.s.store.Task(ctx, t.id); readErr == nil && task.State.Terminal() {
		return refusedState(&task, want, "")
	}
	return err
}

// complete ends the task with a result. Said again of a task that completed
// with it, it is what it was: the answer to the first time may have been lost.
func (t *turn) complete(ctx context.Context, r perdure.Result) error {
	if t.k.lease == nil {
		now, err := t.s.store.Task(ctx, t.id)
		if err != nil || now.State == perdure.Completed && now.Result == r.Text {
			return err
		}
	}
	return t.settle(ctx, perdure.Completed, func(l *perdure.Lease) error { return l.Complete(ctx, r) })
}

// fail ends the attempt. Said again it is what it was, as complete.
func (t *turn) fail(ctx context.Context, f perdure.Failure) error {
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

// append adds to the output, in pieces of a size the store takes.
func (t *turn) append(ctx context.Context, text string) error {
	if err := t.reach(ctx, perdure.Running); err != nil {
		return err
	}
	for text != "" {
		piece := text[:cut(text, perdure.MaxPayloadBytes)]
		if err := t.k.lease.AppendOutput(ctx, piece); err != nil {
			return t.noticed(ctx, perdure.Running, err)
		}
		text = text[len(piece):]
	}
	return nil
}

// cut is where to cut a text, at most so many bytes long, between characters.
func cut(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return most
}
