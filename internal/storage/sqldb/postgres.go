package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

const (
	postgresName = "postgres"
	// Keys of the advisory locks, per schema (the second number is its hash).
	lockWrite   = 0x7065 // one writing transaction at a time
	lockMigrate = 0x7066
	lockSession = 0x7067
)

func (db *DB) openPostgres(ctx context.Context) error {
	db.Name = postgresName
	db.types = strings.NewReplacer("{{id}}", "BIGINT PRIMARY KEY", "{{bytes}}", "BYTEA", "{{compact}}", "")
	var err error
	if db.write, err = sql.Open("pgx", db.cfg.DSN); err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	pool, err := sql.Open("pgx", db.cfg.DSN)
	if err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	db.setReading(pool)
	return nil
}

const (
	sqlWriteTurn   = `SELECT pg_advisory_xact_lock($1, hashtext(current_schema()))`
	sqlServerClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
)

// beginPostgres takes the store's write lock for the length of the transaction.
// One lock for all writers keeps event numbers in commit order and makes
// transactions mean the same on both databases. It is fast enough because a process
// writes many operations in one transaction.
func (tx *Tx) beginPostgres(ctx context.Context) error {
	if _, err := tx.db.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return tx.db.classify(err)
	}
	var void any
	err := tx.QueryRow(ctx, sqlWriteTurn, []any{lockWrite}, &void)
	if err == nil {
		err = tx.QueryRow(ctx, sqlServerClock, nil, &tx.Now)
	}
	if err != nil {
		_, rbErr := tx.db.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rbErr)
	}
	return nil
}

func classifyPostgres(err error) error {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		kinds := map[string]error{
			"57P01": ErrUnreachable, "57P02": ErrUnreachable, "57P03": ErrUnreachable, // it stops, it crashed, it starts
			"40001": ErrBusy, "40P01": ErrBusy, "55P03": ErrBusy,
			"53100": ErrFull, "25006": ErrReadOnly, "XX001": ErrDamaged, "XX002": ErrDamaged,
		}
		return ofKind(kinds[pe.Code], err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	_, broken := errors.AsType[net.Error](err)
	if broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) {
		return ofKind(ErrUnreachable, err)
	}
	return err
}

// ofKind puts an error of this package before err, unless kind is nil.
func ofKind(kind, err error) error {
	if kind == nil {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// classify puts one of this package's errors before an error of a driver.
func (db *DB) classify(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if db.Name == postgresName {
		return classifyPostgres(err)
	}
	return classifySQLite(err)
}

// Now returns the time for leases in Unix microseconds: the server's on PostgreSQL, this
// host's on SQLite.
func (db *DB) Now(ctx context.Context) (int64, error) {
	if db.Name != postgresName {
		return time.Now().UnixMicro(), nil
	}
	var now int64
	err := db.QueryRow(ctx, sqlServerClock, nil, &now)
	return now, err
}
