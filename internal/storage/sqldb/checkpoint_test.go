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
	long := make(chan struct{}) // the log is long from then on
	go func() { ended <- writeAlways(context.WithoutCancel(t.Context()), db, stop, long) }()
	<-long
	restarted := false
	for range 200 {
		if err := db.Checkpoint(t.Context()); err != nil {
			t.Error(err)
		}
		log, _, err := db.checkpoint(t.Context(), "NOOP")
		if err != nil {
			t.Fatal(err)
		}
		if restarted = log < restartFrom; restarted {
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !restarted {
		t.Error("the log was never begun anew")
	}
}

func writeAlways(ctx context.Context, db *DB, stop, long chan struct{}) error {
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
		if i == 1000 { // some six pages each
			close(long)
		}
	}
}
