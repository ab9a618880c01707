package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Tasks of a run wait at a gate of their tree: the row of a task in gate_task has the
// reason, and later the answer.
const (
	sqlOpenGateOf = `SELECT number FROM gate WHERE tree = $1 AND kind = $2 AND answered_at IS NULL ORDER BY number LIMIT 1`
	sqlAddWaiting = `INSERT INTO gate_task (task, tree, gate, why, answer, answered_by, text) VALUES ($1, $2, $3, $4, '', '', '')
		ON CONFLICT (task) DO UPDATE SET gate = excluded.gate, why = excluded.why, answer = '', answered_by = '', text = ''`
	sqlGateTasks = `SELECT g.task, g.why FROM gate_task g JOIN task_hot h ON h.id = g.task
		WHERE g.tree = $1 AND g.gate = $2 AND g.answer = '' AND h.state = ` + dbWaiting + ` ORDER BY g.task LIMIT $3 + 0`
	sqlGateAnswer    = `SELECT gate, answer, answered_by, text, why FROM gate_task WHERE task = $1`
	sqlAnswerWaiting = `UPDATE gate_task SET answer = $2, answered_by = $3, text = $4 WHERE task = $1 AND answer = ''`
	sqlRunnable      = `SELECT EXISTS (SELECT 1 FROM tree t JOIN tree_stat s ON s.tree = t.id
		WHERE t.name = $1 AND (s.running > 0 OR EXISTS (SELECT 1 FROM task_hot h WHERE h.tree = t.id AND h.ready_at IS NOT NULL)))`
	sqlWaitingTrees = `SELECT t.id, COALESCE(t.reopened_at, t.created_at), s.limits, g.number
		FROM gate g JOIN tree t ON t.id = g.tree JOIN tree_stat s ON s.tree = g.tree
		WHERE g.answered_at IS NULL AND s.state IN ` + dbOpenTree + `
			AND EXISTS (SELECT 1 FROM gate_task w WHERE w.tree = g.tree AND w.gate = g.number)
		ORDER BY g.tree LIMIT $1 + 0`
	sqlResume = `UPDATE task_hot SET state = ` + dbQueued + `, ready_at = $2 WHERE id = $1 AND state = ` + dbWaiting +
		` AND pending = 0`
)

// WaitAtGate releases the task; it waits at the open gate of the given kind of its tree
// until [Store.AnswerGate], and the next claim continues the same attempt. If there is no
// such gate, WaitAtGate opens it with q, and opened is its number, else 0. q.Text is the
// reason why the task waits.
func (l *Lease) WaitAtGate(ctx context.Context, kind GateKind, q GateQuestion) (opened int, err error) {
	q.Text = validPrefix(q.Text, MaxGateReasonBytes)
	raw, err := json.Marshal(q)
	if err != nil {
		return 0, &Error{Code: CodeInvalid, Op: "open gate", Err: err}
	}
	key, id := l.Tree.key, l.Task.ID
	err = l.s.WriteTx(ctx, func(ctx context.Context, tx *WriteTx) error {
		opened = 0
		if err := tx.CheckLease(ctx, l); err != nil {
			return err
		}
		var number int
		err := tx.QueryRow(ctx, sqlOpenGateOf, key, string(kind)).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			g := &Gate{Kind: kind, Question: raw}
			if err := tx.insertGate(ctx, key, g); err != nil {
				return err
			}
			number, opened = g.Number, g.Number
			err = tx.AppendEvent(key, id, EventGateOpened, map[string]any{"gate": number, "kind": kind, "why": q.Text})
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlAddWaiting, int64(id), key, number, q.Text); err != nil {
			return err
		}
		tx.LogRow(key, RowGateAnswer, int(id))
		return (&suspend{l: l, to: stWaiting, gate: true}).apply(ctx, tx.b)
	})
	return opened, err
}

// resumeTask makes a task that waits at a gate claimable. It does nothing if the task no
// longer waits.
func (b *batch) resumeTask(ctx context.Context, tree int64, task TaskID) error {
	st, err := b.stat(ctx, tree)
	if err != nil {
		return err
	}
	n, err := b.tx.Exec(ctx, sqlResume, int64(task), b.now)
	if n == 1 {
		st.move(stWaiting, stQueued)
		b.event(tree, int64(task), EventTaskReleased, "")
		b.ready[tree] = true
	}
	return err
}

// GateAnswer is the answer for a task that waited at a gate.
type GateAnswer struct {
	// Gate is the number of the gate.
	Gate int
	// Answer is empty for a task that never waited, or still does.
	Answer, By string
	// Text is the result that the user wrote, Why the reason why the task waited.
	Text, Why string
}

// GateAnswer returns the answer for the task when it last waited at a gate.
func (l *Lease) GateAnswer(ctx context.Context) (GateAnswer, error) {
	var a GateAnswer
	err := l.s.db.QueryRow(ctx, sqlGateAnswer, []any{int64(l.Task.ID)}, &a.Gate, &a.Answer, &a.By, &a.Text, &a.Why)
	return a, wrap("read gate", ignoreNoRows(err))
}

// GateTasks lists the tasks that wait at a gate, at most limit.
func (s *Store) GateTasks(ctx context.Context, tree TreeID, gate, limit int) ([]GateTask, error) {
	key, err := treeKey(ctx, s.Reader(), tree)
	if err != nil {
		return nil, err
	}
	return gateTasks(ctx, s.Reader(), key, gate, limit)
}

func gateTasks(ctx context.Context, q Querier, key int64, gate, limit int) ([]GateTask, error) {
	list, err := sqldb.Collect(ctx, q.Query, func(scan sqldb.Scan) (t GateTask, err error) {
		err = scan((*int64)(&t.Task), &t.Why)
		return t, err
	}, sqlGateTasks, key, gate, limit)
	return list, wrap("list gates", err)
}

// Runnable reports whether a task of the tree is running or can be claimed, now or
// later. If none can and the tree has not ended, the whole tree waits for the user.
func (s *Store) Runnable(ctx context.Context, tree TreeID) (bool, error) {
	var runnable bool
	err := s.db.QueryRow(ctx, sqlRunnable, []any{string(tree)}, &runnable)
	return runnable, wrap("read tree", err)
}

// maxGateTasks is larger than the number of tasks of any tree.
const maxGateTasks = 1<<31 - 1

// answerRun records the answer to the gate of a run, for all tasks that wait at it or for
// one of them, after which the gate stays open for the others.
func (g *Gate) answerRun(ctx context.Context, tx *WriteTx, key int64, d *GateDecision) error {
	st, err := tx.b.stat(ctx, key)
	switch {
	case err != nil:
		return err
	case g.AnsweredAt != nil:
		return g.answered()
	case stateOf(st.state).Terminal():
		return conflictf(opAnswerGate, "%s has ended; no task waits at its gate %d", g.Tree, g.Number)
	}
	waiting, err := gateTasks(ctx, tx, key, g.Number, maxGateTasks)
	if err != nil {
		return err
	}
	chosen := waiting
	if d.Task != 0 || d.Answer == AnswerManual {
		if chosen, err = d.chosen(waiting, g); err != nil {
			return err
		}
	}
	for _, t := range chosen {
		if _, err := tx.Exec(ctx, sqlAnswerWaiting, int64(t.Task), d.Answer, d.By, d.Text); err != nil {
			return err
		}
		tx.LogRow(key, RowGateAnswer, int(t.Task))
		if err := tx.b.resumeTask(ctx, key, t.Task); err != nil {
			return err
		}
	}
	if len(chosen) == len(waiting) {
		err = g.close(ctx, tx, key, d, EventGateAnswered)
	} else {
		err = tx.AppendEvent(key, d.Task, EventGateAnswered,
			map[string]any{"gate": g.Number, "answer": d.Answer, "by": d.By, "reason": d.Reason, "task": true})
	}
	if err != nil || d.Answer != AnswerAbandon {
		return err
	}
	var root int64
	if err := tx.QueryRow(ctx, sqlTreeRoot, string(g.Tree)).Scan(&key, &root); err != nil {
		return err
	}
	_, err = tx.b.cancelTask(ctx, root, fmt.Sprintf("abandoned at gate %d", g.Number))
	return err
}

// chosen returns the task that the answer is for.
func (d *GateDecision) chosen(waiting []GateTask, g *Gate) ([]GateTask, error) {
	if d.Task == 0 && len(waiting) == 1 {
		return waiting, nil
	}
	if i := slices.IndexFunc(waiting, func(t GateTask) bool { return t.Task == d.Task }); i >= 0 {
		return waiting[i : i+1], nil
	}
	e := notFoundf(opAnswerGate, "task %q does not wait at gate %d of %s", d.Task, g.Number, g.Tree)
	if d.Task == 0 {
		e = invalidf(opAnswerGate, "%d tasks wait at gate %d of %s; %s is for one task", len(waiting), g.Number, g.Tree,
			d.Answer)
	}
	const shown = 5
	var ids []string
	for _, t := range waiting[:min(len(waiting), shown)] {
		ids = append(ids, t.Task.String())
	}
	e.Hint = "waiting tasks: " + strings.Join(ids, ", ")
	if len(waiting) > shown {
		e.Hint += fmt.Sprintf(" and %d more", len(waiting)-shown)
	}
	return nil, e
}

// ExpireGates resumes the tasks of runs that wait at a gate although the wall time
// of their tree is over: the executor that claims one ends the tree. The gate stays
// unanswered.
func (s *Store) ExpireGates(ctx context.Context) error {
	type overdue struct {
		tree int64
		gate int
	}
	var list []overdue
	err := sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var o overdue
		var created int64
		var raw string
		var limits Limits
		if err := scan(&o.tree, &created, &raw, &o.gate); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(raw), &limits); err != nil {
			return err
		}
		if limits.WallTime > 0 && time.Since(micros(created)) >= limits.WallTime {
			list = append(list, o)
		}
		return nil
	}, sqlWaitingTrees, maxGates)
	if err != nil {
		return wrap("expire gates", err)
	}
	for _, o := range list {
		if err := s.expireGate(ctx, o.tree, o.gate); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) expireGate(ctx context.Context, tree int64, gate int) error {
	if list, err := gateTasks(ctx, s.Reader(), tree, gate, 1); err != nil || len(list) == 0 {
		return err // resumed already
	}
	return s.WriteTx(ctx, func(ctx context.Context, tx *WriteTx) error {
		list, err := gateTasks(ctx, tx, tree, gate, maxGateTasks)
		if err != nil {
			return err
		}
		for _, t := range list {
			if err := tx.b.resumeTask(ctx, tree, t.Task); err != nil {
				return err
			}
		}
		return nil
	})
}
