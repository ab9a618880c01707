package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// The answers that the gate of a run takes.
const (
	AnswerRetry   = "retry"
	AnswerManual  = "manual"
	AnswerSkip    = "skip"
	AnswerAbandon = "abandon"
)

// The kinds of events about gates of runs.
const (
	EventRunGateOpened   perdure.EventKind = "gate.opened"
	EventRunGateAnswered perdure.EventKind = "gate.answered"
)

// MaxTextBytes bounds a result that a person writes for a task.
const MaxTextBytes = 1 << 20

// Waiter is a task that waits at a gate.
type Waiter struct {
	Task perdure.TaskID `json:"task_id"`
	// Why is what keeps it from going on.
	Why string `json:"why"`
}

// runQuestion is what the gate of a run asks.
func runQuestion(why string) Question {
	return Question{Title: "no model of the chain answers", Text: why, Options: []Option{
		{AnswerRetry, "the models are asked again for all tasks that wait"},
		{AnswerManual, "a task gets the answer that you write (--text or --file)"},
		{AnswerSkip, "the tasks that wait count as failed, and the rest is merged as the run's policy says"},
		{AnswerAbandon, "the tree ends as it is"},
	}}
}

const (
	sqlOpenGateOf = `SELECT number FROM gate WHERE tree = $1 AND kind = $2 AND answered_at IS NULL ORDER BY number LIMIT 1`
	sqlAddWaiter  = `INSERT INTO gate_task (task, tree, gate, why, answer, answered_by, text) VALUES ($1, $2, $3, $4, '', '', '')
		ON CONFLICT (task) DO UPDATE SET gate = excluded.gate, why = excluded.why, answer = '', answered_by = '', text = ''`
	sqlDecided = `SELECT answer, answered_by, CASE WHEN text = '' THEN why ELSE text END FROM gate_task WHERE task = $1`
	sqlWaiters = `SELECT g.task, g.why FROM gate_task g JOIN task_hot h ON h.id = g.task
		WHERE g.tree = $1 AND g.gate = $2 AND g.answer = '' AND h.state = 3 ORDER BY g.task LIMIT $3 + 0`
	sqlAnswerWaiter = `UPDATE gate_task SET answer = $2, answered_by = $3, text = $4 WHERE task = $1 AND answer = ''`
	sqlOpenTree     = `SELECT s.state IN (1, 2) FROM tree_stat s WHERE s.tree = $1`
	sqlKeyOfTree    = `SELECT id FROM tree WHERE name = $1`
	sqlAtWork       = `SELECT EXISTS (SELECT 1 FROM tree t JOIN tree_stat s ON s.tree = t.id
		WHERE t.name = $1 AND (s.running > 0 OR EXISTS (SELECT 1 FROM task_hot h WHERE h.tree = t.id AND h.ready_at IS NOT NULL)))`
)

// Wait lets the task of a run wait at the gate of its tree, which is opened when
// there is none: nobody runs it until somebody answers. why is what keeps it from
// going on.
func (r *Records) Wait(ctx context.Context, l *perdure.Lease, why string) error {
	_, err := r.WaitAt(ctx, l, why)
	return err
}

// WaitAt is Wait; opened is the number of the gate when the task is the first to
// wait at it, else 0.
func (r *Records) WaitAt(ctx context.Context, l *perdure.Lease, why string) (opened int, err error) {
	why = strings.ToValidUTF8(why[:min(len(why), MaxReasonBytes)], "")
	err = r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		opened = 0
		if err := tx.CheckLease(ctx, l); err != nil {
			return err
		}
		key, err := tx.TreeKey(ctx, l.Tree.ID)
		if err != nil {
			return err
		}
		var number int
		err = tx.QueryRow(ctx, sqlOpenGateOf, key, string(GateReassignment)).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			number, err = openRunGate(ctx, tx, key, l.Task.ID, why)
			opened = number
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlAddWaiter, int64(l.Task.ID), key, number, why); err != nil {
			return err
		}
		return tx.Suspend(ctx, l)
	})
	return opened, err
}

func openRunGate(ctx context.Context, tx *perdure.WriteTx, key int64, task perdure.TaskID, why string) (number int, err error) {
	raw, err := json.Marshal(runQuestion(why))
	if err != nil {
		return 0, err
	}
	g := &Gate{Kind: GateReassignment, Question: raw}
	if err := addGate(ctx, tx, key, g); err != nil {
		return 0, err
	}
	return g.Number, tx.AppendEvent(key, task, EventRunGateOpened, map[string]any{"gate": g.Number, "kind": g.Kind, "why": why})
}

// Decided returns what was decided of a task that waited at a gate, and by whom;
// text is the result that a person wrote for it, else what kept it from going on. It
// is empty for a task that never waited, or still does.
func (r *Records) Decided(ctx context.Context, task perdure.TaskID) (answer, by, text string, err error) {
	err = r.store.Reader().QueryRow(ctx, sqlDecided, int64(task)).Scan(&answer, &by, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", "", nil
	}
	return answer, by, text, wrap("read gate", err)
}

// Waiters lists the tasks that wait at a gate, at most limit.
func (r *Records) Waiters(ctx context.Context, tree perdure.TreeID, gate, limit int) ([]Waiter, error) {
	var key int64
	err := r.store.Reader().QueryRow(ctx, sqlKeyOfTree, string(tree)).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("list gates", err)
	}
	list, err := waiters(ctx, r.store.Reader(), key, gate, limit)
	return list, wrap("list gates", err)
}

func waiters(ctx context.Context, q perdure.Querier, key int64, gate, limit int) (list []Waiter, err error) {
	err = each(ctx, q, func(scan scanFunc) error {
		var one Waiter
		err := scan((*int64)(&one.Task), &one.Why)
		list = append(list, one)
		return err
	}, sqlWaiters, key, gate, limit)
	return list, err
}

// AtWork tells whether a task of a tree runs or may be claimed, now or later. When
// not, and the tree has not ended, all of it waits for a person.
func (r *Records) AtWork(ctx context.Context, tree perdure.TreeID) (bool, error) {
	var busy bool
	err := r.store.Reader().QueryRow(ctx, sqlAtWork, string(tree)).Scan(&busy)
	return busy, wrap("read tree", err)
}

// stands refuses what would answer a gate again, or that of a tree that has ended.
func (g *Gate) stands(ctx context.Context, tx *perdure.WriteTx, key int64) error {
	var open bool
	if err := tx.QueryRow(ctx, sqlOpenTree, key).Scan(&open); err != nil {
		return err
	}
	e := &perdure.Error{Code: perdure.CodeConflict, Op: "answer gate"}
	switch {
	case g.AnsweredAt != nil:
		e.Msg = fmt.Sprintf("gate %d of %s is answered already", g.Number, g.Tree)
	case !open:
		e.Msg = fmt.Sprintf("%s has ended, and nothing waits at its gate %d any more", g.Tree, g.Number)
	default:
		return nil
	}
	return e
}

// answerRun answers the gate of a run: for all tasks that wait, or for one of
// them, and then the gate stays open for the others.
func answerRun(ctx context.Context, tx *perdure.WriteTx, key int64, g *Gate, d *Decision) (whole bool, err error) {
	list, err := waiters(ctx, tx, key, g.Number, maxWaiters)
	if err != nil {
		return false, err
	}
	chosen := list
	if d.Task != 0 || d.Answer == AnswerManual {
		if chosen, err = d.chosen(list, g); err != nil {
			return false, err
		}
	}
	for _, one := range chosen {
		if _, err := tx.Exec(ctx, sqlAnswerWaiter, int64(one.Task), d.Answer, d.By, d.Text); err != nil {
			return false, err
		}
		if err := tx.Resume(ctx, key, one.Task); err != nil {
			return false, err
		}
	}
	return len(chosen) == len(list), nil
}

// maxWaiters is above what a tree has of tasks.
const maxWaiters = 1<<31 - 1

// chosen is the one task that an answer is for.
func (d *Decision) chosen(list []Waiter, g *Gate) ([]Waiter, error) {
	if d.Task == 0 && len(list) == 1 {
		return list, nil
	}
	for i := range list {
		if list[i].Task == d.Task {
			return list[i : i+1], nil
		}
	}
	e := &perdure.Error{Code: perdure.CodeNotFound, Op: "answer gate", Msg: fmt.Sprintf("task %q does not wait at gate %d of %s", d.Task, g.Number, g.Tree)}
	if d.Task == 0 {
		e.Code, e.Msg = perdure.CodeInvalid, fmt.Sprintf("%d tasks wait at gate %d of %s, and an answer by hand is for one", len(list), g.Number, g.Tree)
	}
	const shown = 5
	var ids []string
	for _, one := range list[:min(len(list), shown)] {
		ids = append(ids, one.Task.String())
	}
	e.Hint = "say which task is meant; there wait " + strings.Join(ids, ", ")
	if len(list) > shown {
		e.Hint += fmt.Sprintf(" and %d more", len(list)-shown)
	}
	return nil, e
}

// checkText refuses a text where none is wanted, or none where one is.
func (d *Decision) checkText(run bool) error {
	bad := func(msg, hint string) error {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "answer gate", Msg: msg, Hint: hint}
	}
	manual := run && d.Answer == AnswerManual
	switch {
	case !run && (d.Text != "" || d.Task != 0):
		return bad("a text and a task are for the gates of runs", "say why with a reason")
	case manual && strings.TrimSpace(d.Text) == "":
		return bad("the answer by hand is empty", "give the text of the task's result")
	case !manual && d.Text != "":
		return bad(fmt.Sprintf("%q takes no text", d.Answer), "a text is for "+AnswerManual)
	case len(d.Text) > MaxTextBytes:
		return bad(fmt.Sprintf("the text has %d bytes, the limit is %d", len(d.Text), MaxTextBytes), "")
	}
	return nil
}
