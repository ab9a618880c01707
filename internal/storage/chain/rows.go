package chain

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Row names a row whose digest the log has.
type Row struct {
	Tree   int64
	Kind   string
	Number int
}

// The kinds of rows: the state and configuration of a loop, an iteration with its brief
// (0 is the baseline), a gate, and all findings that are marked as false alarms.
const (
	KindLoop        = "loop"
	KindIteration   = "iteration"
	KindGate        = "gate"
	KindFalseAlarms = "false_alarms"
)

// Name returns the name of a row in an event.
func (r Row) Name() string {
	if r.Kind == KindLoop || r.Kind == KindFalseAlarms {
		return r.Kind
	}
	return r.Kind + " " + strconv.Itoa(r.Number)
}

// The columns after the first two, tree and number, are in the digest. Those that change
// without an event are left out.
const (
	sqlLoopRows      = `SELECT tree, 0, place, status, step, iteration, state, version, config FROM loop`
	sqlLoopRow       = sqlLoopRows + ` WHERE tree = $1`
	sqlIterationRows = `SELECT i.tree, i.number, i.task, i.status, i.quality, i.data, i.started_at, i.ended_at,
			b.task, b.status, b.quality, b.started_at, b.ended_at, b.eligible, b.passed, b.regressions, b.recoveries,
			b.agent_errors, b.warnings, b.sealed, b.work_ms, b.added_ms, b.kinds, b.data
		FROM iteration i LEFT JOIN brief b ON b.tree = i.tree AND b.number = i.number`
	sqlIterationRow = sqlIterationRows + ` WHERE i.tree = $1 AND i.number = $2`
	sqlGateRows     = `SELECT tree, number, iteration, kind, question, opened_at, expires_at, answer, answered_by, reason,
			answered_at, approver, token FROM gate`
	sqlGateRow    = sqlGateRows + ` WHERE tree = $1 AND number = $2`
	sqlFalseRows  = `SELECT tree, 0, fingerprint, iteration, event, what, marked_by, reason, marked_at FROM false_alarm`
	sqlFalseOrder = ` ORDER BY tree, fingerprint`
	sqlFalseRow   = sqlFalseRows + ` WHERE tree = $1` + sqlFalseOrder
)

// Digest returns the digest of a row as it is stored now, "" if there is none.
func Digest(ctx context.Context, query sqldb.QueryFunc, r Row) (string, error) {
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
	}
	all, err := digests(ctx, query, r.Kind, q, args...)
	return all[r].digest, err
}

// digestPair is the digest of a row. Older is the one that a version of perdure writes that does
// not know the last columns of gates; else it is empty.
type digestPair struct{ digest, older string }

// laterColumns is the number of the last columns of gates that the first digests did not have.
const laterColumns = 2

// allDigests returns the digests of all rows of all trees.
func allDigests(ctx context.Context, query sqldb.QueryFunc) (map[Row]digestPair, error) {
	all := make(map[Row]digestPair)
	for _, of := range [][2]string{{KindLoop, sqlLoopRows}, {KindIteration, sqlIterationRows}, {KindGate, sqlGateRows},
		{KindFalseAlarms, sqlFalseRows + sqlFalseOrder}} {
		found, err := digests(ctx, query, of[0], of[1])
		if err != nil {
			return nil, err
		}
		for row, digest := range found {
			all[row] = digest
		}
	}
	return all, nil
}

// digests returns the digests of the rows that a query returns. Rows of the same name,
// which follow each other, have one digest.
func digests(ctx context.Context, query sqldb.QueryFunc, kind, q string, args ...any) (map[Row]digestPair, error) {
	rows, err := query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names)-2)
	r := Row{Kind: kind}
	dest := []any{&r.Tree, &r.Number}
	for i := range values {
		dest = append(dest, &values[i])
	}
	all, sums := make(map[Row]digestPair), make(map[Row][]byte)
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(encode(sums[r], values))
		d := digestPair{digest: hex.EncodeToString(sum[:digestBytes])}
		switch kind {
		case KindFalseAlarms:
			sums[r] = sum[:]
		case KindGate:
			sum = sha256.Sum256(encode(nil, values[:len(values)-laterColumns]))
			d.older = hex.EncodeToString(sum[:digestBytes])
		}
		all[r] = d
	}
	return all, rows.Err()
}

// digestBytes is the length of a digest. An attacker would have to find a second row with
// the same digest, not two rows of his choice.
const digestBytes = 16

func encode(buf []byte, values []sql.NullString) []byte {
	buf = append([]byte{}, buf...)
	for _, v := range values {
		n := int64(len(v.String))
		if !v.Valid {
			n = -1
		}
		buf = binary.BigEndian.AppendUint64(buf, uint64(n)) //nolint:gosec // only the bits matter
		buf = append(buf, v.String...)
	}
	return buf
}
