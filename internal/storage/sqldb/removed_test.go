package sqldb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/storage/userdir/copies"
)

// TestReopenAfterRemoval: whatever of an open database is removed, everything committed by the
// processes that had it open is in the copy and in the database that is put back; other connections
// to the removed files neither write nor open new ones.
func TestReopenAfterRemoval(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"folder", "database", "log", "index", "log and index", "locks", "other database"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			dir, copied := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "copy.db")
			path := filepath.Join(dir, "perdure.db")
			open := func() *DB {
				db, err := Open(ctx, Config{Path: path, LockDir: filepath.Join(dir, "sessions")})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				return db
			}
			if err := os.MkdirAll(filepath.Join(dir, "sessions"), 0o700); err != nil {
				t.Fatal(err)
			}
			db, other := open(), open()
			addOne(t, db)
			addOne(t, other)
			if db.Removed() || other.Removed() {
				t.Fatal("the files are in their place")
			}
			removeFiles(t, dir, name)
			if !db.Removed() {
				t.Fatal("not noticed")
			}
			if _, err := other.Begin(ctx); !errors.Is(err, ErrRemoved) {
				t.Errorf("a write of another process: %v", err)
			}
			err := db.Reopen(ctx, func() error {
				err := errors.Join(db.WriteCopy(ctx, copied, true), os.MkdirAll(filepath.Join(dir, "sessions"), 0o700))
				if err != nil {
					return err
				}
				_, _ = os.Remove(path+"-wal"), os.Remove(path+"-shm")
				return copies.CopyFile(copied, path)
			})
			if err != nil {
				t.Fatal(err)
			}
			addOne(t, db)
			if n := txCount(t, db); n != 3 {
				t.Errorf("%d transactions after putting it back, want 3", n)
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
			if db.Removed() {
				t.Fatal("closing the removed files removed the new ones")
			}
			addOne(t, db)
			if again := open(); txCount(t, again) != 4 {
				t.Errorf("another process reads %d transactions, want 4", txCount(t, again))
			}
			if faults, err := db.IntegrityCheck(ctx); err != nil || len(faults) > 0 {
				t.Errorf("%v, %v", faults, err)
			}
		})
	}
}

// removeFiles removes what the name of a case says.
func removeFiles(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, "perdure.db")
	remove := map[string][]string{"folder": {dir}, "database": {path}, "log": {path + "-wal"}, "index": {path + "-shm"},
		"log and index": {path + "-wal", path + "-shm"}, "locks": {filepath.Join(dir, "sessions")}, "other database": {dir}}
	for _, file := range remove[name] {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
	if name == "other database" {
		err := errors.Join(os.MkdirAll(filepath.Join(dir, "sessions"), 0o700), os.WriteFile(path, nil, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadsDuringReopen: readers get answers while the database is put back.
func TestReadsDuringReopen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "perdure.db"), filepath.Join(t.TempDir(), "copy.db")
	db, err := Open(ctx, Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	addOne(t, db)
	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for range readConns {
		_ = txCount(t, db)
		readers.Go(func() {
			for reading.Err() == nil {
				var n int
				if err := db.QueryRow(ctx, "SELECT tx FROM seq", nil, &n); err != nil && !errors.Is(err, ErrRemoved) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		err := db.Reopen(ctx, func() error {
			err := db.WriteCopy(ctx, copied, true)
			for _, suffix := range []string{"", "-wal", "-shm"} { // a log must not be applied to another database
				err = errors.Join(err, os.Remove(path+suffix))
			}
			return errors.Join(err, copies.CopyFile(copied, path))
		})
		if err != nil {
			t.Error(err)
			break
		}
		addOne(t, db)
	}
	stop()
	readers.Wait()
	if n := txCount(t, db); n != 21 {
		t.Errorf("%d transactions, want 21", n)
	}
}

func addOne(t *testing.T, db *DB) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "UPDATE seq SET tx = tx + 1")
		err = errors.Join(err, tx.Commit(t.Context()))
	}
	if err != nil {
		t.Fatal(fmt.Errorf("write: %w", err))
	}
}

func txCount(t *testing.T, db *DB) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), "SELECT tx FROM seq", nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
