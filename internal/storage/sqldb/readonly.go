package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// openReadOnly opens an SQLite file of which this process can write neither the folder nor its files.
//
// SQLite reads a log in such a folder if its index exists, also while another process writes. Without
// the index it reads the log if no other connection can have one, in this process's memory. Without
// a log nothing but the file is read.
func (db *DB) openReadOnly(ctx context.Context) error {
	db.useSQLite()
	if _, err := os.Stat(db.cfg.Path); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	how := ""
	if _, err := os.Stat(db.cfg.Path + "-shm"); err != nil {
		how = "&immutable=1"
		if log, err := os.Stat(db.cfg.Path + "-wal"); err == nil && log.Size() > 0 {
			how = "&vfs=unix-none&_pragma=locking_mode(exclusive)"
		}
	}
	pool, err := sql.Open(sqliteName, db.sqliteFile()+"?mode=ro&_pragma=query_only(1)&_pragma=temp_store(memory)"+how)
	if err != nil {
		return err
	}
	db.setReading(pool)
	done, err := db.lastMigration(ctx, pool.QueryContext)
	switch {
	case err != nil:
		return err
	case done < schemaVersion:
		return fmt.Errorf("%w: its schema %d has to be brought to %d; copy the folder to a place where it can be written",
			ErrReadOnly, done, schemaVersion)
	}
	return nil
}
