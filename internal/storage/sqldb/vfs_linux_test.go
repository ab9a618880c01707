package sqldb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Log pages of a rolled back transaction are not written later over those of another
// connection.
func TestRollbackLeavesNoWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perdure.db")
	a, b := openSpilling(t, path), openSpilling(t, path)
	rows := make(map[string]int)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 300 {
		db, keep := a, rng.IntN(2) == 0
		if rng.IntN(2) == 0 {
			db = b
		}
		size := 1 + rng.IntN(60_000)
		if rng.IntN(10) == 0 {
			size = logBuffer * 3 // more than is collected
		}
		hash := fmt.Sprintf("row %d", i)
		if err := spill(t.Context(), db, hash, size, keep); err != nil {
			t.Fatal(err)
		}
		if keep {
			rows[hash] = size
		}
		if rng.IntN(20) == 0 {
			if err := a.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, db := range []*DB{a, b, openSpilling(t, path)} {
		wantRows(t, db, rows)
	}
}

// openSpilling opens with a cache so small that pages are written before the
// transaction ends.
func openSpilling(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.conn.ExecContext(t.Context(), "PRAGMA cache_size = 4"); err != nil {
		t.Fatal(err)
	}
	return db
}

func spill(ctx context.Context, db *DB, hash string, size int, keep bool) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	const parts = 5
	for i := range parts {
		_, err := tx.Exec(ctx, `INSERT INTO payload (tree, hash, text) VALUES ($1, $2, $3)`, i, hash,
			strings.Repeat(hash[len(hash)-1:], size/parts+1))
		if err != nil {
			return errors.Join(err, tx.Rollback(ctx))
		}
	}
	if keep {
		return tx.Commit(ctx)
	}
	return tx.Rollback(ctx)
}

func wantRows(t *testing.T, db *DB, rows map[string]int) {
	t.Helper()
	faults, err := db.IntegrityCheck(t.Context())
	if err != nil || len(faults) > 0 {
		t.Errorf("integrity: %v %v", faults, err)
	}
	var n int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM payload`, nil, &n); err != nil || n != 5*len(rows) {
		t.Errorf("%d rows (%v), want %d", n, err, 5*len(rows))
	}
	for hash, size := range rows {
		var text string
		if err := db.QueryRow(t.Context(), `SELECT text FROM payload WHERE tree = 4 AND hash = $1`, []any{hash},
			&text); err != nil {
			t.Fatalf("%s: %v", hash, err)
		}
		if text != strings.Repeat(hash[len(hash)-1:], size/5+1) {
			t.Errorf("%s: %d bytes are other than those written", hash, len(text))
		}
	}
}

// The VFS may be registered concurrently, when a process opens two stores.
func TestRegisterVFS(t *testing.T) {
	t.Parallel()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			<-start
			if name, err := registerVFS(); err != nil || name != vfsName {
				t.Errorf("%q, %v", name, err)
			}
		})
	}
	close(start)
	wg.Wait()
}
