package sqldb

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// schemaVersion is the schema of this program. Each migration records the oldest schema
// that a program has to know to read and to write the store.
const schemaVersion = 19

// schemaBriefs is the first schema with briefs: a program that does not know them would
// change an iteration and not its brief.
const schemaBriefs = 8

// schemaChain is the first schema with the hash chain of events, which a program that does
// not know it would not continue.
const schemaChain = 11

// schemaDigests is the first schema whose programs log the digests of all rows that
// verify-log compares. Rows of earlier programs would have none, and loops would refuse
// their control requests.
const schemaDigests = 13

// schemaReopen is the first schema with trees whose configuration changes, which a program
// that does not know it would execute with the old one.
const schemaReopen = 14

// schemaTreeState is the first schema whose trees have a state from the beginning, with its
// digests in the event of the tree: verify-log of an earlier program would not find them.
const schemaTreeState = 15

// schemaPacked is the first schema with compressed values, which a program that does not know
// them would read as text.
const schemaPacked = 18

//go:embed migrations/*.sql
var migrationFiles embed.FS

type migration struct {
	number int
	name   string
	hash   string
	text   string
}

const (
	sqlMigrationTable = `CREATE TABLE IF NOT EXISTS migration (
		number INTEGER PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL, applied_at BIGINT NOT NULL,
		min_reader INTEGER NOT NULL, min_writer INTEGER NOT NULL)`
	sqlMigrations = `SELECT number, CASE WHEN min_reader > min_writer THEN min_reader ELSE min_writer END
		FROM migration ORDER BY number`
	sqlMigrated = `INSERT INTO migration (number, name, hash, applied_at, min_reader, min_writer)
		VALUES ($1, $2, $3, $4, $5, $6)`
)

// migrate applies the missing migrations: to a new store in one transaction, else each in a
// transaction of its own. Usually none is missing, and migrate reads once.
func (db *DB) migrate(ctx context.Context) error {
	done, err := db.lastMigration(ctx, db.conn.QueryContext)
	if err == nil && done == schemaVersion {
		return nil
	}
	if errors.Is(err, ErrTooNew) || errors.Is(err, ErrDamaged) {
		return err
	}
	all, err := db.loadMigrations()
	if err != nil {
		return err
	}
	for range all {
		more, err := db.applyNext(ctx, all)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// lastMigration returns the number of the last migration of the store that this program
// knows, and ErrTooNew if the store needs a newer program. An error of the query itself
// means that the table does not exist yet.
func (db *DB) lastMigration(ctx context.Context, query QueryFunc) (int, error) {
	last := 0
	err := Each(ctx, query, func(scan Scan) error {
		var needed int
		if err := scan(&last, &needed); err != nil {
			return err
		}
		return tooNew(last, needed, schemaVersion)
	}, sqlMigrations)
	return min(last, schemaVersion), db.classify(err)
}

// tooNew returns ErrTooNew if a migration needs a program that knows a newer schema.
func tooNew(number, needed, known int) error {
	if needed <= known {
		return nil
	}
	return fmt.Errorf("%w: its schema %d needs a program that knows schema %d, this one knows %d", ErrTooNew, number,
		needed, known)
}

func (db *DB) applyNext(ctx context.Context, all []migration) (more bool, err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback(ctx))
		}
	}()
	if err = db.checkNoTables(ctx); err != nil {
		return false, err
	}
	// Not kept as prepared statements: the schema changes under them.
	if _, err = db.conn.ExecContext(ctx, sqlMigrationTable); err != nil {
		return false, db.classify(err)
	}
	done, err := db.lastMigration(ctx, db.conn.QueryContext)
	if err != nil {
		return false, err
	}
	next := min(done+1, len(all))
	if done == 0 { // there are no rows to change: in one transaction, all take as long as the first
		next = len(all)
	}
	for _, m := range all[done:next] {
		if err = db.applyOne(ctx, tx, m); err != nil {
			return false, fmt.Errorf("apply migration %q: %w", m.name, err)
		}
	}
	return next < len(all), tx.Commit(ctx)
}

const sqlTables = `SELECT COUNT(*), COUNT(*) FILTER (WHERE name = 'migration') FROM sqlite_master WHERE type = 'table'`

// checkNoTables refuses to create the tables of a store in a database that has other
// tables, or that was a store and has lost its tables.
func (db *DB) checkNoTables(ctx context.Context) error {
	if db.Name != sqliteName {
		return nil // a schema on a server may hold other tables
	}
	var all, ours int
	if err := db.conn.QueryRowContext(ctx, sqlTables).Scan(&all, &ours); err != nil {
		return db.classify(err)
	}
	if ours > 0 {
		return nil
	}
	if all > 0 {
		return fmt.Errorf("%w: %q has tables, but not those of a store", ErrDamaged, db.cfg.Path)
	}
	used, err := db.turn.used()
	if err == nil && used {
		err = fmt.Errorf("%w: %q has lost its tables", ErrDamaged, db.cfg.Path)
	}
	return err
}

func (db *DB) applyOne(ctx context.Context, tx *Tx, m migration) error {
	for _, stmt := range strings.Split(m.text, ";\n") {
		if strings.TrimSpace(stmt) == "" {
			continue
		}
		if _, err := db.conn.ExecContext(ctx, stmt); err != nil {
			return db.classify(err)
		}
	}
	minWriter := 1
	if m.number >= schemaBriefs {
		minWriter = schemaBriefs
	}
	if m.number >= schemaChain {
		minWriter = schemaChain
	}
	if m.number >= schemaDigests {
		minWriter = schemaDigests
	}
	if m.number >= schemaReopen {
		minWriter = schemaReopen
	}
	if m.number >= schemaTreeState {
		minWriter = schemaTreeState
	}
	if m.number >= schemaPacked {
		minWriter = schemaPacked
	}
	_, err := db.conn.ExecContext(ctx, sqlMigrated, m.number, m.name, m.hash, tx.Now, 1, minWriter)
	return db.classify(err)
}

func (db *DB) loadMigrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, name := range names {
		base := strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql")
		number, err := strconv.Atoi(base[:4])
		if err != nil || number != len(all)+1 {
			return nil, fmt.Errorf("migration %q is out of order", name)
		}
		raw, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(raw)
		all = append(all, migration{number: number, name: base, hash: hex.EncodeToString(sum[:8]),
			text: db.types.Replace(string(raw)) + "\n"})
	}
	if len(all) != schemaVersion {
		return nil, fmt.Errorf("there are %d migrations for the schema %d", len(all), schemaVersion)
	}
	return all, nil
}
