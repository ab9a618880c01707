package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	// restartFrom is the size of the log in pages from which Checkpoint lets the
	// writers wait for a moment, so that the log is begun anew.
	restartFrom = 4_000
)

func (db *DB) openSQLite(ctx context.Context) error {
	db.Dialect = Dialect{Name: sqliteName, tokens: strings.NewReplacer(
		"{{id}}", "INTEGER PRIMARY KEY", "{{bytes}}", "BLOB", "{{compact}}", " WITHOUT ROWID")}
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
	if db.pause, err = openTurnstile(db.cfg.LockDir); err != nil {
		return err
	}
	if err := db.checkFile(); err != nil {
		return err
	}
	if err := db.checkLog(ctx); err != nil {
		return err
	}
	// One process at a time connects, and turns a new file into WAL mode: SQLite
	// refuses a second one meanwhile, whatever its timeout is.
	if _, err := db.turn.enter(ctx, db.cfg.BusyTimeout); err != nil {
		return err
	}
	defer db.turn.leave()
	return db.connectSQLite(ctx)
}

func (db *DB) connectSQLite(ctx context.Context) (err error) {
	layer, err := registerVFS()
	if err != nil {
		return err
	}
	if db.write, err = sql.Open(sqliteName, db.sqliteDSN(false)+"&vfs="+layer); err != nil {
		return err
	}
	db.write.SetMaxOpenConns(2) // the writer, and now and then a checkpoint
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return err
	}
	// Where the file was removed meanwhile, a further connection must not make an
	// empty one.
	if db.read, err = sql.Open(sqliteName, db.sqliteDSN(true)+"&mode=rw"); err != nil {
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

// checkFile refuses a database without content where there was a store, before
// SQLite makes a new one of it. SQLite itself refuses what is not a database.
//
// Nothing in this process may open the database or the index of its log beside
// SQLite: closing such a descriptor drops the locks that SQLite holds on the
// file (https://sqlite.org/howtocorrupt.html, section 2.2), and then another
// process takes a log away that is in use.
func (db *DB) checkFile() error {
	st, err := os.Stat(db.cfg.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return db.checkNew("missing")
	case err != nil:
		return fmt.Errorf("open store: %w", err)
	case st.Size() == 0:
		return db.checkNew("empty")
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
// little is to be moved. Safe beside everything else, from one goroutine. A
// no-op on PostgreSQL.
//
// Beside writers that never rest it does not get to the log's end, and the log
// would grow until a writer has to move all of it in the midst of a commit. So
// the last few pages of a long log are moved while the writers wait in turn.
func (db *DB) Checkpoint(ctx context.Context) error {
	if db.Name != sqliteName {
		return nil
	}
	log, done, err := db.checkpoint(ctx, "NOOP")
	if err != nil || log-done < checkpointEvery && (log < restartFrom || log == done) {
		return err
	}
	if _, _, err = db.checkpoint(ctx, "PASSIVE"); err != nil || log < restartFrom {
		return err
	}
	if _, err := db.pause.enter(ctx, db.cfg.BusyTimeout); err != nil {
		return err
	}
	defer db.pause.leave()
	_, _, err = db.checkpoint(ctx, "PASSIVE")
	return err
}

// checkpoint returns how many pages are in the log, and how many of them are in
// the database too.
func (db *DB) checkpoint(ctx context.Context, mode string) (log, done int, err error) {
	var busy int
	err = db.write.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &done)
	return log, done, db.classify(err)
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
	defer rows.Close()
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
	if se.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // no room for the log's index
		return fmt.Errorf("%w: %w", ErrFull, err)
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
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	return err
}
