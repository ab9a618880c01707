package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Tx is the one writing transaction of this process, and, between Begin and
// Commit, of all processes on the store.
type Tx struct {
	db *DB
	// Now is the instant of the transaction in Unix microseconds: this
	// process's clock on SQLite, the server's on PostgreSQL.
	Now int64
	// Alone is set if no other process began a transaction since this process's
	// last one, so that rows read then have not changed. Always false on PostgreSQL.
	Alone bool
	// Changed is set if a statement changed a row, or may have.
	Changed bool
}

// Begin waits for this process's turn and starts a transaction. It must not be called
// concurrently. Every Begin is followed by Commit or Rollback.
func (db *DB) Begin(ctx context.Context) (*Tx, error) {
	alone, err := db.turn.enter(ctx, db.cfg.BusyTimeout)
	if err != nil {
		return nil, err
	}
	if db.Removed() {
		db.turn.leave()
		return nil, fmt.Errorf("begin: %w", ErrRemoved)
	}
	tx := &Tx{db: db, Alone: alone}
	err = tx.begin(ctx)
	if err != nil && db.lost(ctx) {
		if err = db.reconnect(ctx); err == nil {
			err = tx.begin(ctx)
		}
	}
	if err != nil {
		db.turn.leave()
		return nil, fmt.Errorf("begin: %w", err)
	}
	return tx, nil
}

// lost reports whether the writing connection is broken.
func (db *DB) lost(ctx context.Context) bool {
	err := db.conn.PingContext(ctx)
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

func (tx *Tx) begin(ctx context.Context) error {
	if tx.db.Name == postgresName {
		return tx.beginPostgres(ctx)
	}
	_, err := tx.Exec(ctx, "BEGIN IMMEDIATE")
	tx.Changed = false // BEGIN returns the row count of the previous statement
	tx.Now = time.Now().UnixMicro()
	return err
}

// reconnect replaces the writing connection after the server closed it.
func (db *DB) reconnect(ctx context.Context) error {
	clear(db.stmts)
	_ = db.conn.Close() // it is broken
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", db.classify(err))
	}
	db.conn = conn
	return nil
}

// Commit makes the transaction durable: when it returns nil, the changes
// survive kill -9 and power loss.
func (tx *Tx) Commit(ctx context.Context) error {
	_, err := tx.Exec(context.WithoutCancel(ctx), "COMMIT")
	if err != nil {
		return errors.Join(fmt.Errorf("commit: %w", err), tx.Rollback(ctx))
	}
	tx.db.turn.leave()
	return nil
}

// Rollback undoes the transaction.
func (tx *Tx) Rollback(ctx context.Context) error {
	defer tx.db.turn.leave()
	_, err := tx.db.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	if err != nil && tx.db.Name == sqliteName {
		return nil // it rolled back by itself after a full disk or an I/O error
	}
	return tx.db.classify(err)
}

// Exec runs a statement, prepared once per connection, and returns the number
// of rows it changed.
func (tx *Tx) Exec(ctx context.Context, q string, args ...any) (int64, error) {
	st, err := tx.stmt(ctx, q) //nolint:sqlclosecheck // kept for the next one
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, tx.db.classify(err)
	}
	n, err := res.RowsAffected()
	if n > 0 {
		tx.Changed = true
	}
	return n, tx.db.classify(err)
}

// Query runs a statement that returns rows; the caller closes them before the
// next statement.
func (tx *Tx) Query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	st, err := tx.stmt(ctx, q) //nolint:sqlclosecheck // kept for the next one
	if err != nil {
		return nil, err
	}
	tx.Changed = tx.Changed || !strings.HasPrefix(q, "SELECT") && !strings.HasPrefix(q, "WITH")
	rows, err := st.QueryContext(ctx, args...)
	return rows, tx.db.classify(err)
}

// QueryRow scans one row into dest, or returns sql.ErrNoRows.
func (tx *Tx) QueryRow(ctx context.Context, q string, args []any, dest ...any) error {
	st, err := tx.stmt(ctx, q) //nolint:sqlclosecheck // kept for the next one
	if err != nil {
		return err
	}
	tx.Changed = tx.Changed || !strings.HasPrefix(q, "SELECT")
	return tx.db.classify(st.QueryRowContext(ctx, args...).Scan(dest...))
}

func (tx *Tx) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st := tx.db.stmts[q]; st != nil {
		return st, nil
	}
	st, err := tx.db.conn.PrepareContext(ctx, tx.db.Text(q))
	if err != nil {
		return nil, tx.db.classify(err)
	}
	tx.db.stmts[q] = st
	return st, nil
}
