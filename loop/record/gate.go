package record

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// GateKind is why a person is asked.
type GateKind string

// The kinds of gates.
const (
	GateRecovery     GateKind = "recovery"
	GateDestructive  GateKind = "destructive_action"
	GateStuck        GateKind = "stuck_loop"
	GateFalseAlarm   GateKind = "false_positive"
	GateBudget       GateKind = "budget"
	GateReassignment GateKind = "reassignment"
	GateHonestExit   GateKind = "honest_exit"
	GateQuestion     GateKind = "clarification"
)

// Option is one of the answers that a gate takes, and what it does.
type Option struct {
	Answer string `json:"answer"`
	Effect string `json:"effect"`
}

// Question is what a gate shows.
type Question struct {
	// Title is one line, Text what has to be known to decide; Diff is the change
	// in question, shortened.
	Title   string   `json:"title"`
	Text    string   `json:"text,omitempty"`
	Diff    string   `json:"diff,omitempty"`
	Options []Option `json:"options"`
}

// Gate is a question to a person, which its loop, or tasks of its run, wait for.
type Gate struct {
	Tree      perdure.TreeID `json:"tree_id"`
	Number    int            `json:"gate"`
	Iteration int            `json:"iteration"`
	Kind      GateKind       `json:"kind"`
	// Question is a [Question], as JSON.
	Question json.RawMessage `json:"question"`
	OpenedAt time.Time       `json:"opened_at"`
	// ExpiresAt is when the loop stops waiting; that never approves anything.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Answer is one of the options, empty while the gate is open.
	//
	// Run is set for a gate of a run; Waiting is then how many tasks wait at it, and
	// Tasks are some of them, where that was asked for.
	Run        bool       `json:"run,omitempty"`
	Waiting    int        `json:"waiting,omitempty"`
	Tasks      []Waiter   `json:"tasks,omitempty"`
	Answer     string     `json:"answer,omitempty"`
	AnsweredBy string     `json:"answered_by,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	AnsweredAt *time.Time `json:"answered_at,omitempty"`
}

// Asked returns the question.
func (g *Gate) Asked() (Question, error) {
	var q Question
	err := json.Unmarshal(g.Question, &q)
	return q, err
}

// The kinds of events of this package.
const (
	EventGateOpened   perdure.EventKind = "loop.gate_opened"
	EventGateAnswered perdure.EventKind = "loop.gate_answered"
	EventWish         perdure.EventKind = "loop.asked"
)

const (
	sqlGateNumber = `SELECT COALESCE(MAX(number), 0) + 1 FROM gate WHERE tree = $1`
	sqlOpenGate   = `INSERT INTO gate (tree, number, iteration, kind, question, opened_at, expires_at, answer, answered_by, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', '')`
	sqlAnswerGate = `UPDATE gate SET answer = $3, answered_by = $4, reason = $5, answered_at = $6
		WHERE tree = $1 AND number = $2 AND answered_at IS NULL`
	gateColumns = `t.name, t.kind, (SELECT COUNT(*) FROM gate_task w JOIN task_hot h ON h.id = w.task
		WHERE w.tree = g.tree AND w.gate = g.number AND w.answer = '' AND h.state = 3), g.number, g.iteration, g.kind, g.question, g.opened_at, g.expires_at, g.answer, g.answered_by, g.reason, g.answered_at`
	sqlGates    = `SELECT ` + gateColumns + ` FROM tree t JOIN gate g ON g.tree = t.id WHERE t.name = $1 ORDER BY g.number LIMIT $2 + 0`
	sqlOpenOnes = `SELECT ` + gateColumns + ` FROM gate g JOIN tree t ON t.id = g.tree JOIN tree_stat s ON s.tree = g.tree
		WHERE g.answered_at IS NULL AND s.state IN (1, 2) ORDER BY g.tree LIMIT $1 + 0`
	sqlAskLoop = `UPDATE loop SET wish = $2, updated_at = $3 WHERE tree = $1 AND status IN ('running', 'paused', 'completing')`
)

func openGate(ctx context.Context, tx *perdure.WriteTx, key int64, g *Gate) error {
	if g == nil {
		return nil
	}
	if err := addGate(ctx, tx, key, g); err != nil {
		return err
	}
	return tx.AppendEvent(key, 0, EventGateOpened, map[string]any{"gate": g.Number, "kind": g.Kind, "iteration": g.Iteration})
}

func addGate(ctx context.Context, tx *perdure.WriteTx, key int64, g *Gate) error {
	if err := tx.QueryRow(ctx, sqlGateNumber, key).Scan(&g.Number); err != nil {
		return err
	}
	g.OpenedAt = tx.Now()
	_, err := tx.Exec(ctx, sqlOpenGate, key, g.Number, g.Iteration, string(g.Kind), string(g.Question), g.OpenedAt.UnixMicro(), column(g.ExpiresAt))
	return err
}

// Decision is what somebody answers to a gate.
type Decision struct {
	Answer string `json:"answer"`
	// By is who, Reason why; both may be empty.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Task is the one task of a run that is answered, of several that wait; Text is
	// its result when Answer is AnswerManual.
	Task perdure.TaskID `json:"task_id,omitzero"`
	Text string         `json:"text,omitempty"`
}

// Answer answers an open gate and lets its loop or run go on. A gate that was
// answered before, or whose tree has ended, is CodeConflict, an answer that is none
// of its options CodeInvalid. The gate of a run stays open while tasks wait that
// the answer is not for.
func (r *Records) Answer(ctx context.Context, tree perdure.TreeID, number int, d Decision) (Gate, error) {
	const op = "answer gate"
	if len(d.Reason) > MaxReasonBytes {
		return Gate{}, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("the reason has %d bytes, the limit is %d", len(d.Reason), MaxReasonBytes)}
	}
	all, err := r.Gates(ctx, tree)
	if err != nil {
		return Gate{}, err
	}
	at := slices.IndexFunc(all, func(g Gate) bool { return g.Number == number })
	if at < 0 {
		return Gate{}, &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: fmt.Sprintf("%s has no gate %d", tree, number)}
	}
	g := all[at]
	if err := g.takes(d.Answer); err != nil {
		return g, err
	}
	if err := d.checkText(g.Run); err != nil {
		return g, err
	}
	err = r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		if !g.Run {
			return g.close(ctx, tx, key, &d, EventGateAnswered)
		}
		return g.closeRun(ctx, tx, key, &d)
	})
	return g, err
}

// close writes down the answer to a gate.
func (g *Gate) close(ctx context.Context, tx *perdure.WriteTx, key int64, d *Decision, kind perdure.EventKind) error {
	n, err := tx.Exec(ctx, sqlAnswerGate, key, g.Number, d.Answer, d.By, d.Reason, tx.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "answer gate", Msg: fmt.Sprintf("gate %d of %s is answered already", g.Number, g.Tree)}
	}
	now := tx.Now()
	g.Answer, g.AnsweredBy, g.Reason, g.AnsweredAt = d.Answer, d.By, d.Reason, &now
	if err := tx.AppendEvent(key, d.Task, kind, map[string]any{"gate": g.Number, "answer": d.Answer, "by": d.By, "reason": d.Reason}); err != nil {
		return err
	}
	return tx.WakeParked(ctx, key)
}

// closeRun writes down the answer to the gate of a run, or to a part of it.
func (g *Gate) closeRun(ctx context.Context, tx *perdure.WriteTx, key int64, d *Decision) error {
	if err := g.stands(ctx, tx, key); err != nil {
		return err
	}
	whole, err := answerRun(ctx, tx, key, g, d)
	switch {
	case err != nil:
		return err
	case whole:
		return g.close(ctx, tx, key, d, EventRunGateAnswered)
	}
	return tx.AppendEvent(key, d.Task, EventRunGateAnswered, map[string]any{"gate": g.Number, "answer": d.Answer, "by": d.By, "reason": d.Reason, "task": true})
}

func (g *Gate) takes(answer string) error {
	q, err := g.Asked()
	if err != nil {
		return wrap("read gate", err)
	}
	var options []string
	for _, o := range q.Options {
		if o.Answer == answer {
			return nil
		}
		options = append(options, o.Answer)
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "answer gate", Msg: fmt.Sprintf("%q is no answer to gate %d", answer, g.Number),
		Hint: "it takes: " + strings.Join(options, ", ")}
}

// Ask tells whoever runs a loop, now or later, what is wanted of it. A loop that
// has ended is CodeConflict, a wish that is none CodeInvalid.
func (r *Records) Ask(ctx context.Context, tree perdure.TreeID, wish Wish) error {
	const op = "ask loop"
	switch wish {
	case Pause, PauseNow, Resume, Abort, Revert:
	default:
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%q is nothing to ask of a loop", wish),
			Hint: "ask for pause, pause_now, resume, abort or revert"}
	}
	if _, err := r.Loop(ctx, tree); err != nil {
		return err
	}
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		return ask(ctx, tx, key, tree, wish)
	})
}

func ask(ctx context.Context, tx *perdure.WriteTx, key int64, tree perdure.TreeID, wish Wish) error {
	n, err := tx.Exec(ctx, sqlAskLoop, key, string(wish), tx.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "ask loop", Msg: fmt.Sprintf("the loop of %s has ended", tree)}
	}
	if err := tx.AppendEvent(key, 0, EventWish, map[string]any{"wish": wish}); err != nil {
		return err
	}
	return tx.WakeParked(ctx, key)
}

// sqlCalled tells what is wanted of a loop, and when its last gate was answered.
const sqlCalled = `SELECT l.wish, l.status, (SELECT g.answered_at FROM gate g WHERE g.tree = l.tree ORDER BY g.number DESC LIMIT 1)
	FROM loop l WHERE l.tree = $1`

// Park gives the task of a loop back until a time, or until somebody wants
// something of the loop or answers its gate: also when that happened since the
// caller looked, which then has nobody to wake. atGate tells that the loop waits
// for its last gate. A paused loop only hears that it is to go on or to end.
func (r *Records) Park(ctx context.Context, l *perdure.Lease, until time.Time, atGate bool) error {
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, l.Tree.ID)
		if err != nil {
			return err
		}
		var wish Wish
		var status Status
		var answered micros
		if err := tx.QueryRow(ctx, sqlCalled, key).Scan((*string)(&wish), (*string)(&status), &answered); err != nil {
			return err
		}
		called := wish != NoWish || atGate && maybe(answered) != nil
		if status == Paused { // an answer waits until somebody resumes the loop
			called = wish == Resume || wish == Abort || wish == Revert
		}
		if called {
			until = time.Time{}
		}
		return tx.Park(ctx, l, until)
	})
}

// maxGates bounds how many gates are read at once.
const maxGates = 1000

// Gates lists the gates of a loop in their order; of more than 1,000 the first.
func (r *Records) Gates(ctx context.Context, tree perdure.TreeID) ([]Gate, error) {
	return gates(ctx, r.store.Reader(), sqlGates, string(tree), maxGates)
}

// OpenGates lists the gates of all loops that nobody answered; at most 1,000.
func (r *Records) OpenGates(ctx context.Context) ([]Gate, error) {
	return gates(ctx, r.store.Reader(), sqlOpenOnes, maxGates)
}

func gates(ctx context.Context, q perdure.Querier, query string, args ...any) ([]Gate, error) {
	list := []Gate{}
	err := each(ctx, q, func(scan scanFunc) error {
		var g Gate
		var kind string
		var expires, answered micros
		err := scan((*string)(&g.Tree), &kind, &g.Waiting, &g.Number, &g.Iteration, (*string)(&g.Kind), (*text)(&g.Question), (*micros)(&g.OpenedAt), &expires,
			&g.Answer, &g.AnsweredBy, &g.Reason, &answered)
		g.Run = kind != KindLoop
		g.ExpiresAt, g.AnsweredAt = maybe(expires), maybe(answered)
		list = append(list, g)
		return err
	}, query, args...)
	return list, wrap("list gates", err)
}
