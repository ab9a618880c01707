package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	sqliteName = "sqlite"
	// checkpointLimit is the WAL size in pages at which the writing connection
	// itself checkpoints. [DB.Checkpoint] runs long before that, on another
	// connection.
	checkpointLimit = 10_000
	// checkpointEvery is the number of pages from which Checkpoint moves them.
	checkpointEvery = 2_000
	// restartFrom is the size of the log in pages from which Checkpoint makes the
	// writers wait for a moment, so that the log starts again at its beginning.
	restartFrom = 4_000
)

func (db *DB) openSQLite(ctx context.Context) error {
	db.useSQLite()
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
	// One process at a time connects and sets a new file to WAL mode: SQLite refuses a
	// second one meanwhile, whatever the timeout is.
	if _, err := db.turn.enter(ctx, db.cfg.BusyTimeout); err != nil {
		return err
	}
	defer db.turn.leave()
	if err := makePrivate(db.cfg.Path); err != nil {
		return err
	}
	if st, err := os.Stat(db.cfg.Path); err == nil && st.Size() == 0 && db.cfg.Creating != nil {
		db.cfg.Creating()
	}
	return db.connectSQLite(ctx)
}

// useSQLite sets the name and the types of SQLite.
func (db *DB) useSQLite() {
	db.Name = sqliteName
	db.types = strings.NewReplacer("{{id}}", "INTEGER PRIMARY KEY", "{{bytes}}", "BLOB", "{{compact}}", " WITHOUT ROWID")
}

func (db *DB) connectSQLite(ctx context.Context) (err error) {
	layer, err := registerVFS()
	if err != nil {
		return err
	}
	if db.write, err = db.openPool(db.sqliteDSN(false) + "&mode=rw&vfs=" + layer); err != nil {
		return err
	}
	db.write.SetMaxOpenConns(2) // the writer and a checkpoint
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return err
	}
	// If the file was removed meanwhile, another connection must not create an empty one.
	pool, err := db.openPool(db.sqliteDSN(true) + "&mode=rw")
	if err != nil {
		return err
	}
	db.setReading(pool)
	if err := db.conn.PingContext(ctx); err != nil {
		return err
	}
	db.warming.Go(func() { db.warm(context.WithoutCancel(ctx)) })
	return nil
}

// warm makes the first connection that reads, and lets it read the schema, which takes a
// millisecond, while the caller goes on. A failure shows in the first read.
func (db *DB) warm(ctx context.Context) {
	var tables int
	_ = db.reading.Load().db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
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
	return db.sqliteFile() + "?" + v.Encode()
}

func (db *DB) sqliteFile() string { return "file:" + (&url.URL{Path: db.cfg.Path}).EscapedPath() }

// checkFile refuses a missing or empty database file if its log exists or a store was
// in the folder, before SQLite creates a new database. SQLite itself refuses files that
// are not databases.
//
// Nothing in this process may open the database or the index of its log except
// SQLite: closing such a descriptor releases the locks that SQLite holds on the
// file (https://sqlite.org/howtocorrupt.html, section 2.2), and then another
// process can remove a log that is in use.
func (db *DB) checkFile() error {
	path, fault := db.cfg.Path, "empty"
	for _, log := range []string{path + "-wal", path + "-shm"} {
		if st, err := os.Stat(log); err == nil && !st.Mode().IsRegular() {
			return fmt.Errorf("%w: %q is %s, not a file", ErrDamaged, log, kindOf(st.Mode()))
		}
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		fault = "missing"
	case err != nil:
		return fmt.Errorf("open store: %w", err)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%w: %q is %s, not a file", ErrDamaged, path, kindOf(st.Mode()))
	case st.Size() > 0:
		return nil
	}
	if st, err := os.Stat(path + "-wal"); err == nil && st.Size() > 0 {
		return fmt.Errorf("%w: %q is %s although its log %q exists", ErrDamaged, path, fault, path+"-wal")
	}
	used, err := db.turn.used()
	if err == nil && used {
		err = fmt.Errorf("%w: %q is %s although a store was here", ErrDamaged, path, fault)
	}
	return err
}

// kindOf names what is not a regular file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Checkpoint moves pages from the log into the database file, on a connection of its
// own so that writers continue meanwhile. It does nothing while the log is short, and on
// PostgreSQL. It may run concurrently with everything except itself.
//
// While processes write all the time, a checkpoint does not reach the end of the log,
// and the log would grow until a writer has to move all of it during a commit. So the
// last few pages of a long log are moved while the writers wait for their turn.
func (db *DB) Checkpoint(ctx context.Context) error {
	db.upkeep.Lock()
	defer db.upkeep.Unlock()
	if db.Name != sqliteName || db.Removed() {
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

// checkpoint returns the number of pages in the log, and how many of them are also in
// the database.
func (db *DB) checkpoint(ctx context.Context, mode string) (log, done int, err error) {
	var busy int
	err = db.write.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &done)
	return log, done, db.classify(err)
}

// IntegrityCheck reads the whole database and returns the faults of its structure. It
// does nothing on PostgreSQL.
func (db *DB) IntegrityCheck(ctx context.Context) ([]string, error) {
	if db.Name != sqliteName {
		return nil, nil
	}
	faults, err := Collect(ctx, db.reading.Load().db.QueryContext, Column[string], "PRAGMA integrity_check(20)")
	return slices.DeleteFunc(faults, func(s string) bool { return s == "ok" }), db.classify(err)
}

func classifySQLite(err error) error {
	if errors.Is(err, ErrRemoved) {
		return err
	}
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	if se.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // no room for the log's index
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	kinds := map[int]error{
		sqlite3.SQLITE_BUSY: ErrBusy, sqlite3.SQLITE_LOCKED: ErrBusy,
		sqlite3.SQLITE_CORRUPT: ErrDamaged, sqlite3.SQLITE_NOTADB: ErrDamaged,
		sqlite3.SQLITE_FULL: ErrFull, sqlite3.SQLITE_IOERR: ErrIO,
		sqlite3.SQLITE_READONLY: ErrReadOnly, sqlite3.SQLITE_CANTOPEN: ErrReadOnly, sqlite3.SQLITE_PERM: ErrReadOnly,
	}
	return ofKind(kinds[se.Code()&0xff], err)
}
