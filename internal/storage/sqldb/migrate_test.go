package sqldb

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// change runs a statement on the database file of a store that is closed.
func change(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open(sqliteName, path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statement)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, statement string
		want            error
	}{
		{"newer reader", "UPDATE migration SET min_reader = 99", ErrTooNew},
		{"newer writer", "INSERT INTO migration VALUES (99, 'later', '', 0, 1, 99)", ErrTooNew},
		{"lost table of migrations", "DROP TABLE migration", ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "perdure.db")
			db, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			change(t, path, c.statement)
			if _, err := Open(t.Context(), Config{Path: path}); !errors.Is(err, c.want) {
				t.Errorf("Open returned %v, want %v", err, c.want)
			}
		})
	}
}

// TestOlderWritersAreRefused: a program that does not log the digests of all rows, or that does
// not continue the chain of events, cannot open a store of this version.
func TestOlderWritersAreRefused(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "perdure.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for known, want := range map[int]error{schemaChain - 1: ErrTooNew, schemaDigests - 1: ErrTooNew, schemaVersion: nil} {
		err := Each(t.Context(), db.Query, func(scan Scan) error {
			var number, needed int
			if err := scan(&number, &needed); err != nil {
				return err
			}
			return tooNew(number, needed, known)
		}, sqlMigrations)
		if !errors.Is(err, want) {
			t.Errorf("a program that knows schema %d: %v, want %v", known, err, want)
		}
	}
}

// TestOpenTakesNewerThatMayBeUsed: a newer migration may allow older programs.
func TestOpenTakesNewerThatMayBeUsed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perdure.db")
	for range 2 {
		db, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		change(t, path, "INSERT OR IGNORE INTO migration VALUES (99, 'later', '', 0, 1, 1)")
	}
}

// TestOpenLeavesForeignDatabasesAlone and does not make tables in them.
func TestOpenLeavesForeignDatabasesAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perdure.db")
	change(t, path, "CREATE TABLE letters (text TEXT)")
	if _, err := Open(t.Context(), Config{Path: path}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Open returned %v, want that it is not a store", err)
	}
	change(t, path, "DROP TABLE letters") // the only one
	change(t, path, "CREATE TABLE migration (x)")
}

// TestOpenMissesTables opens a store whose database was replaced by an empty one.
func TestOpenMissesTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "perdure.db")
	db, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	change(t, path, "CREATE TABLE t (x)")
	change(t, path, "DROP TABLE t")
	if _, err := Open(t.Context(), Config{Path: path}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Open returned %v, want that the store is damaged", err)
	}
}
