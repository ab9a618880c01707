package testdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

// Each runs a test on a new store of every kind, as the parallel subtests "sqlite" and
// "postgres". The store is closed when its subtest ends.
func Each(t *testing.T, test func(t *testing.T, s *perdure.Store)) {
	t.Helper()
	EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		test(t, Open(t, cfg))
	})
}

// EachConfig is [Each] for tests that open the store themselves: several times, from several
// processes, or with other settings. The configuration is that of a new store, with leases
// long enough for slow machines.
func EachConfig(t *testing.T, test func(t *testing.T, cfg perdure.Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, perdure.Config{Dir: t.TempDir()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, perdure.Config{Dir: t.TempDir(), DSN: PostgresStore(t), LeaseTTL: time.Hour})
	})
}

// fresh is the file of an empty SQLite store. Creating it again for each test would take most
// of the time of most tests.
var fresh = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "perdure-fresh-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := perdure.Open(context.Background(), perdure.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "perdure.db"))
})

// Seed writes an empty store to an empty folder, for tests that open the store themselves.
func Seed(t testing.TB, dir string) {
	t.Helper()
	file, err := fresh()
	if err != nil {
		t.Fatalf("create an empty store: %v", err)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return
	}
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "perdure.db"), file, 0o600)
	}
	if err != nil {
		t.Fatalf("write an empty store: %v", err)
	}
}

// Open opens a store, and closes it when the test ends.
func Open(t testing.TB, cfg perdure.Config) *perdure.Store {
	t.Helper()
	if cfg.DSN == "" && cfg.Dir != "" {
		Seed(t, cfg.Dir)
	}
	s, err := perdure.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}
