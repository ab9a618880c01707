// Package gc knows which rows go with a tree, and which long values nothing
// has any more. It removes them in transactions that the store runs.
package gc

import (
	"context"
	"math"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

const (
	sqlSweepVars = `DELETE FROM variable WHERE state IN (SELECT id FROM state WHERE scope = ` +
		sqldb.SQLScopeTree + ` AND tree = $1 ORDER BY task LIMIT $2 + 0)`
	sqlSweepPast = `DELETE FROM variable_past WHERE state IN (SELECT id FROM state WHERE scope = ` +
		sqldb.SQLScopeTree + ` AND tree = $1 ORDER BY task LIMIT $2 + 0)`
	sqlSweepMutations = `DELETE FROM mutation WHERE state IN (SELECT id FROM state WHERE scope = ` +
		sqldb.SQLScopeTree + ` AND tree = $1 ORDER BY task LIMIT $2 + 0)`
	sqlSweepCheckpoints = `DELETE FROM checkpoint WHERE state IN (SELECT id FROM state WHERE scope = ` +
		sqldb.SQLScopeTree + ` AND tree = $1 ORDER BY task LIMIT $2 + 0)`
	sqlSweepStates = `DELETE FROM state WHERE id IN (SELECT id FROM state WHERE scope = ` + sqldb.SQLScopeTree +
		` AND tree = $1 ORDER BY task LIMIT $2 + 0)`

	sqlSweepTaskVars = `DELETE FROM task_vars WHERE task IN (SELECT id FROM task WHERE tree = $1 ORDER BY parent, ` +
		`position LIMIT $2 + 0)`
	sqlSweepHot = `DELETE FROM task_hot WHERE id IN (SELECT id FROM task WHERE tree = $1 ORDER BY parent, ` +
		`position LIMIT $2 + 0)`
	sqlSweepEnd = `DELETE FROM task_end WHERE id IN (SELECT id FROM task WHERE tree = $1 ORDER BY parent, ` +
		`position LIMIT $2 + 0)`
	sqlSweepOutput = `DELETE FROM task_output WHERE task IN (SELECT id FROM task WHERE tree = $1 ORDER BY parent, ` +
		`position LIMIT $2 + 0)`
	sqlSweepCall = `DELETE FROM call WHERE task IN (SELECT id FROM task WHERE tree = $1 ORDER BY parent, position ` +
		`LIMIT $2 + 0)`
	sqlSweepTask = `DELETE FROM task WHERE id IN (SELECT id FROM task WHERE tree = $1 ORDER BY parent, position ` +
		`LIMIT $2 + 0)`

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
	sqlSweepLoop = `DELETE FROM loop WHERE tree = (SELECT tree FROM loop WHERE tree = $1 LIMIT $2 + 0)`
)

// Tree lists the statements that remove the rows of a tree that is gone. Each
// takes the tree's number and how many rows it removes at most; those of a step
// belong into one transaction, and a step is to be repeated until its last
// statement, whose rows the others go by, removes fewer than that.
func Tree() [][]string {
	return [][]string{{sqlSweepVars, sqlSweepPast, sqlSweepMutations, sqlSweepCheckpoints, sqlSweepStates},
		{sqlSweepTaskVars, sqlSweepHot, sqlSweepEnd, sqlSweepOutput, sqlSweepCall, sqlSweepTask},
		{sqlSweepEvent}, {sqlSweepBlock}, {sqlSweepPayload}, {sqlSweepBriefs}, {sqlSweepIterations}, {sqlSweepGates},
		{sqlSweepGateTasks}, {sqlSweepAlarms}, {sqlSweepLoop}}
}

const (
	// States beside trees keep their long values under the negative of their
	// number.
	sqlNextPayloads = `SELECT MIN(tree) FROM payload WHERE tree > $1 AND tree < 0`
	sqlNextRefs     = `SELECT MIN(tree) FROM blob_ref WHERE tree > $1 AND tree < 0`
	sqlLongValues   = `SELECT value FROM variable WHERE state = $1 AND size > $2 UNION ALL SELECT value FROM ` +
		`variable_past WHERE state = $1 AND size > $2`
	sqlPayloads = `SELECT hash, LENGTH(text) FROM payload WHERE tree = $1`
	// The bytes of a blob are counted when its file goes.
	sqlBlobRefs    = `SELECT hash, 0 FROM blob_ref WHERE tree = $1`
	sqlDropPayload = `DELETE FROM payload WHERE tree = $1 AND hash = $2`
	sqlDropRef     = `DELETE FROM blob_ref WHERE tree = $1 AND hash = $2`
)

// Owner returns the first owner of long values after one, 0 when there is none;
// the first is after math.MinInt64.
func Owner(ctx context.Context, db *sqldb.DB, after int64) (int64, error) {
	next := int64(0)
	for _, q := range []string{sqlNextPayloads, sqlNextRefs} {
		var found *int64
		if err := db.QueryRow(ctx, q, []any{after}, &found); err != nil {
			return 0, err
		}
		if found != nil {
			next = min(next, *found)
		}
	}
	return next, nil
}

// First is before all owners.
const First = math.MinInt64

// Long says which long values are looked at.
type Long struct {
	// Owner has them; see [Owner].
	Owner int64
	// Marks begin the columns that refer to a payload and to a blob.
	Marks [2]string
	// Inline is the size up to which values are never long, in bytes.
	Inline int
	// Dry counts only.
	Dry bool
}

// Values removes the long values that no variable and no history of their owner
// has, and returns how many there are and their bytes.
func Values(ctx context.Context, tx *sqldb.Tx, l Long) (n, bytes int64, err error) {
	used := make(map[string]bool)
	err = each(ctx, tx, sqlLongValues, func(scan func(...any) error) error {
		var column string
		err := scan(&column)
		used[column] = true
		return err
	}, -l.Owner, l.Inline)
	if err != nil {
		return 0, 0, err
	}
	for i, kind := range []struct{ list, drop string }{{sqlPayloads, sqlDropPayload}, {sqlBlobRefs, sqlDropRef}} {
		var unused []string
		err := each(ctx, tx, kind.list, func(scan func(...any) error) error {
			var hash string
			var size int64
			err := scan(&hash, &size)
			if !used[l.Marks[i]+hash] {
				unused = append(unused, hash)
				n, bytes = n+1, bytes+size
			}
			return err
		}, l.Owner)
		for i := 0; err == nil && i < len(unused) && !l.Dry; i++ {
			_, err = tx.Exec(ctx, kind.drop, l.Owner, unused[i])
		}
		if err != nil {
			return n, bytes, err
		}
	}
	return n, bytes, nil
}

func each(ctx context.Context, tx *sqldb.Tx, q string, row func(scan func(...any) error) error, args ...any) error {
	rows, err := tx.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
