// Package gc has the statements that remove the rows of a removed tree, long values
// without references, and ended handoff ledgers. The store runs the transactions.
package gc

import (
	"context"
	"math"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

const (
	statesOfTree = `(SELECT id FROM state WHERE scope = ` + sqldb.SQLScopeTree +
		` AND tree = $1 ORDER BY task LIMIT $2 + 0)`
	sqlSweepVars        = `DELETE FROM variable WHERE state IN ` + statesOfTree
	sqlSweepPast        = `DELETE FROM variable_past WHERE state IN ` + statesOfTree
	sqlSweepMutations   = `DELETE FROM mutation WHERE state IN ` + statesOfTree
	sqlSweepCheckpoints = `DELETE FROM checkpoint WHERE state IN ` + statesOfTree
	sqlSweepStates      = `DELETE FROM state WHERE id IN ` + statesOfTree

	tasksOfTree      = `(SELECT id FROM task WHERE tree = $1 ORDER BY parent, position LIMIT $2 + 0)`
	sqlSweepTaskVars = `DELETE FROM task_vars WHERE task IN ` + tasksOfTree
	sqlSweepHot      = `DELETE FROM task_hot WHERE id IN ` + tasksOfTree
	sqlSweepEnd      = `DELETE FROM task_end WHERE id IN ` + tasksOfTree
	sqlSweepOutput   = `DELETE FROM task_output WHERE task IN ` + tasksOfTree
	sqlSweepCall     = `DELETE FROM call WHERE task IN ` + tasksOfTree
	sqlSweepTask     = `DELETE FROM task WHERE id IN ` + tasksOfTree

	sqlSweepEvent = `DELETE FROM event WHERE seq IN (SELECT e.seq FROM event_block k
		JOIN event e ON ` + sqldb.SQLEventsOfBlock + ` WHERE k.tree = $1 LIMIT $2 + 0)`
	sqlSweepBlock = `DELETE FROM event_block WHERE tree = $1 AND block IN (SELECT block FROM event_block WHERE tree ` +
		`= $1 LIMIT $2 + 0)`
	sqlSweepPayload = `DELETE FROM payload WHERE tree = $1 AND hash IN (SELECT hash FROM payload WHERE tree = $1 LIMIT ` +
		`$2 + 0)`

	sqlSweepIterations = `DELETE FROM iteration WHERE tree = $1 AND number IN (SELECT number FROM iteration WHERE tree ` +
		`= $1 LIMIT $2 + 0)`
	sqlSweepBriefs = `DELETE FROM brief WHERE tree = $1 AND number IN (SELECT number FROM brief WHERE tree = $1 ` +
		`LIMIT $2 + 0)`
	sqlSweepGates = `DELETE FROM gate WHERE tree = $1 AND number IN (SELECT number FROM gate WHERE tree = $1 ` +
		`LIMIT $2 + 0)`
	sqlSweepGateTasks = `DELETE FROM gate_task WHERE task IN (SELECT task FROM gate_task WHERE tree = $1 LIMIT $2 + 0)`
	sqlSweepAlarms    = `DELETE FROM false_alarm WHERE tree = $1 AND fingerprint IN (SELECT fingerprint FROM ` +
		`false_alarm WHERE tree = $1 LIMIT $2 + 0)`
	sqlSweepReplBlocks = `DELETE FROM repl_block WHERE tree = $1 AND number IN (SELECT number FROM repl_block ` +
		`WHERE tree = $1 LIMIT $2 + 0)`
	sqlSweepLoop = `DELETE FROM loop WHERE tree = (SELECT tree FROM loop WHERE tree = $1 LIMIT $2 + 0)`
)

// Tree lists the steps that remove the rows of a removed tree. The statements of a step
// run in one transaction; each takes the tree's number and the largest number of rows to
// remove. A step is repeated until its last statement, whose rows select those of the
// others, removes fewer rows than that.
func Tree() [][]string {
	return [][]string{{sqlSweepVars, sqlSweepPast, sqlSweepMutations, sqlSweepCheckpoints, sqlSweepStates},
		{sqlSweepTaskVars, sqlSweepHot, sqlSweepEnd, sqlSweepOutput, sqlSweepCall, sqlSweepTask},
		{sqlSweepEvent}, {sqlSweepBlock}, {sqlSweepPayload}, {sqlSweepBriefs}, {sqlSweepIterations}, {sqlSweepGates},
		{sqlSweepGateTasks}, {sqlSweepAlarms}, {sqlSweepReplBlocks}, {sqlSweepLoop}}
}

const (
	// States outside of trees keep their long values under their negative number.
	sqlNextOwner = `SELECT COALESCE(MIN(tree), 0) FROM (
			SELECT MIN(tree) AS tree FROM payload WHERE tree > $1 AND tree < 0
			UNION ALL SELECT MIN(tree) FROM blob_ref WHERE tree > $1 AND tree < 0) owners`
	sqlLongValues = `SELECT value FROM variable WHERE state = $1 AND size > $2
		UNION ALL SELECT value FROM variable_past WHERE state = $1 AND size > $2`
	sqlPayloads = `SELECT hash, LENGTH(text) FROM payload WHERE tree = $1`
	// The bytes of a blob are counted when its file is removed.
	sqlBlobRefs    = `SELECT hash, 0 FROM blob_ref WHERE tree = $1`
	sqlDropPayload = `DELETE FROM payload WHERE tree = $1 AND hash = $2`
	sqlDropRef     = `DELETE FROM blob_ref WHERE tree = $1 AND hash = $2`
)

// Owner returns the next owner of long values after the given one, which is [First] at
// the beginning; 0 if there is none.
func Owner(ctx context.Context, db *sqldb.DB, after int64) (next int64, err error) {
	err = db.QueryRow(ctx, sqlNextOwner, []any{after}, &next)
	return next, err
}

// First is before all owners.
const First = math.MinInt64

// Long selects long values.
type Long struct {
	// Owner is the owner of the values; see [Owner].
	Owner int64
	// Marks are the prefixes of columns that refer to a payload and to a blob.
	Marks [2]string
	// Inline is the largest size of values that are not long, in bytes.
	Inline int
	// Dry only counts.
	Dry bool
}

// Values removes the long values that no variable and no history of their owner
// has, and returns their number and bytes.
func Values(ctx context.Context, tx *sqldb.Tx, l Long) (n, bytes int64, err error) {
	columns, err := sqldb.Collect(ctx, tx.Query, sqldb.Column[string], sqlLongValues, -l.Owner, l.Inline)
	if err != nil {
		return 0, 0, err
	}
	used := make(map[string]bool)
	for _, column := range columns {
		used[column] = true
	}
	for i, kind := range []struct{ list, drop string }{{sqlPayloads, sqlDropPayload}, {sqlBlobRefs, sqlDropRef}} {
		var unused []string
		err := sqldb.Each(ctx, tx.Query, func(scan sqldb.Scan) error {
			var hash string
			var size int64
			err := scan(&hash, &size)
			if !used[l.Marks[i]+hash] {
				unused = append(unused, hash)
				n, bytes = n+1, bytes+size
			}
			return err
		}, kind.list, l.Owner)
		for i := 0; err == nil && i < len(unused) && !l.Dry; i++ {
			_, err = tx.Exec(ctx, kind.drop, l.Owner, unused[i])
		}
		if err != nil {
			return n, bytes, err
		}
	}
	return n, bytes, nil
}

const (
	sqlEndedLedgers = `SELECT h.id, (SELECT COALESCE(SUM(LENGTH(e.data)), 0) FROM handoff_entry e WHERE e.handoff = h.id)
		FROM handoff h WHERE h.ended_at <= $1 ORDER BY h.ended_at LIMIT $2 + 0`
	sqlDropLedger  = `DELETE FROM handoff WHERE id = $1`
	sqlDropEntries = `DELETE FROM handoff_entry WHERE handoff = $1`
)

// Ledger is a handoff ledger that ended, with the size of its entries.
type Ledger struct{ ID, Bytes int64 }

// EndedLedgers lists handoff ledgers that ended before an instant, at most limit.
func EndedLedgers(ctx context.Context, db *sqldb.DB, before int64, limit int) ([]Ledger, error) {
	return sqldb.Collect(ctx, db.Query, func(scan sqldb.Scan) (l Ledger, err error) {
		err = scan(&l.ID, &l.Bytes)
		return l, err
	}, sqlEndedLedgers, before, limit)
}

// DropLedger removes a handoff ledger with its entries.
func DropLedger(ctx context.Context, tx *sqldb.Tx, id int64) error {
	if _, err := tx.Exec(ctx, sqlDropLedger, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqlDropEntries, id)
	return err
}
