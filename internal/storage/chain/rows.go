package chain

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
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

// The kinds of rows: the state and configuration of a loop, an iteration with its brief
// (0 is the baseline), a gate, all findings that are marked as false alarms, the answer for
// a task that waits at a gate, a handoff ledger, one of its entries, and a state.
const (
	KindLoop         = "loop"
	KindIteration    = "iteration"
	KindGate         = "gate"
	KindFalseAlarms  = "false_alarms"
	KindGateAnswer   = "gate_answer"
	KindHandoff      = "handoff"
	KindHandoffEntry = "handoff_entry"
	KindState        = "state"
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
	case r.Kind == KindLoop || r.Kind == KindFalseAlarms:
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
	}
	return strings.ReplaceAll(r.Name(), "_", " ")
}

// The columns after the first three, tree, number and part, are in the digest. Those that
// change without an event are left out.
const (
	sqlLoopRows      = `SELECT tree, 0, '', place, status, step, iteration, state, version, config FROM loop`
	sqlLoopRow       = sqlLoopRows + ` WHERE tree = $1`
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

	// The columns of these are written in [Hasher.Digest] by their writers.
	sqlPromptRows = `SELECT tree, id, '', prompt, strategy, merge, context FROM task`
	sqlResultRows = `SELECT tree, id, '', result, data, error_kind, error, ended_at FROM task_end`
	sqlCallRows   = `SELECT tree, id, '', state, response, data, error_kind, error, tries, input_tokens, output_tokens,
			cached_tokens, estimated, cost_micros, ended_at, task, model, attempt, position, request_hash
		FROM call WHERE state IN (` + sqldb.SQLCallCompleted + `, ` + sqldb.SQLCallFailed + `)`
	sqlVariableRows = `SELECT s.tree, s.id, v.name, v.name, v.born, v.value, v.size, v.type, v.description, v.source,
			v.read_only, v.ttl, v.created_at, v.updated_at, v.expires_at
		FROM variable v JOIN state s ON s.id = v.state`
	sqlVariablesBorn = sqlVariableRows + ` WHERE v.state = $1 AND v.born = $2`
)

// Digest returns the digest of a row as it is stored now, "" if there is none.
func Digest(ctx context.Context, query sqldb.QueryFunc, r Row) (digest string, err error) {
	found := func(_ Row, d Digests) { digest = d.Sum.String() }
	q, args := "", []any{r.Tree, r.Number}
	switch r.Kind {
	case KindLoop:
		q, args = sqlLoopRow, args[:1]
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
	case KindHandoffEntry:
		part, err := strconv.Atoi(r.Part)
		if err != nil {
			return "", err
		}
		q, args = sqlEntryRow, []any{r.Number, part}
	case KindState:
		return "", nil // only removed ones are in the log
	}
	err = digests(ctx, query, &selection{r.Kind, q, args}, found)
	return digest, err
}

// Born calls do with the variables of a state that a mutation set, and their digests.
func Born(ctx context.Context, query sqldb.QueryFunc, state, mutation int64, do func(Row, Digests)) error {
	return digests(ctx, query, &selection{KindVariable, sqlVariablesBorn, []any{state, mutation}}, do)
}

// allDigests calls do with all rows of all trees and their digests.
func allDigests(ctx context.Context, query sqldb.QueryFunc, do func(Row, Digests)) error {
	for _, s := range []selection{
		{KindLoop, sqlLoopRows, nil}, {KindIteration, sqlIterationRows, nil}, {KindGate, sqlGateRows, nil},
		{KindFalseAlarms, sqlFalseRows + sqlFalseOrder, nil}, {KindGateAnswer, sqlAnswerRows, nil},
		{KindHandoff, sqlHandoffRows, nil}, {KindHandoffEntry, sqlEntryRows, nil}, {KindPrompt, sqlPromptRows, nil},
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
	dest := []any{&r.Tree, &r.Number, &r.Part}
	values := make([]sql.NullString, len(names)-len(dest))
	for i := range values {
		dest = append(dest, &values[i])
	}
	var sum [sha256.Size]byte
	var older Sum
	var buf []byte
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		switch buf = buf[:0]; {
		case r == last:
			buf = append(buf, sum[:]...)
		case last.Kind != "":
			do(last, Digests{Sum(sum[:len(Sum{})]), older})
		}
		buf = encode(buf, values)
		sum, last = sha256.Sum256(buf), r
		if s.kind == KindGate {
			first := sha256.Sum256(encode(nil, values[:len(values)-laterColumns]))
			older = Sum(first[:len(Sum{})])
		}
	}
	if last.Kind != "" {
		do(last, Digests{Sum(sum[:len(Sum{})]), older})
	}
	return rows.Err()
}

// Sum is a digest: the first half of a SHA-256 hash, because an attacker would have to find
// a second row with the same digest, not two rows of his choice. It is zero for a row that
// was removed.
type Sum [16]byte

// String returns the digest in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

func encode(buf []byte, values []sql.NullString) []byte {
	for _, v := range values {
		if !v.Valid {
			buf = appendLength(buf, -1)
			continue
		}
		buf = append(appendLength(buf, len(v.String)), v.String...)
	}
	return buf
}

func appendLength(buf []byte, n int) []byte {
	return binary.BigEndian.AppendUint64(buf, uint64(n)) //nolint:gosec // only the bits matter
}

// Digest returns the digest of a row with these values: text, integers, or nil. It equals
// that of the row when it is read.
func (h *Hasher) Digest(values ...any) string {
	buf := h.buf[:0]
	for _, v := range values {
		switch v := v.(type) {
		case string:
			buf = append(appendLength(buf, len(v)), v...)
		case int64:
			buf = appendInt(buf, v)
		case int:
			buf = appendInt(buf, int64(v))
		case *int64:
			if v == nil {
				buf = appendLength(buf, -1)
			} else {
				buf = appendInt(buf, *v)
			}
		case nil:
			buf = appendLength(buf, -1)
		default:
			panic(fmt.Sprintf("no digest of a %T", v))
		}
	}
	h.buf = buf
	sum := sha256.Sum256(buf)
	return Sum(sum[:len(Sum{})]).String()
}

func appendInt(buf []byte, n int64) []byte {
	at := len(buf)
	buf = strconv.AppendInt(appendLength(buf, 0), n, 10)
	binary.BigEndian.PutUint64(buf[at:], uint64(len(buf)-at-8)) //nolint:gosec // a length
	return buf
}
