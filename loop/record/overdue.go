package record

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
)

// sqlWaitingTrees are the trees that wait at the gate of a run.
const sqlWaitingTrees = `SELECT t.id, t.created_at, s.limits, g.number FROM gate g JOIN tree t ON t.id = g.tree JOIN tree_stat s ON s.tree = g.tree
	WHERE g.answered_at IS NULL AND s.state IN (1, 2) AND EXISTS (SELECT 1 FROM gate_task w WHERE w.tree = g.tree AND w.gate = g.number)
	ORDER BY g.tree LIMIT $1 + 0`

// FreeOverdue lets the tasks of runs go on that wait at a gate although the time of
// their tree is over: they find that out, and the tree ends with what there is. An
// answer could not help them any more. The gate stays unanswered.
func (r *Records) FreeOverdue(ctx context.Context) error {
	const op = "look at gates"
	type waiting struct {
		tree    int64
		created micros
		limits  string
		gate    int
	}
	rows, err := r.store.Reader().Query(ctx, sqlWaitingTrees, maxGates)
	if err != nil {
		return wrap(op, err)
	}
	defer rows.Close()
	var overdue []waiting
	for rows.Next() {
		var one waiting
		if err := rows.Scan(&one.tree, &one.created, &one.limits, &one.gate); err != nil {
			return wrap(op, err)
		}
		var limits perdure.Limits
		if err := json.Unmarshal([]byte(one.limits), &limits); err != nil {
			return wrap(op, err)
		}
		if limits.WallTime > 0 && time.Since(time.Time(one.created)) >= limits.WallTime {
			overdue = append(overdue, one)
		}
	}
	if err := rows.Err(); err != nil {
		return wrap(op, err)
	}
	for _, one := range overdue {
		if err := r.free(ctx, one.tree, one.gate); err != nil {
			return wrap(op, err)
		}
	}
	return nil
}

// free lets all tasks go on that still wait at a gate.
func (r *Records) free(ctx context.Context, key int64, gate int) error {
	if list, err := waiters(ctx, r.store.Reader(), key, gate, 1); err != nil || len(list) == 0 {
		return err // they were let go on before, and are about to end
	}
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		list, err := waiters(ctx, tx, key, gate, maxWaiters)
		if err != nil {
			return err
		}
		for _, one := range list {
			if err := tx.Resume(ctx, key, one.Task); err != nil {
				return err
			}
		}
		return nil
	})
}
