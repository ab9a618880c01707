package chain

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Row names a row whose digest the log has.
type Row struct {
	Tree   int64 // 0 for rows of no tree
	Kind   string
	Number int
	Part   string // the number or the name of a part, "" for a row that is not a part
}

// The kinds of rows: the state and configuration of a loop, its control request, an iteration
// with its brief (0 is the baseline), a gate, all findings that are marked as false alarms, the answer for
// a task that waits at a gate, a handoff ledger, one of its entries, a state, and a block of
// code, which is a part of the REPL of a task.
const (
	KindLoop         = "loop"
	KindControl      = "control_request"
	KindIteration    = "iteration"
	KindGate         = "gate"
	KindFalseAlarms  = "false_alarms"
	KindGateAnswer   = "gate_answer"
	KindHandoff      = "handoff"
	KindHandoffEntry = "handoff_entry"
	KindState        = "state"
	KindReplBlock    = "repl_block"
)

// The kinds of rows whose digests are in the event about the row: the prompt of a task, its
// result, a settled call, and a variable, which is a part of its state.
const (
	KindPrompt   = "prompt"
	KindResult   = "result"
	KindCall     = "call"
	KindVariable = "variable"
)

// Name returns the name of a row in an event.
func (r Row) Name() string {
	switch {
	case r.Kind == KindLoop || r.Kind == KindControl || r.Kind == KindFalseAlarms:
		return r.Kind
	case r.Part != "":
		return r.Kind + " " + strconv.Itoa(r.Number) + " " + r.Part
	}
	return r.Kind + " " + strconv.Itoa(r.Number)
}

// parseRow is the reverse of Name.
func parseRow(tree int64, name string) Row {
	r := Row{Tree: tree}
	var number string
	r.Kind, number, _ = strings.Cut(name, " ")
	number, r.Part, _ = strings.Cut(number, " ")
	r.Number, _ = strconv.Atoi(number) // 0 without a number
	return r
}

// text returns the name for people.
func (r Row) text() string {
	switch r.Kind {
	case KindPrompt, KindResult, KindGateAnswer:
		return fmt.Sprintf("%s of task-%04d", strings.ReplaceAll(r.Kind, "_", " "), r.Number)
	case KindCall:
		return fmt.Sprintf("call-%04d", r.Number)
	case KindVariable:
		return fmt.Sprintf("variable %q of state-%08x", r.Part, r.Number)
	case KindHandoffEntry:
		return fmt.Sprintf("entry %s of handoff ledger %d", r.Part, r.Number)
	case KindHandoff:
		return fmt.Sprintf("handoff ledger %d", r.Number)
	case KindReplBlock:
		return fmt.Sprintf("block %s of the REPL of task-%04d", r.Part, r.Number)
	}
	return strings.ReplaceAll(r.Name(), "_", " ")
}

// The columns after the first three, tree, number and part, are in the digest. Those that
// change without an event are left out.
const (
	sqlLoopRows      = `SELECT tree, 0, '', place, status, step, iteration, state, version, config FROM loop`
	sqlLoopRow       = sqlLoopRows + ` WHERE tree = $1`
	sqlControlRows   = `SELECT tree, 0, '', wish FROM loop WHERE wish <> ''`
	sqlControlRow    = sqlControlRows + ` AND tree = $1`
	sqlIterationRows = `SELECT i.tree, i.number, '', i.task, i.status, i.quality, i.data, i.started_at, i.ended_at,
			b.task, b.status, b.quality, b.started_at, b.ended_at, b.eligible, b.passed, b.regressions, b.recoveries,
			b.agent_errors, b.warnings, b.sealed, b.work_ms, b.added_ms, b.kinds, b.data
		FROM iteration i LEFT JOIN brief b ON b.tree = i.tree AND b.number = i.number`
	sqlIterationRow = sqlIterationRows + ` WHERE i.tree = $1 AND i.number = $2`
	sqlGateRows     = `SELECT tree, number, '', iteration, kind, question, opened_at, expires_at, answer, answered_by,
			reason, answered_at, approver, token FROM gate`
	sqlGateRow    = sqlGateRows + ` WHERE tree = $1 AND number = $2`
	sqlFalseRows  = `SELECT tree, 0, '', fingerprint, iteration, event, what, marked_by, reason, marked_at FROM false_alarm`
	sqlFalseOrder = ` ORDER BY tree, fingerprint`
	sqlFalseRow   = sqlFalseRows + ` WHERE tree = $1` + sqlFalseOrder
	sqlAnswerRows = `SELECT tree, task, '', gate, why, answer, answered_by, text FROM gate_task`
	sqlAnswerRow  = sqlAnswerRows + ` WHERE tree = $1 AND task = $2`

	sqlHandoffRows = `SELECT 0, id, '', place, task, version, fence, agent, token, ttl, expires_at, projected, previous,
			created_at, updated_at, ended_at FROM handoff`
	sqlHandoffRow = sqlHandoffRows + ` WHERE id = $1`
	sqlEntryRows  = `SELECT 0, handoff, number, kind, data, source, at FROM handoff_entry`
	sqlEntryRow   = sqlEntryRows + ` WHERE handoff = $1 AND number = $2`

	sqlBlockRows = `SELECT tree, task, number, turn, data, output, started_at, ended_at FROM repl_block`
	sqlBlockRow  = sqlBlockRows + ` WHERE tree = $1 AND task = $2 AND number = $3`

	// The columns of these are also in the code that writes the rows, for [Hasher.Row].
	sqlPromptRows = `SELECT tree, id, '', prompt, strategy, merge, context FROM task`
	sqlResultRows = `SELECT tree, id, '', result, data, error_kind, error, ended_at FROM task_end`
	sqlCallRows   = `SELECT tree, id, '', state, response, data, error_kind, error, tries, input_tokens, output_tokens,
			cached_tokens, estimated, cost_micros, ended_at, task, model, attempt, position, request_hash
		FROM call WHERE state IN (` + sqldb.SQLCallCompleted + `, ` + sqldb.SQLCallFailed + `)`
	sqlVariableRows = `SELECT s.tree, s.id, v.name, v.name, v.born, v.value, v.size, v.type, v.description, v.source,
			v.read_only, v.ttl, v.created_at, v.updated_at, v.expires_at
		FROM variable v JOIN state s ON s.id = v.state`
)

// Digest returns the digest of a row as it is stored now, "" if there is none.
func Digest(ctx context.Context, query sqldb.QueryFunc, r Row) (digest string, err error) {
	found := func(_ Row, d Digests) { digest = d.Sum.String() }
	q, args := "", []any{r.Tree, r.Number}
	switch r.Kind {
	case KindLoop:
		q, args = sqlLoopRow, args[:1]
	case KindControl:
		q, args = sqlControlRow, args[:1]
	case KindIteration:
		q = sqlIterationRow
	case KindGate:
		q = sqlGateRow
	case KindFalseAlarms:
		q, args = sqlFalseRow, args[:1]
	case KindGateAnswer:
		q = sqlAnswerRow
	case KindHandoff:
		q, args = sqlHandoffRow, args[1:]
	case KindHandoffEntry, KindReplBlock:
		part, err := strconv.Atoi(r.Part)
		if err != nil {
			return "", err
		}
		if q, args = sqlEntryRow, []any{r.Number, part}; r.Kind == KindReplBlock {
			q, args = sqlBlockRow, []any{r.Tree, r.Number, part}
		}
	case KindState:
		return "", nil // only removed ones are in the log
	}
	err = digests(ctx, query, &selection{r.Kind, q, args}, found)
	return digest, err
}

// allDigests calls do with all rows of all trees and their digests.
func allDigests(ctx context.Context, query sqldb.QueryFunc, do func(Row, Digests)) error {
	for _, s := range []selection{
		{KindLoop, sqlLoopRows, nil}, {KindControl, sqlControlRows, nil},
		{KindIteration, sqlIterationRows, nil}, {KindGate, sqlGateRows, nil},
		{KindFalseAlarms, sqlFalseRows + sqlFalseOrder, nil}, {KindGateAnswer, sqlAnswerRows, nil},
		{KindHandoff, sqlHandoffRows, nil}, {KindHandoffEntry, sqlEntryRows, nil}, {KindReplBlock, sqlBlockRows, nil},
		{KindPrompt, sqlPromptRows, nil},
		{KindResult, sqlResultRows, nil}, {KindCall, sqlCallRows, nil}, {KindVariable, sqlVariableRows, nil},
	} {
		if err := digests(ctx, query, &s, do); err != nil {
			return err
		}
	}
	return nil
}

// Digests is the digest of a row. Older is the one that a version of perdure writes that does
// not know the last columns of gates; else it is zero.
type Digests struct{ Sum, Older Sum }

// laterColumns is the number of the last columns of gates that the first digests did not have.
const laterColumns = 2

// selection is a query for rows of a kind.
type selection struct {
	kind, query string
	args        []any
}

// digests calls do with the digests of the selected rows. Rows of the same name, which
// follow each other, have one digest.
func digests(ctx context.Context, query sqldb.QueryFunc, s *selection, do func(Row, Digests)) error {
	rows, err := query(ctx, s.query, s.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	r, last := Row{Kind: s.kind}, Row{}
	var v columns
	dest := []any{&r.Tree, &r.Number, &r.Part}
	for range len(names) - len(dest) {
		dest = append(dest, &v)
	}
	var sum [sha256.Size]byte
	var older Sum
	for rows.Next() {
		v.Values, v.ends = append(v.Values[:0], sum[:]...), v.ends[:0]
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		row := v.Values[len(sum):]
		switch {
		case r == last:
			row = v.Values
		case last.Kind != "":
			do(last, Digests{Sum(sum[:len(Sum{})]), older})
		}
		if sum, last = sha256.Sum256(row), r; s.kind == KindGate {
			older = v.Values[len(sum):v.ends[len(v.ends)-laterColumns-1]].Sum()
		}
	}
	if last.Kind != "" {
		do(last, Digests{Sum(sum[:len(Sum{})]), older})
	}
	return rows.Err()
}

// columns are the values of the columns that are scanned into it, one after the other.
type columns struct {
	Values
	ends []int // where each of them ends
}

// Scan is for [database/sql.Scanner].
func (c *columns) Scan(value any) error {
	err := c.Values.Scan(value)
	c.ends = append(c.ends, len(c.Values))
	return err
}
