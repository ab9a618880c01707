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
	db.Dialect = Dialect{Name: postgresName, SkipLocked: "FOR UPDATE SKIP LOCKED", tokens: strings.NewReplacer(
		"{{id}}", "BIGINT PRIMARY KEY", "{{bytes}}", "BYTEA", "{{compact}}", "")}
	var err error
	if db.write, err = sql.Open("pgx", db.cfg.DSN); err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if db.read, err = sql.Open("pgx", db.cfg.DSN); err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	db.read.SetMaxOpenConns(db.cfg.ReadConns)
	db.read.SetMaxIdleConns(db.cfg.ReadConns)
	return nil
}

const (
	sqlWriteTurn   = `SELECT pg_advisory_xact_lock($1, hashtext(current_schema()))`
	sqlServerClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
)

// beginPostgres takes the store's write lock for the length of the transaction.
// One lock for all writers keeps event numbers in commit order and gives a
// transaction the same meaning on both databases; the batch of the process is
// what makes it fast.
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
	var pe *pgconn.PgError
	var broken net.Error
	switch {
	case errors.As(err, &pe):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &broken), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err,
		driver.ErrBadConn):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	default:
		return err
	}
	switch pe.Code {
	case "57P01", "57P02", "57P03": // it stops, it crashed, it starts
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case "40001", "40P01", "55P03":
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case "53100":
		return fmt.Errorf("%w: %w", ErrFull, err)
	case "25006":
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case "XX001", "XX002":
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
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

// Now returns the instant that decides about leases in Unix microseconds: the
// server's on PostgreSQL, this host's on SQLite.
func (db *DB) Now(ctx context.Context) (int64, error) {
	if db.Name != postgresName {
		return time.Now().UnixMicro(), nil
	}
	var now int64
	err := db.QueryRow(ctx, sqlServerClock, nil, &now)
	return now, err
}
