package sqldb

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The log restarts while a process writes all the time: no commit has to move a long log.
func TestCheckpointDuringWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perdure.db")
	db, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stop, ended := make(chan struct{}), make(chan error, 1)
	written := make(chan struct{}, 1)
	go func() { ended <- writeAlways(context.WithoutCancel(t.Context()), db, stop, written) }()
	wait := func() {
		select {
		case <-written:
		case err := <-ended:
			t.Fatalf("the writer ended: %v", err)
		}
	}
	for round := range 5 {
		for log := 0; log < restartFrom; {
			wait()
			if log, _, err = db.checkpoint(t.Context(), "NOOP"); err != nil {
				t.Fatal(err)
			}
		}
		before := salt(t, path)
		if err := db.Checkpoint(t.Context()); err != nil {
			t.Error(err)
		}
		wait() // this write can have begun before
		wait()
		if salt(t, path) == before {
			t.Errorf("round %d: the log was not begun anew", round)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// salt returns the salt of the log, which SQLite changes when it begins the log anew
// (https://www.sqlite.org/fileformat2.html#walformat).
func salt(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header := make([]byte, 24)
	if _, err := io.ReadFull(f, header); err != nil {
		t.Fatal(err)
	}
	return string(header[16:])
}

func writeAlways(ctx context.Context, db *DB, stop, written chan struct{}) error {
	text := strings.Repeat("x", 20_000)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		tx, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO payload (tree, hash, text) VALUES (1, $1, $2)`, i, text)
		if err := errors.Join(err, tx.Commit(ctx)); err != nil {
			return err
		}
		select {
		case written <- struct{}{}:
		default:
		}
	}
}
