package perdure

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// GateKind is the reason for a gate.
type GateKind string

// The kinds of gates.
const (
	GateRecovery      GateKind = "recovery"
	GateDestructive   GateKind = "destructive_action"
	GateStuck         GateKind = "stuck_loop"
	GateFalseAlarm    GateKind = "false_positive"
	GateBudget        GateKind = "budget"
	GateRateLimit     GateKind = "rate_limit"
	GateReassignment  GateKind = "reassignment"
	GateHonestExit    GateKind = "honest_exit"
	GateClarification GateKind = "clarification"
	GateHeldOut       GateKind = "held_out"
)

// The answers to the gate of a run. The executor of loops defines those to its gates.
const (
	// AnswerRetry executes the waiting tasks again.
	AnswerRetry = "retry"
	// AnswerManual gives one task the result that the user wrote.
	AnswerManual = "manual"
	// AnswerSkip makes the waiting tasks fail.
	AnswerSkip = "skip"
	// AnswerAbandon cancels the tree.
	AnswerAbandon = "abandon"
)

// Limits of gates, in bytes.
const (
	MaxGateQuestionBytes = 256 << 10
	MaxGateReasonBytes   = 4 << 10
	// MaxGateTextBytes bounds a result that the user writes for a task.
	MaxGateTextBytes = 1 << 20
)

// GateOption is a possible answer to a gate, and its effect.
type GateOption struct {
	Answer string `json:"answer"`
	Effect string `json:"effect"`
}

// GateQuestion is the question of a gate.
type GateQuestion struct {
	// Title is one line, Text the details that the decision needs; Diff is the change
	// in question, shortened.
	Title   string       `json:"title"`
	Text    string       `json:"text,omitempty"`
	Diff    string       `json:"diff,omitempty"`
	Options []GateOption `json:"options"`
}

// Gate is a question to the user. The loop that opened it, or tasks of the run, wait
// for the answer.
type Gate struct {
	Tree TreeID `json:"tree_id"`
	// Number counts the gates of the tree from 1.
	Number    int      `json:"gate"`
	Iteration int      `json:"iteration"`
	Kind      GateKind `json:"kind"`
	// Question is a [GateQuestion] as JSON.
	Question json.RawMessage `json:"question"`
	OpenedAt time.Time       `json:"opened_at"`
	// ExpiresAt is when the loop stops waiting, which approves nothing.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Approver is what an answer needs, empty for the gate of a run. TokenHash is the hash
	// of its token, see [Gate.HasToken]; empty without one.
	Approver  Approver `json:"approver,omitempty"`
	TokenHash string   `json:"-"`
	// Run is set for the gate of a run. Waiting is then the number of tasks that
	// wait at it, and Tasks are some of them if they were requested.
	Run     bool       `json:"run,omitempty"`
	Waiting int        `json:"waiting,omitempty"`
	Tasks   []GateTask `json:"tasks,omitempty"`
	// Answer is one of the options, empty while the gate is open.
	Answer     string     `json:"answer,omitempty"`
	AnsweredBy string     `json:"answered_by,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	AnsweredAt *time.Time `json:"answered_at,omitempty"`
}

// ParseQuestion returns the question.
func (g *Gate) ParseQuestion() (GateQuestion, error) {
	var q GateQuestion
	err := json.Unmarshal(g.Question, &q)
	return q, err
}

// GateTask is a task that waits at a gate.
type GateTask struct {
	Task TaskID `json:"task_id"`
	// Why is the reason why it waits.
	Why string `json:"why"`
}

// GateDecision is the user's answer to a gate.
type GateDecision struct {
	Answer string `json:"answer"`
	// By is the name of the user. By and Reason may be empty.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Task, when set, limits the answer to one of the tasks that wait at the gate of
	// a run. Text is its result if Answer is AnswerManual.
	Task TaskID `json:"task_id,omitzero"`
	Text string `json:"text,omitempty"`
	// Token is the token of the gate; it can be empty. The server of the API compares it,
	// and it is not stored.
	Token string `json:"token,omitempty"`
}

const (
	sqlGateNumber = `SELECT COALESCE(MAX(number), 0) + 1 FROM gate WHERE tree = $1`
	sqlOpenGate   = `INSERT INTO gate (tree, number, iteration, kind, question, opened_at, expires_at, answer, answered_by,
		reason, approver, token) VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', '', $8, $9)`
	sqlAnswerGate = `UPDATE gate SET answer = $3, answered_by = $4, reason = $5, answered_at = $6
		WHERE tree = $1 AND number = $2 AND answered_at IS NULL`
	gateColumns = `t.name, t.kind, (SELECT COUNT(*) FROM gate_task w JOIN task_hot h ON h.id = w.task
			WHERE w.tree = g.tree AND w.gate = g.number AND w.answer = '' AND h.state = ` + dbWaiting + `),
		g.number, g.iteration, g.kind, g.question, g.opened_at, g.expires_at, g.answer, g.answered_by, g.reason, g.answered_at,
		g.approver, g.token`
	sqlGates = `SELECT ` + gateColumns +
		` FROM tree t JOIN gate g ON g.tree = t.id WHERE t.name = $1 ORDER BY g.number LIMIT $2 + 0`
	sqlGateNumbered = `SELECT ` + gateColumns + ` FROM tree t JOIN gate g ON g.tree = t.id
		WHERE t.name = $1 AND g.number = $2`
	sqlOpenGates = `SELECT ` + gateColumns + ` FROM gate g JOIN tree t ON t.id = g.tree JOIN tree_stat s ON s.tree = g.tree
		WHERE g.answered_at IS NULL AND s.state IN ` + dbOpenTree + ` ORDER BY g.tree LIMIT $1 + 0`
	sqlLastAnswered = `SELECT answered_at FROM gate WHERE tree = $1 ORDER BY number DESC LIMIT 1`
)

// maxGates bounds a list of gates.
const maxGates = 1000

// Gates lists the gates of a tree in their order, at most 1,000.
func (s *Store) Gates(ctx context.Context, tree TreeID) ([]Gate, error) {
	return listGates(ctx, s.Reader(), sqlGates, string(tree), maxGates)
}

// Gate returns a gate of a tree. It fails with CodeNotFound if the tree has no such gate.
func (s *Store) Gate(ctx context.Context, tree TreeID, number int) (Gate, error) {
	const op = "read gate"
	list, err := listGates(ctx, s.Reader(), sqlGateNumbered, string(tree), number)
	switch {
	case err != nil:
		return Gate{}, err
	case len(list) == 0:
		return Gate{}, notFoundf(op, "%s has no gate %d", tree, number)
	}
	return list[0], nil
}

// OpenGates lists the open gates of all trees that have not ended, at most 1,000.
func (s *Store) OpenGates(ctx context.Context) ([]Gate, error) {
	return listGates(ctx, s.Reader(), sqlOpenGates, maxGates)
}

// Gates lists the gates of a tree, see [Store.Gates].
func (tx *WriteTx) Gates(ctx context.Context, tree TreeID) ([]Gate, error) {
	return listGates(ctx, tx, sqlGates, string(tree), maxGates)
}

func listGates(ctx context.Context, q Querier, query string, args ...any) ([]Gate, error) {
	list := []Gate{}
	err := sqldb.Each(ctx, q.Query, func(scan sqldb.Scan) error {
		var g Gate
		var kind, question string
		var opened int64
		var expires, answered *int64
		err := scan((*string)(&g.Tree), &kind, &g.Waiting, &g.Number, &g.Iteration, (*string)(&g.Kind), &question,
			&opened, &expires, &g.Answer, &g.AnsweredBy, &g.Reason, &answered, (*string)(&g.Approver), &g.TokenHash)
		g.Run, g.Question, g.OpenedAt = kind != KindLoop, json.RawMessage(question), micros(opened)
		g.ExpiresAt, g.AnsweredAt = timePtr(expires), timePtr(answered)
		list = append(list, g)
		return err
	}, query, args...)
	return list, wrap("list gates", err)
}

// OpenGate opens the gate of a loop: it sets the number and the time of g, and
// appends an event. The loop has to wait with [WriteTx.Park].
func (tx *WriteTx) OpenGate(ctx context.Context, tree int64, g *Gate) error {
	if err := tx.insertGate(ctx, tree, g); err != nil {
		return err
	}
	return tx.AppendEvent(tree, 0, EventLoopGateOpened,
		map[string]any{"gate": g.Number, "kind": g.Kind, "iteration": g.Iteration, "approver": g.Approver})
}

func (tx *WriteTx) insertGate(ctx context.Context, tree int64, g *Gate) error {
	if err := validateObject("open gate", "question", g.Question, MaxGateQuestionBytes); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, sqlGateNumber, tree).Scan(&g.Number); err != nil {
		return err
	}
	g.OpenedAt = tx.Now()
	_, err := tx.Exec(ctx, sqlOpenGate, tree, g.Number, g.Iteration, string(g.Kind), string(g.Question), tx.b.now,
		microsPtr(g.ExpiresAt), string(g.Approver), g.TokenHash)
	tx.LogRow(tree, RowGate, g.Number)
	return err
}

// LastGateAnswered reports whether the tree has a gate and the last one is answered.
func (tx *WriteTx) LastGateAnswered(ctx context.Context, tree int64) (bool, error) {
	var at *int64
	err := tx.QueryRow(ctx, sqlLastAnswered, tree).Scan(&at)
	return at != nil, ignoreNoRows(err)
}

// AnswerGate answers an open gate; the loop or the tasks that wait at it become
// claimable. After an answer for one task the gate of a run stays open while other tasks
// wait. AnswerAbandon also cancels the tree.
//
// AnswerGate fails with CodeConflict if the gate was answered before or the tree
// of a run has ended, and with CodeInvalid if the answer is not one of the options.
func (s *Store) AnswerGate(ctx context.Context, tree TreeID, number int, d GateDecision) (Gate, error) {
	g, err := s.Gate(ctx, tree, number)
	if err != nil {
		return Gate{}, err
	}
	if err := g.validate(&d); err != nil {
		return g, err
	}
	err = s.WriteTx(ctx, func(ctx context.Context, tx *WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		if g.Run {
			return g.answerRun(ctx, tx, key, &d)
		}
		return g.close(ctx, tx, key, &d, EventLoopGateAnswered)
	})
	return g, err
}

const opAnswerGate = "answer gate"

// close records the answer to a gate.
func (g *Gate) close(ctx context.Context, tx *WriteTx, key int64, d *GateDecision, kind EventKind) error {
	n, err := tx.Exec(ctx, sqlAnswerGate, key, g.Number, d.Answer, d.By, d.Reason, tx.b.now)
	if err != nil {
		return err
	}
	if n == 0 {
		return g.answered()
	}
	tx.LogRow(key, RowGate, g.Number)
	now := tx.Now()
	g.Answer, g.AnsweredBy, g.Reason, g.AnsweredAt = d.Answer, d.By, d.Reason, &now
	data := map[string]any{"gate": g.Number, "answer": d.Answer, "by": d.By, "reason": d.Reason}
	if err := tx.AppendEvent(key, d.Task, kind, data); err != nil {
		return err
	}
	return tx.WakeParked(ctx, key)
}

func (g *Gate) answered() *Error {
	return conflictf(opAnswerGate, "gate %d of %s is already answered", g.Number, g.Tree)
}

// validate refuses an answer that the gate does not take.
func (g *Gate) validate(d *GateDecision) error {
	if len(d.Reason) > MaxGateReasonBytes {
		return invalidf(opAnswerGate, "the reason has %d bytes, the limit is %d", len(d.Reason), MaxGateReasonBytes)
	}
	q, err := g.ParseQuestion()
	if err != nil {
		return wrap("read gate", err)
	}
	var options []string
	for _, o := range q.Options {
		options = append(options, o.Answer)
	}
	if !slices.Contains(options, d.Answer) {
		return &Error{Code: CodeInvalid, Op: opAnswerGate,
			Msg:  fmt.Sprintf("%q is not an answer to gate %d", d.Answer, g.Number),
			Hint: "possible answers: " + strings.Join(options, ", ")}
	}
	return d.validateText(g.Run)
}

// validateText refuses a text that the answer does not take, and a missing one that it
// needs.
func (d *GateDecision) validateText(run bool) error {
	bad := func(msg, hint string) error { return &Error{Code: CodeInvalid, Op: opAnswerGate, Msg: msg, Hint: hint} }
	manual := run && d.Answer == AnswerManual
	switch {
	case !run && (d.Text != "" || d.Task != 0):
		return bad("the gate of a loop takes no text and no task", "use a reason instead")
	case manual && strings.TrimSpace(d.Text) == "":
		return bad("the text is empty", "the text becomes the result of the task")
	case !manual && d.Text != "":
		return bad(fmt.Sprintf("the answer %q takes no text", d.Answer), "only the answer "+AnswerManual+" takes a text")
	case len(d.Text) > MaxGateTextBytes:
		return bad(fmt.Sprintf("the text has %d bytes, the limit is %d", len(d.Text), MaxGateTextBytes), "")
	}
	return nil
}
