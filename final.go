package perdure

import (
	"context"
	"encoding/json"
	"time"
)

// finalChange completes a task because its variable Final was set, by the lease of the
// task or without it. In the latter case the task is claimed and completed at once.
type finalChange struct {
	id, state int64
	lease     *Lease // of the task, or made from its row
	own       bool
	rest      bool // cancel unfinished descendants first
	result    stored
}

const (
	sqlFinishing = `SELECT parent, rank, fence, attempt, flags, state, pending, COALESCE(session, 0), COALESCE(claimed_at, 0), active_us,
		COALESCE(ready_at, 0) FROM task_hot WHERE id = $1`
	sqlFinish = `UPDATE task_hot SET state = ` + dbCompleted + `, session = NULL, ready_at = NULL, fence = fence + 1,
		started_at = COALESCE(started_at, $2), claimed_at = COALESCE(claimed_at, $2),
		active_us = CASE WHEN state = ` + dbRunning + ` THEN active_us + $2 - claimed_at ELSE active_us END WHERE id = $1`
)

// mayFinish returns an error if the task may not complete, before anything is changed.
func (b *batch) mayFinish(ctx context.Context, c *varChange, st *varState) (*finalChange, error) {
	const op = "set variable"
	f := &finalChange{id: st.task, rest: c.spec.CancelRest, result: c.result}
	if err := b.flushParents(ctx); err != nil {
		return nil, err
	}
	l := &Lease{s: b.s, Tree: Tree{key: st.tree}, Task: Task{ID: TaskID(st.task)}}
	var rank, pending, session, active, readyAt int64
	err := b.tx.QueryRow(ctx, sqlFinishing, []any{st.task}, &l.parent, &rank, &l.fence, &l.Task.Attempts, &l.flags,
		&f.state, &pending, &session, &l.claimedAt, &active, &readyAt)
	if err != nil {
		return nil, orNotFound(err, noTask(op, st.task))
	}
	l.Task.Depth, l.Task.Active, l.session = depthOfRank(rank), time.Duration(active)*time.Microsecond,
		&Session{key: session}
	l.calls.Store(true)
	f.lease = l
	if c.l != nil && c.l.Task.ID == l.Task.ID {
		f.own, f.lease = true, c.l
	}
	switch {
	case stateOf(f.state).Terminal():
		return nil, &Error{Code: CodeConflict, Op: op, Err: &StateError{l.Task.ID, stateOf(f.state), Completed}}
	case pending > 0 && !f.rest:
		return nil, &Error{Code: CodeConflict, Op: op, Msg: "task \"" + l.Task.ID.String() + "\" has " + itoa(pending) +
			" unfinished children",
			Hint: "wait for them, or cancel them with --cancel-rest"}
	case f.state == stQueued && readyAt == 0:
		return nil, conflictf(op, "task %q waits for the previous step", l.Task.ID)
	}
	return f, nil
}

func (f *finalChange) apply(ctx context.Context, b *batch) error {
	if f.rest {
		if err := b.cancelChildren(ctx, f.lease.Tree.key, f.id); err != nil {
			return err
		}
		if err := b.flushParents(ctx); err != nil {
			return err
		}
	}
	if f.own {
		return (&complete{l: f.lease, text: f.result}).apply(ctx, b)
	}
	st, err := b.stat(ctx, f.lease.Tree.key)
	if err != nil {
		return err
	}
	if f.state != stRunning {
		b.take(st, f.lease)
	}
	if _, err := b.tx.Exec(ctx, sqlFinish, f.id, b.now); err != nil {
		return err
	}
	if err := b.keepValue(ctx, st.tree, f.result); err != nil {
		return err
	}
	digest := b.end(&taskEnd{id: f.id, tree: st.tree, result: f.result.column, at: b.now})
	return b.ended(ctx, f.lease, stCompleted, false, withDigest(`{"by":"Final"}`, digest))
}

// take counts a queued task as claimed by no session, until ended counts its end.
func (b *batch) take(st *treeStat, l *Lease) {
	st.start(b.now)
	l.claimedAt = b.now
	st.move(stQueued, stRunning)
	st.hold(b.now, l.session.key, 1)
	b.event(st.tree, int64(l.Task.ID), EventTaskStarted, `{"attempt":`+itoa(int64(l.Task.Attempts))+`,"fence":`+itoa(l.fence+1)+`,"by":"Final"}`)
}

// resultText returns the result for a value of Final: a text itself, other values as JSON.
func resultText(value string) string {
	var text string
	if typeOf(value) == VarText && json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}
