package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// The log restarts while a process writes all the time: no commit has to move a long log.
func TestCheckpointDuringWrites(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "perdure.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stop, ended := make(chan struct{}), make(chan error, 1)
	written := make(chan struct{}, 1) // since the last look, once the log is long
	go func() { ended <- writeAlways(context.WithoutCancel(t.Context()), db, stop, written) }()
	restarted, last := false, 0
	for range 200 {
		select {
		case <-written: // else a checkpoint has nothing to do
		case err := <-ended:
			t.Fatalf("the writer ended: %v", err)
		}
		if err := db.Checkpoint(t.Context()); err != nil {
			t.Error(err)
		}
		log, _, err := db.checkpoint(t.Context(), "NOOP")
		if err != nil {
			t.Fatal(err)
		}
		// Only a new beginning makes it shorter; the writer may have filled it again by now.
		if restarted = log < restartFrom || log < last; restarted {
			break
		}
		last = log
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !restarted {
		t.Error("the log was never begun anew")
	}
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
		if i < 1000 { // some six pages each
			continue
		}
		select {
		case written <- struct{}{}:
		default:
		}
	}
}
