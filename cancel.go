package perdure

import (
	"context"
	"database/sql"
	"errors"
)

// CancelTree cancels every task of the tree that is not terminal, and the tree
// with them, and returns how many tasks that were. Executors notice within
// Config.LookEvery and stop the running calls. A terminal tree is refused
// (CodeConflict).
func (s *Store) CancelTree(ctx context.Context, id TreeID, reason string) (int64, error) {
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return 0, err
	}
	return s.cancel(ctx, tree.Root, reason)
}

// CancelTask cancels a task and its descendants and returns how many tasks that
// were. To its parent it is a child without a result. A terminal task is refused
// (CodeConflict).
func (s *Store) CancelTask(ctx context.Context, id TaskID, reason string) (int64, error) {
	return s.cancel(ctx, id, reason)
}

func (s *Store) cancel(ctx context.Context, id TaskID, reason string) (n int64, err error) {
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		var err error
		n, err = b.cancelTask(ctx, int64(id), validPrefix(reason, MaxErrorBytes))
		return err
	}))
	return n, err
}

const (
	sqlCancelOne = `SELECT tree, parent, state, successor, flags, COALESCE(ready_at, 0) FROM task_hot WHERE id = $1`
	// CROSS JOIN tells SQLite to go from the few to the many.
	sqlLiving = `WITH RECURSIVE sub(id) AS (
			SELECT id FROM task WHERE tree = $1 AND parent = $2
			UNION ALL SELECT t.id FROM sub CROSS JOIN task t WHERE t.tree = $1 AND t.parent = sub.id)
		SELECT h.id, h.parent, h.state, COALESCE(h.session, 0), h.rank FROM sub CROSS JOIN task_hot h
		WHERE h.id = sub.id AND h.state IN ` + dbOpen
	sqlLivingOne = `SELECT id, parent, state, COALESCE(session, 0), rank FROM task_hot WHERE id = $1`
	sqlCancel    = `UPDATE task_hot SET state = ` + dbCancelled + `, session = NULL, ready_at = NULL, pending = 0,
		active_us = CASE WHEN state = ` + dbRunning + ` THEN active_us + $2 - claimed_at ELSE active_us END WHERE id = $1`
)

func (b *batch) cancelTask(ctx context.Context, id int64, reason string) (int64, error) {
	var tree, parent, state, successor, flags, readyAt int64
	err := b.tx.QueryRow(ctx, sqlCancelOne, []any{id}, &tree, &parent, &state, &successor, &flags, &readyAt)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, notFoundf("cancel task", "there is no task %q", TaskID(id))
	}
	if err != nil {
		return 0, err
	}
	if stateOf(state).Terminal() {
		return 0, &Error{Code: CodeConflict, Op: "cancel task", Err: &StateError{TaskID(id), stateOf(state), Cancelled}}
	}
	st, err := b.stat(ctx, tree)
	if err != nil {
		return 0, err
	}
	below, err := b.living(ctx, sqlLiving, tree, id)
	if err != nil {
		return 0, err
	}
	self, err := b.living(ctx, sqlLivingOne, id)
	if err != nil {
		return 0, err
	}
	all := append(below, self...)
	if err := b.cancelAll(ctx, st, all, reason); err != nil {
		return 0, err
	}
	n := int64(len(all))
	if parent == 0 {
		b.endTree(st, stCancelled, false)
		return n, nil
	}
	b.addOpen(parent, -1)
	if flags&flagSiblingsFail != 0 {
		return n, b.cancelChildren(ctx, tree, parent)
	}
	if state == stQueued && readyAt == 0 { // a step whose turn had not come
		_, err := b.tx.Exec(ctx, sqlSkipStep, id, successor, tree, parent)
		return n, err
	}
	return n, b.nextStep(ctx, st.tree, id, flags)
}

// The step before one that is left out is followed by the one after it.
const sqlSkipStep = `UPDATE task_hot SET successor = $2 WHERE successor = $1 AND state IN ` + dbOpen + `
	AND id IN (SELECT id FROM task WHERE tree = $3 AND parent = $4)`

// cancelSiblings cancels what is left of a family whose policy is fail.
func (b *batch) cancelSiblings(ctx context.Context, st *treeStat, l *Lease) error {
	return b.cancelChildren(ctx, st.tree, l.parent)
}

// cancelChildren cancels the descendants of a task that are not terminal.
func (b *batch) cancelChildren(ctx context.Context, tree, parent int64) error {
	if err := b.flushParents(ctx); err != nil {
		return err
	}
	tasks, err := b.living(ctx, sqlLiving, tree, parent)
	if err != nil || len(tasks) == 0 {
		return err
	}
	st, err := b.stat(ctx, tree)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.parent == parent {
			b.addOpen(parent, -1)
		}
	}
	return b.cancelAll(ctx, st, tasks, "a sibling or the parent failed")
}

type livingTask struct{ id, parent, state, session, rank int64 }

func (b *batch) living(ctx context.Context, q string, args ...any) ([]livingTask, error) {
	rows, err := b.tx.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	var tasks []livingTask
	err = each(rows, func() error {
		var t livingTask
		err := rows.Scan(&t.id, &t.parent, &t.state, &t.session, &t.rank)
		tasks = append(tasks, t)
		return err
	})
	return tasks, err
}

func (b *batch) cancelAll(ctx context.Context, st *treeStat, tasks []livingTask, reason string) error {
	for _, t := range tasks {
		if _, err := b.tx.Exec(ctx, sqlCancel, t.id, b.now); err != nil {
			return err
		}
		if err := b.closeCalls(ctx, st, t.id, allLeases); err != nil {
			return err
		}
		delete(b.families, t.id)
		st.move(t.state, stCancelled)
		st.time().Level(depthOfRank(t.rank)).Ended++
		if t.session != 0 {
			st.hold(t.session, -1)
		}
		b.ends = append(b.ends, t.id, st.tree, "", "", "cancelled", reason, b.now)
		b.event(st.tree, t.id, EventTaskCancelled, `{"reason":`+quote(validPrefix(reason, 500))+`}`)
	}
	return nil
}

const (
	sqlRetryOne = `SELECT h.tree, h.parent, h.state, h.rank, h.attempt, h.max_attempts, h.pending
		FROM task_hot h JOIN tree t ON t.id = h.tree WHERE h.id = $1`
	sqlReopen = `UPDATE task_hot SET state = ` + dbQueued + `, ready_at = $2, attempt = attempt + 1,
		max_attempts = CASE WHEN attempt + 1 > max_attempts THEN attempt + 1 ELSE max_attempts END WHERE id = $1`
)

// RetryTask gives a failed task one more attempt, whatever was left. Ancestors
// that failed are queued again too, and the tree goes on. It is refused
// (CodeConflict) for a task that is not failed, and when an ancestor completed
// or was cancelled, because those are final.
func (s *Store) RetryTask(ctx context.Context, id TaskID) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return b.retryTask(ctx, int64(id)) }))
}

type failedTask struct{ id, tree, parent, state, rank, attempt, max, pending int64 }

func (b *batch) retryTask(ctx context.Context, id int64) error {
	var line []failedTask
	for at := id; at != 0; {
		t := failedTask{id: at}
		err := b.tx.QueryRow(ctx, sqlRetryOne, []any{at}, &t.tree, &t.parent, &t.state, &t.rank, &t.attempt, &t.max, &t.pending)
		if errors.Is(err, sql.ErrNoRows) {
			return notFoundf("retry task", "there is no task %q", TaskID(at))
		}
		if err != nil {
			return err
		}
		if at == id && t.state != stFailed {
			return &Error{Code: CodeConflict, Op: "retry task", Err: &StateError{TaskID(id), stateOf(t.state), Queued},
				Hint: "only failed tasks are retried"}
		}
		if t.state == stCompleted || t.state == stCancelled {
			return &Error{Code: CodeConflict, Op: "retry task", Msg: "ancestor \"" + TaskID(at).String() + "\" is " +
				string(stateOf(t.state)) + ", which is final", Hint: "start a new run for what is missing"}
		}
		if err := b.refuseBesideCancelled(ctx, &t); err != nil {
			return err
		}
		line = append(line, t)
		at = t.parent
	}
	return b.reopen(ctx, line)
}

const sqlCancelledBeside = `SELECT COUNT(*) FROM task t JOIN task_hot h ON h.id = t.id
	WHERE t.tree = $1 AND t.parent = $2 AND h.state = ` + dbCancelled + ` AND (h.flags & ` + dbFlagSiblingsFail + `) <> 0`

// refuseBesideCancelled refuses a failed child whose failure cancelled its
// siblings: they are final, so its parent could only fail again.
func (b *batch) refuseBesideCancelled(ctx context.Context, t *failedTask) error {
	if t.state != stFailed || t.parent == 0 {
		return nil
	}
	var n int64
	err := b.tx.QueryRow(ctx, sqlCancelledBeside, []any{t.tree, t.parent}, &n)
	if err != nil || n == 0 {
		return err
	}
	return &Error{Code: CodeConflict, Op: "retry task", Hint: "start a new run",
		Msg: itoa(n) + " siblings of \"" + TaskID(t.id).String() + "\" were cancelled because it failed, which is final"}
}

// reopen queues a failed task and its failed ancestors. An ancestor that is
// claimed before its children are terminal waits for them again.
func (b *batch) reopen(ctx context.Context, line []failedTask) error {
	st, err := b.stat(ctx, line[0].tree)
	if err != nil {
		return err
	}
	for _, t := range line {
		if t.state != stFailed {
			break
		}
		if _, err := b.tx.Exec(ctx, sqlReopen, t.id, b.now); err != nil {
			return err
		}
		st.move(stFailed, stQueued)
		st.time().Level(depthOfRank(t.rank)).Ended--
		b.addOpen(t.parent, 1)
		b.event(st.tree, t.id, EventTaskRetried, `{"attempt":`+itoa(t.attempt+1)+`,"by":"request"}`)
	}
	if stateOf(st.state).Terminal() {
		st.state, st.endedAt, st.partial = stRunning, nil, 0
	}
	b.readied(st.tree)
	return nil
}
