package perdure

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Result is the result of a completed task.
type Result struct {
	Text string
	// Data is a JSON object stored with the text; may be nil.
	Data json.RawMessage
	// Partial is set if parts are missing: [Store.Reopen] runs the task again. The result of
	// the root decides whether its tree is partial.
	Partial bool
	// Skipped is set if the task did not run because a condition was false.
	Skipped bool
	// KeepCalls says of a partial result that it is not the fault of the answers to the
	// calls of the attempt: if the task is reopened, they answer the same requests again.
	KeepCalls bool
}

// Failure describes a failed attempt.
type Failure struct {
	// Kind is for programs.
	Kind    string
	Message string
	// Retry requests another attempt if any are left, not before After.
	Retry bool
	After time.Duration
	// KeepCalls is [Result].KeepCalls of a failure. It holds for another attempt, too.
	KeepCalls bool
}

// Complete ends the task with its result. It fails with CodeConflict while children of
// the task are not terminal. When it returns nil, the result is durable.
func (l *Lease) Complete(ctx context.Context, r Result) error {
	end, err := l.completion(ctx, r)
	if err != nil {
		return err
	}
	return l.s.w.do(ctx, end)
}

// completion checks the result of the task, and stores what of it is long.
func (l *Lease) completion(ctx context.Context, r Result) (*complete, error) {
	const op = "complete task"
	if len(r.Text) > MaxResultBytes {
		return nil, invalidf(op, "result has %d bytes, the limit is %d", len(r.Text), MaxResultBytes)
	}
	if !storable(r.Text) {
		return nil, invalidf(op, "result is not valid UTF-8 text")
	}
	if err := validateObject(op, "result data", r.Data, MaxResultBytes); err != nil {
		return nil, err
	}
	text, data, err := l.s.storeBoth(ctx, r.Text, r.Data)
	return &complete{l: l, text: text, data: data, r: r}, err
}

type complete struct {
	l          *Lease
	text, data stored
	r          Result
}

const sqlComplete = `UPDATE task_hot SET state = ` + dbCompleted +
	`, session = NULL, active_us = active_us + $3 - claimed_at, flags = $4, replays = $5
	WHERE id = $1 AND fence = $2 AND state = ` + dbRunning + ` AND pending = 0`

// flagsAfter returns the flags of the task when it has completed with a result.
func (l *Lease) flagsAfter(r *Result) int64 {
	flags := l.flags &^ (sqldb.FlagPartial | sqldb.FlagSkipped | sqldb.FlagVars)
	if r.Partial {
		flags |= sqldb.FlagPartial
	}
	if r.Skipped {
		flags |= sqldb.FlagSkipped
	}
	return flags
}

// replaysAfter returns from which attempt on the calls of the task answer the same requests
// of later attempts.
func (l *Lease) replaysAfter(keep bool) int64 {
	if !keep {
		return 0
	}
	return cmp.Or(l.replays, int64(l.Task.Attempts))
}

func (c *complete) apply(ctx context.Context, b *batch) error {
	l, id := c.l, int64(c.l.Task.ID)
	if err := b.flushParent(ctx, id); err != nil {
		return err
	}
	n, err := b.tx.Exec(ctx, sqlComplete, id, l.fence, b.now, l.flagsAfter(&c.r),
		l.replaysAfter(c.r.Partial && c.r.KeepCalls))
	if err != nil {
		return err
	}
	if n == 0 {
		return b.refused(ctx, l, "complete task", Completed)
	}
	if err := b.keepValues(ctx, l.Tree.key, c.text, c.data); err != nil {
		return err
	}
	if err := b.settleVars(ctx, l); err != nil {
		return err
	}
	digest := b.end(&taskEnd{id: id, tree: l.Tree.key, result: c.text.column, data: c.data.column, at: b.now})
	return b.ended(ctx, l, stCompleted, c.r.Partial, withDigest(c.r.eventData(), digest))
}

// eventData returns the data of the event about a task that has completed, "" for none.
func (r *Result) eventData() string {
	switch {
	case r.Partial:
		return `{"partial":true}`
	case r.Skipped:
		return `{"skipped":true}`
	}
	return ""
}

const sqlHot = `SELECT fence, state, pending FROM task_hot WHERE id = $1`

// refused returns the reason why a guarded change of a leased task changed no row. want is
// the requested state, "" for a change that is not of the state.
func (b *batch) refused(ctx context.Context, l *Lease, op string, want State) error {
	var fence, state, pending int64
	err := b.tx.QueryRow(ctx, sqlHot, []any{int64(l.Task.ID)}, &fence, &state, &pending)
	if ignoreNoRows(err) != nil {
		return err
	}
	lost := &Error{Code: CodeLeaseLost, Op: op, Msg: "lease of task \"" + l.Task.ID.String() + "\" is lost"}
	switch {
	case err != nil:
		lost.Msg += ", the task was removed"
	case fence == l.fence && state == stRunning && pending > 0:
		return conflictf(op, "task %q has %d unfinished children", l.Task.ID, pending)
	case state == stRunning || want == "":
		lost.Msg += ", the task is " + string(stateOf(state))
	default:
		lost.Err = &StateError{l.Task.ID, stateOf(state), want}
	}
	return lost
}

// ended applies the effects of a task that became terminal under a lease.
func (b *batch) ended(ctx context.Context, l *Lease, state int64, partial bool, data string) error {
	st, err := b.stat(ctx, l.Tree.key)
	if err != nil {
		return err
	}
	id := int64(l.Task.ID)
	if l.calls.Load() {
		if err := b.closeCalls(ctx, st, id, allLeases); err != nil {
			return err
		}
	}
	delete(b.families, id)
	st.move(stRunning, state)
	st.hold(b.now, l.session.key, -1)
	st.time().Level(l.Task.Depth).Ended++
	kind := EventTaskFailed
	if state == stCompleted {
		kind = EventTaskCompleted
		st.time().Completed(l.Task.Depth, b.now-max(l.claimedAt, l.timedFrom)+l.Task.Active.Microseconds())
	}
	b.event(st.tree, id, kind, data)
	if l.parent == 0 {
		b.endTree(st, state, partial)
		return nil
	}
	b.addOpen(l.parent, -1)
	if state == stFailed && l.flags&sqldb.FlagSiblingsFail != 0 {
		return b.cancelChildren(ctx, st.tree, l.parent)
	}
	return b.nextStep(ctx, st.tree, id, l.flags)
}

const sqlNextStep = `UPDATE task_hot SET ready_at = $2 WHERE id = (SELECT successor FROM task_hot WHERE id = $1)
	AND state = ` + dbQueued + ` AND ready_at IS NULL`

// nextStep makes the sibling that waited for a step of a sequence claimable. The sibling is
// read now, because steps may have been added or cancelled since the claim.
func (b *batch) nextStep(ctx context.Context, tree, id, flags int64) error {
	if flags&sqldb.FlagStep == 0 {
		return nil
	}
	if err := b.flushTasks(ctx); err != nil {
		return err
	}
	b.ready[tree] = true
	_, err := b.tx.Exec(ctx, sqlNextStep, id, b.now)
	return err
}

func (b *batch) endTree(st *treeStat, state int64, partial bool) {
	now := b.now
	st.state, st.endedAt, b.over = state, &now, true
	kind, data := EventTreeCompleted, ""
	switch {
	case state == stFailed:
		kind = EventTreeFailed
	case state == stCancelled:
		kind = EventTreeCancelled
	case partial:
		st.partial, data = 1, `{"partial":true}`
	}
	b.event(st.tree, 0, kind, data)
}

// Fail ends the attempt. If f.Retry is set and attempts are left, the task is queued again,
// not before f.After, and retried is true; else the task is failed, and its unfinished
// descendants are cancelled.
func (l *Lease) Fail(ctx context.Context, f Failure) (retried bool, err error) {
	if f.Kind == "" || f.After < 0 || !storable(f.Kind) {
		return false, invalidf("fail task", "the kind is empty or not UTF-8 text, or the delay is negative")
	}
	c := &fail{l: l, f: f}
	c.f.Message = validPrefix(f.Message, MaxErrorBytes)
	err = l.s.w.do(ctx, c)
	return c.retried, err
}

type fail struct {
	l       *Lease
	f       Failure
	retried bool
}

const (
	sqlRetry = `UPDATE task_hot SET state = ` + dbQueued + `, session = NULL, ready_at = $4, attempt = attempt + 1,
		active_us = active_us + $3 - claimed_at, replays = $5 WHERE id = $1 AND fence = $2 AND state = ` + dbRunning +
		` AND attempt < max_attempts`
	sqlFail = `UPDATE task_hot SET state = ` + dbFailed + `, session = NULL, active_us = active_us + $3 - claimed_at,
		replays = $4 WHERE id = $1 AND fence = $2 AND state = ` + dbRunning
)

func (c *fail) apply(ctx context.Context, b *batch) error {
	l, id := c.l, int64(c.l.Task.ID)
	c.retried = false
	if c.f.Retry {
		n, err := b.tx.Exec(ctx, sqlRetry, id, l.fence, b.now, b.now+c.f.After.Microseconds(),
			l.replaysAfter(c.f.KeepCalls))
		if err != nil {
			return err
		}
		c.retried = n == 1
	}
	if !c.retried {
		n, err := b.tx.Exec(ctx, sqlFail, id, l.fence, b.now, l.replaysAfter(c.f.KeepCalls))
		if err != nil {
			return err
		}
		if n == 0 {
			return b.refused(ctx, l, "fail task", Failed)
		}
	}
	digest := b.end(&taskEnd{id: id, tree: l.Tree.key, kind: c.f.Kind, message: c.f.Message, at: b.now})
	data := `{"kind":` + quote(c.f.Kind) + `,"message":` + quote(validPrefix(c.f.Message, 500)) +
		`,"attempt":` + itoa(int64(l.Task.Attempts)) + `,"retry":` + strconv.FormatBool(c.retried) + `}`
	data = withDigest(data, digest)
	if c.retried {
		return b.retried(ctx, l, data)
	}
	if err := b.cancelChildren(ctx, l.Tree.key, id); err != nil {
		return err
	}
	return b.ended(ctx, l, stFailed, false, data)
}

func (b *batch) retried(ctx context.Context, l *Lease, data string) error {
	st, err := b.stat(ctx, l.Tree.key)
	if err != nil {
		return err
	}
	id := int64(l.Task.ID)
	if err := b.closeCalls(ctx, st, id, allLeases); err != nil {
		return err
	}
	st.move(stRunning, stQueued)
	st.hold(b.now, l.session.key, -1)
	b.event(st.tree, id, EventTaskFailed, data)
	b.event(st.tree, id, EventTaskRetried, `{"attempt":`+itoa(int64(l.Task.Attempts)+1)+`}`)
	b.ready[st.tree] = true
	return nil
}

// Release ends the lease without a result: the task is queued, and the next claim continues
// the same attempt with its journal.
func (l *Lease) Release(ctx context.Context) error {
	return l.s.w.do(ctx, &suspend{l: l, to: stQueued})
}

// Park ends the lease: the task is queued and cannot be claimed before the given time,
// unless [WriteTx.WakeParked] makes it claimable sooner. The next claim continues the same
// attempt.
func (l *Lease) Park(ctx context.Context, until time.Time) error {
	return l.s.w.do(ctx, &suspend{l: l, to: stQueued, until: until})
}

// Wait ends the lease and suspends the task until its children are terminal; then it is
// queued again. Without unfinished children it is queued at once.
func (l *Lease) Wait(ctx context.Context) error {
	return l.s.w.do(ctx, &suspend{l: l, to: stWaiting})
}

// Spawn creates children of the task and suspends it until they are terminal, in one
// transaction: after a crash there are all children or none.
func (l *Lease) Spawn(ctx context.Context, specs []TaskSpec) ([]TaskID, error) {
	if len(specs) == 0 {
		return nil, invalidf("spawn tasks", "list of children is empty")
	}
	c, err := l.s.prepareChildren(ctx, specs)
	if err != nil {
		return nil, err
	}
	c.parent = int64(l.Task.ID)
	err = l.s.w.do(ctx, &suspend{l: l, to: stWaiting, children: c})
	return c.ids, err
}

type suspend struct {
	l        *Lease
	to       int64
	until    time.Time // the task cannot be claimed before
	gate     bool      // the task waits at a gate
	children *createChildren
}

const (
	sqlHeldBy  = `SELECT pending FROM task_hot WHERE id = $1 AND fence = $2 AND state = ` + dbRunning
	sqlSuspend = `UPDATE task_hot SET state = $4, session = NULL, ready_at = $5, active_us = active_us + $3 - claimed_at
		WHERE id = $1 AND fence = $2 AND state = ` + dbRunning
)

func (c *suspend) apply(ctx context.Context, b *batch) error {
	l, id := c.l, int64(c.l.Task.ID)
	if err := b.flushParent(ctx, id); err != nil {
		return err
	}
	var pending int64
	if c.to == stWaiting {
		err := b.tx.QueryRow(ctx, sqlHeldBy, []any{id, l.fence}, &pending)
		if errors.Is(err, sql.ErrNoRows) {
			return b.refused(ctx, l, "suspend task", stateOf(c.to))
		}
		if err != nil {
			return err
		}
	}
	if c.children != nil {
		if err := c.children.apply(ctx, b); err != nil {
			return err
		}
		pending += int64(len(c.children.tasks))
	}
	to, kind := c.to, EventTaskWaiting
	var readyAt any
	if to == stWaiting && pending == 0 && !c.gate || to == stQueued {
		to, kind, readyAt = stQueued, EventTaskReleased, max(b.now, c.until.UnixMicro())
		b.ready[l.Tree.key] = true
	}
	n, err := b.tx.Exec(ctx, sqlSuspend, id, l.fence, b.now, to, readyAt)
	if err != nil {
		return err
	}
	if n == 0 {
		return b.refused(ctx, l, "suspend task", stateOf(c.to))
	}
	if c.to == stWaiting {
		if err := b.settleVars(ctx, l); err != nil {
			return err
		}
	}
	st, err := b.stat(ctx, l.Tree.key)
	if err != nil {
		return err
	}
	st.move(stRunning, to)
	st.hold(b.now, l.session.key, -1)
	b.event(st.tree, id, kind, "")
	return nil
}

const (
	sqlNextPart  = `SELECT COALESCE(MAX(part), 0) + 1 FROM task_output WHERE task = $1`
	sqlAddOutput = `INSERT INTO task_output (task, part, tree, text) VALUES ($1, $2, $3, $4)`
)

// AppendOutput appends to the output that the task has streamed.
func (l *Lease) AppendOutput(ctx context.Context, text string) error {
	if len(text) > MaxPayloadBytes || !storable(text) {
		return invalidf("append output", "output is longer than %d bytes or not valid UTF-8 text", MaxPayloadBytes)
	}
	return l.s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		if err := b.held(ctx, l, "append output"); err != nil {
			return err
		}
		var part int64
		if err := b.tx.QueryRow(ctx, sqlNextPart, []any{int64(l.Task.ID)}, &part); err != nil {
			return err
		}
		_, err := b.tx.Exec(ctx, sqlAddOutput, int64(l.Task.ID), part, l.Tree.key, text)
		return err
	}))
}

// AppendEvent appends an event about the task. data is encoded as a JSON object.
func (l *Lease) AppendEvent(ctx context.Context, kind EventKind, data any) error {
	raw, err := eventData(data)
	if err != nil {
		return err
	}
	return l.s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		if err := b.held(ctx, l, "append event"); err != nil {
			return err
		}
		b.event(l.Tree.key, int64(l.Task.ID), kind, raw)
		return nil
	}))
}

// held returns an error if the lease was lost.
func (b *batch) held(ctx context.Context, l *Lease, op string) error {
	var pending int64
	err := b.tx.QueryRow(ctx, sqlHeldBy, []any{int64(l.Task.ID), l.fence}, &pending)
	if errors.Is(err, sql.ErrNoRows) {
		return b.refused(ctx, l, op, "")
	}
	return err
}
