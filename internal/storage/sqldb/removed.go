package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// When another program removes or replaces the files of an open SQLite database, the connections
// that are open keep the old files, which have no name any more. They have everything that was
// committed. A new connection must not be opened then: it would create an empty database, or read a
// database without its log.

// ErrRemoved is returned when the files of the database were removed or replaced since it was opened.
var ErrRemoved = errors.New("the files of the store were removed or replaced")

// openedFile is a file of the open database, or of its locks.
type openedFile struct {
	path string
	info fs.FileInfo
}

// rememberFiles notes which files are open, after the first read has opened all of them.
func (db *DB) rememberFiles() error {
	if db.Name != sqliteName {
		return nil
	}
	var files []openedFile
	path, err := filepath.EvalSymlinks(db.cfg.Path) // SQLite names the other files after the target
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRemoved, err)
	}
	for _, name := range []string{db.cfg.Path, path + "-wal", path + "-shm", db.turn.main.Name(), db.turn.next.Name()} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRemoved, err)
		}
		files = append(files, openedFile{name, info})
	}
	db.files.Store(&files)
	return nil
}

// Removed reports whether the files of the database were removed or replaced since it was opened. It
// asks the file system for each of them.
func (db *DB) Removed() bool {
	files := db.files.Load()
	if files == nil {
		return false
	}
	for _, f := range *files {
		if now, err := os.Stat(f.path); err != nil || !os.SameFile(f.info, now) {
			return true
		}
	}
	return false
}

// Files returns the database file and its log as they were opened. SQLite only.
func (db *DB) Files() (database, log fs.FileInfo) {
	files := *db.files.Load()
	return files[0].info, files[1].info
}

// Refuse makes reads fail with ErrRemoved from now on.
func (db *DB) Refuse() { db.refused.Store(true) }

// guardedConnector opens connections only while the files are in their place.
type guardedConnector struct {
	db     *DB
	dsn    string
	driver driver.Driver
}

// Connect opens a connection, or returns ErrRemoved.
func (c *guardedConnector) Connect(context.Context) (driver.Conn, error) {
	if c.db.Removed() {
		return nil, ErrRemoved
	}
	conn, err := c.driver.Open(c.dsn)
	if err == nil && c.db.Removed() {
		return nil, errors.Join(ErrRemoved, conn.Close())
	}
	return conn, err
}

// Driver returns the driver.
func (c *guardedConnector) Driver() driver.Driver { return c.driver }

// openPool returns a pool of guarded connections.
func (db *DB) openPool(dsn string) (*sql.DB, error) {
	plain, err := sql.Open(sqliteName, dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(&guardedConnector{db: db, dsn: dsn, driver: plain.Driver()}), plain.Close()
}

// WriteCopy writes the committed state of the database as a new database to path, whose folder exists,
// durably. A file of that name is replaced when the copy is complete. With removed, the caller is the
// one that writes, and the copy is made from its connection.
func (db *DB) WriteCopy(ctx context.Context, path string, removed bool) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".pending-")
	if err != nil {
		return err
	}
	name := temp.Name()
	defer func() { _ = os.Remove(name) }() // it was renamed, or is not complete
	if err := temp.Close(); err != nil {
		return err
	}
	if err := db.vacuumInto(ctx, name, removed); err != nil {
		return fmt.Errorf("copy database: %w", db.classify(err))
	}
	failpoint.Hit("sqldb.copy.written")
	if err := syncFileAt(name); err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// vacuumInto writes to an empty file, which SQLite allows.
func (db *DB) vacuumInto(ctx context.Context, name string, removed bool) error {
	const statement = "VACUUM INTO $1"
	if removed {
		_, err := db.conn.ExecContext(ctx, statement, name)
		return err
	}
	db.upkeep.Lock()
	defer db.upkeep.Unlock()
	_, err := db.write.ExecContext(ctx, statement, name)
	return err
}

func syncFileAt(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Reopen opens the database that is now in the place of the removed one. The caller is the one that
// writes. While do runs before that, no process that has the removed files open can write; do puts the
// new database there.
func (db *DB) Reopen(ctx context.Context, do func() error) error {
	if _, err := db.turn.enter(ctx, db.cfg.BusyTimeout); err != nil {
		return err
	}
	err := do()
	db.turn.leave()
	if err != nil {
		return err
	}
	failpoint.Hit("sqldb.reopen")
	cfg := db.cfg
	cfg.Creating = nil
	fresh, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	return db.exchange(fresh)
}

// exchange takes the connections of a database that was opened anew and closes the own ones. SQLite
// does not remove the log of the new database when it closes connections to a file that is not in its
// place any more (https://sqlite.org/src: sqlite3PagerClose).
func (db *DB) exchange(fresh *DB) error {
	db.upkeep.Lock()
	defer db.upkeep.Unlock()
	fresh.warming.Wait()
	old := &DB{stmts: db.stmts, conn: db.conn, write: db.write, turn: db.turn, pause: db.pause}
	old.reading.Store(db.reading.Swap(fresh.reading.Load()))
	db.stmts, db.conn, db.write, db.turn, db.pause = fresh.stmts, fresh.conn, fresh.write, fresh.turn, fresh.pause
	db.files.Store(fresh.files.Load())
	return old.Close()
}
