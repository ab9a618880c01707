package gc

import (
	"context"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

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
