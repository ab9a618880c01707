package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// CancelTree cancels the tree and all its tasks that are not terminal, and returns their
// number. Executors notice within [Config.PollInterval] and stop the running calls. It
// fails with CodeConflict for a terminal tree.
func (s *Store) CancelTree(ctx context.Context, id TreeID, reason string) (int64, error) {
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return 0, err
	}
	return s.cancel(ctx, tree.Root, reason)
}

// CancelTask cancels a task and its descendants and returns their number. For its parent
// it is a child without a result. It fails with CodeConflict for a terminal task.
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
	// CROSS JOIN makes SQLite read sub first, which has few rows.
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
	if err != nil {
		return 0, orNotFound(err, noTask("cancel task", id))
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
	if flags&sqldb.FlagSiblingsFail != 0 {
		return n, b.cancelChildren(ctx, tree, parent)
	}
	if state == stQueued && readyAt == 0 { // a step that waited for the previous one
		_, err := b.tx.Exec(ctx, sqlSkipStep, id, successor, tree, parent)
		return n, err
	}
	return n, b.nextStep(ctx, st.tree, id, flags)
}

// sqlSkipStep makes the step before a cancelled one be followed by the one after it.
const sqlSkipStep = `UPDATE task_hot SET successor = $2 WHERE successor = $1 AND state IN ` + dbOpen + `
	AND id IN (SELECT id FROM task WHERE tree = $3 AND parent = $4)`

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
	return sqldb.Collect(ctx, b.tx.Query, func(scan sqldb.Scan) (t livingTask, err error) {
		err = scan(&t.id, &t.parent, &t.state, &t.session, &t.rank)
		return t, err
	}, q, args...)
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
			st.hold(b.now, t.session, -1)
		}
		digest := b.end(&taskEnd{id: t.id, tree: st.tree, kind: "cancelled", message: reason, at: b.now})
		data := `{"reason":` + quote(validPrefix(reason, 500)) + `}`
		b.event(st.tree, t.id, EventTaskCancelled, withDigest(data, digest))
	}
	return nil
}
