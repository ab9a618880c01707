// Package sqldb opens the database of a store, SQLite or PostgreSQL, and hides their
// differences, so that other packages use the same SQL statements on both.
//
// The statements use $n parameters, TEXT, BIGINT and INTEGER columns, times as Unix
// microseconds, JSON as TEXT, ON CONFLICT … DO UPDATE, RETURNING and recursive WITH.
//
// Writing is serial: one connection writes for a process ([DB.Begin]), and
// processes take turns, on SQLite through a turnstile of two file locks, on
// PostgreSQL through an advisory lock that lasts as long as the transaction. So no
// other transaction changes the store between a transaction's reads and its writes.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says which database to open.
type Config struct {
	// Path is the SQLite file. Its folder must exist.
	Path string
	// DSN is a PostgreSQL address (postgres://…); it takes precedence over Path.
	DSN string
	// LockDir is the folder for the turnstile's lock files (SQLite only).
	// Defaults to the folder of Path.
	LockDir string
	// BusyTimeout bounds the wait for other processes' writes. Defaults to 30 s.
	BusyTimeout time.Duration
	// ReadOnly opens an SQLite file that cannot be written, as it is.
	ReadOnly bool
	// Creating, when set, is called for an empty SQLite file before anything is written to it.
	Creating func()
}

// readConns is the largest number of concurrent reads.
const readConns = 4

// Errors that callers distinguish.
var (
	// ErrBusy: other processes kept the database busy for longer than BusyTimeout.
	ErrBusy = errors.New("database is busy")
	// ErrDamaged: the file is not a database or is corrupt.
	ErrDamaged = errors.New("database is damaged")
	// ErrTooNew: a newer program wrote the schema and this one may not use it.
	ErrTooNew = errors.New("store was written by a newer version")
	// ErrNetworkFS: locks are not reliable on the file system.
	ErrNetworkFS = errors.New("network file system")
	// ErrFull: the disk is full.
	ErrFull = errors.New("disk is full")
	// ErrReadOnly: the folder or the file cannot be written.
	ErrReadOnly = errors.New("store is read-only")
	// ErrIO: the disk or its file system failed.
	ErrIO = errors.New("disk failed")
	// ErrUnreachable: no database server answers at the address, or it refuses.
	ErrUnreachable = errors.New("database cannot be reached")
)

// DB is an open database. Reads may run concurrently; transactions, see [DB.Begin], run
// one after another.
type DB struct {
	// Name is "sqlite" or "postgres".
	Name  string
	types *strings.Replacer // of column types and options in migrations
	cfg   Config
	write *sql.DB
	conn  *sql.Conn // the writing connection
	turn  *turnstile
	pause *turnstile           // of Checkpoint, which has to exclude this process's writer too
	stmts map[string]*sql.Stmt // of conn

	reading atomic.Pointer[readPool]
	files   atomic.Pointer[[]openedFile] // nil on PostgreSQL
	refused atomic.Bool                  // see Refuse
	upkeep  sync.Mutex                   // held during checkpoints and copies, which use write and pause

	warming sync.WaitGroup // of the first connection that reads
}

// readPool has the connections that read, and their statements.
type readPool struct {
	db    *sql.DB
	stmts stmtCache
}

// setReading makes a pool the one that reads.
func (db *DB) setReading(pool *sql.DB) {
	pool.SetMaxOpenConns(readConns)
	pool.SetMaxIdleConns(readConns)
	db.reading.Store(&readPool{db: pool})
}

// Open opens the database and brings its schema up to date. The folder of
// cfg.Path must exist. Several processes may open one database at once.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if cfg.BusyTimeout == 0 {
		cfg.BusyTimeout = 30 * time.Second
	}
	db := &DB{cfg: cfg, stmts: make(map[string]*sql.Stmt)}
	open := db.openSQLite
	if cfg.DSN != "" {
		open = db.openPostgres
	}
	if cfg.ReadOnly {
		open = db.openReadOnly
	}
	err := open(ctx)
	if err == nil && !cfg.ReadOnly {
		err = db.migrate(ctx)
	}
	if err == nil && !cfg.ReadOnly {
		err = db.turn.markUsed()
	}
	if err == nil && !cfg.ReadOnly {
		err = db.rememberFiles()
	}
	if err != nil {
		return nil, errors.Join(db.classify(err), db.Close())
	}
	return db, nil
}

// Close closes all connections. It must not be called during a transaction.
func (db *DB) Close() error {
	var errs []error
	db.warming.Wait()
	reading := db.reading.Load()
	if reading != nil {
		reading.stmts.close()
	}
	for _, s := range db.stmts {
		errs = append(errs, s.Close())
	}
	if db.conn != nil {
		errs = append(errs, db.conn.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if reading != nil {
		errs = append(errs, reading.db.Close())
	}
	for _, t := range []*turnstile{db.turn, db.pause} {
		if t != nil {
			errs = append(errs, t.close())
		}
	}
	return errors.Join(errs...)
}

// Query reads committed state. The statement is prepared once and kept.
func (db *DB) Query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	var rows *sql.Rows
	err := db.again(func(pool *readPool) error {
		st, err := pool.stmts.get(ctx, pool.db, db.Text, q) //nolint:sqlclosecheck // kept for the next one
		if err == nil {
			rows, err = st.QueryContext(ctx, args...) //nolint:rowserrcheck,sqlclosecheck // by the caller
		}
		return err
	})
	return rows, err
}

// QueryRow reads one row of committed state into dest. It returns sql.ErrNoRows
// when there is none. ctx is checked before the read only, which saves the goroutine
// that database/sql starts to watch it.
func (db *DB) QueryRow(ctx context.Context, q string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return db.again(func(pool *readPool) error {
		st, err := pool.stmts.get(ctx, pool.db, db.Text, q) //nolint:sqlclosecheck // kept for the next one
		if err != nil {
			return err
		}
		return st.QueryRowContext(ctx, args...).Scan(dest...)
	})
}

// again retries read once for each pooled connection that the server may have closed
// since its last use, and if the database was opened anew meanwhile.
func (db *DB) again(read func(*readPool) error) error {
	if db.refused.Load() {
		return ErrRemoved
	}
	pool := db.reading.Load()
	err := db.classify(read(pool))
	for range readConns {
		now := db.reading.Load()
		if err == nil || now == pool && !errors.Is(err, ErrUnreachable) {
			break
		}
		pool = now
		err = db.classify(read(pool))
	}
	return err
}

// View runs fn on one snapshot of committed state.
func (db *DB) View(ctx context.Context, fn func(tx *sql.Tx) error) error {
	options := &sql.TxOptions{ReadOnly: true}
	if db.Name == postgresName {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := db.reading.Load().db.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin read: %w", db.classify(err))
	}
	err = db.classify(fn(tx))
	if end := tx.Rollback(); !errors.Is(end, sql.ErrTxDone) {
		err = errors.Join(err, end)
	}
	return err
}
