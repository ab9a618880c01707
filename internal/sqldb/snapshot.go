package sqldb

import (
	"context"
	"database/sql"
)

// Snapshot is a tree on one snapshot of committed state, for packages that read
// it with queries of their own. It is good until the function that was given it
// returns, for one goroutine.
type Snapshot struct {
	// Tree is the tree's number in the database.
	Tree int64
	// Text loads the text that a column of the tree holds or refers to.
	Text func(ctx context.Context, column string) (string, error)
	// Alive tells whether a session is; its number may be 0, which is not.
	Alive func(ctx context.Context, session int64) (bool, error)
	// Now is the database's time in microseconds since 1970.
	Now int64

	tx *sql.Tx
	db *DB
}

// Snapshot runs fn on the snapshot s of committed state.
func (db *DB) Snapshot(ctx context.Context, s Snapshot, fn func(*Snapshot) error) error {
	return db.View(ctx, func(tx *sql.Tx) error {
		s.tx, s.db = tx, db
		return fn(&s)
	})
}

// Each runs a query and calls scan for each row of the result.
func (s *Snapshot) Each(ctx context.Context, q string, args []any, scan func(scan func(dest ...any) error) error) error {
	rows, err := s.tx.QueryContext(ctx, s.db.text(q), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
