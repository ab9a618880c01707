package sqldb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	sqliteName = "sqlite"
	// checkpointLimit is the WAL size in pages at which the writing connection
	// itself checkpoints. It is a far limit: [DB.Checkpoint] runs long before,
	// on another connection.
	checkpointLimit = 10_000
	// checkpointEvery is from how many pages on Checkpoint moves them.
	checkpointEvery = 2_000
)

func (db *DB) openSQLite(ctx context.Context) error {
	db.Dialect = Dialect{Name: sqliteName, tokens: strings.NewReplacer(
		"{{id}}", "INTEGER PRIMARY KEY", "{{bytes}}", "BLOB")}
	dir := filepath.Dir(db.cfg.Path)
	if err := checkFileSystem(dir); err != nil {
		return err
	}
	if db.cfg.LockDir == "" {
		db.cfg.LockDir = dir
	}
	var err error
	if db.turn, err = openTurnstile(db.cfg.LockDir); err != nil {
		return err
	}
	// One process at a time looks at the file and turns a new one into WAL mode:
	// SQLite refuses a second one meanwhile, whatever its timeout is.
	if _, err := db.turn.enter(ctx, db.cfg.BusyTimeout); err != nil {
		return err
	}
	defer db.turn.leave()
	if err := db.checkFile(); err != nil {
		return err
	}
	if err := db.checkLog(ctx); err != nil {
		return err
	}
	if db.write, err = sql.Open(sqliteName, db.sqliteDSN(false)); err != nil {
		return err
	}
	db.write.SetMaxOpenConns(2) // the writer, and now and then a checkpoint
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return err
	}
	if db.read, err = sql.Open(sqliteName, db.sqliteDSN(true)); err != nil {
		return err
	}
	db.read.SetMaxOpenConns(db.cfg.ReadConns)
	db.read.SetMaxIdleConns(db.cfg.ReadConns)
	return db.conn.PingContext(ctx)
}

func (db *DB) sqliteDSN(readOnly bool) string {
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", db.cfg.BusyTimeout.Milliseconds()),
		"journal_mode(wal)",
		"synchronous(full)",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointLimit),
		"temp_store(memory)",
	}
	if readOnly {
		pragmas = append(pragmas, "query_only(1)", "cache_size(-1024)")
	} else {
		pragmas = append(pragmas, "cache_size(-8192)")
	}
	v := url.Values{"_pragma": pragmas}
	return "file:" + (&url.URL{Path: db.cfg.Path}).EscapedPath() + "?" + v.Encode()
}

// checkFile refuses a file that cannot be a database before SQLite touches it,
// so that a damaged store is never taken for an empty one.
func (db *DB) checkFile() error {
	path := db.cfg.Path
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return db.checkNew("missing")
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	const magic = "SQLite format 3\x00"
	buf := make([]byte, len(magic))
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read store: %w", err)
	}
	if n == 0 {
		return db.checkNew("empty")
	}
	if string(buf[:n]) != magic {
		return fmt.Errorf("%w: %q is not an SQLite database", ErrDamaged, path)
	}
	return nil
}

// checkNew refuses a database file without content where there was a store: a
// log without its database is half of a store, not a new one.
func (db *DB) checkNew(what string) error {
	path := db.cfg.Path
	if st, err := os.Stat(path + "-wal"); err == nil && st.Size() > 0 {
		return fmt.Errorf("%w: %q is %s although its log %q is there", ErrDamaged, path, what, path+"-wal")
	}
	used, err := db.turn.used()
	if err == nil && used {
		err = fmt.Errorf("%w: %q is %s although a store was here", ErrDamaged, path, what)
	}
	return err
}

// Checkpoint moves what the log has collected into the database file, on a
// connection of its own so that writers go on meanwhile. It does nothing while
// little is to be moved. Safe beside everything else. A no-op on PostgreSQL.
func (db *DB) Checkpoint(ctx context.Context) error {
	if db.Name != sqliteName || db.walBacklog() < checkpointEvery {
		return nil
	}
	var busy, log, done int
	row := db.write.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return db.classify(row.Scan(&busy, &log, &done))
}

// walBacklog returns how many pages of the log are not in the database file
// yet, 0 when that is not known. It reads the log's index, whose layout is part
// of SQLite's file format (https://sqlite.org/walformat.html, section 2): the
// number of frames at byte 16 and of those moved at byte 96, in the host's byte
// order.
func (db *DB) walBacklog() int64 {
	const framesAt, movedAt, size = 16, 96, 100
	f, err := os.Open(db.cfg.Path + "-shm")
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read
	var head [size]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return 0
	}
	word := func(at int) int64 { return int64(binary.NativeEndian.Uint32(head[at:])) }
	return word(framesAt) - word(movedAt)
}

// IntegrityCheck reads the whole database and returns what is wrong with its
// structure, nothing when it is sound. A no-op on PostgreSQL.
func (db *DB) IntegrityCheck(ctx context.Context) ([]string, error) {
	if db.Name != sqliteName {
		return nil, nil
	}
	rows, err := db.read.QueryContext(ctx, "PRAGMA integrity_check(20)")
	if err != nil {
		return nil, db.classify(err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var faults []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, db.classify(err)
		}
		if s != "ok" {
			faults = append(faults, s)
		}
	}
	return faults, db.classify(rows.Err())
}

func classifySQLite(err error) error {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}
