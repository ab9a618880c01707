package testdb

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
)

// Each runs a test on a fresh store of every kind, as the parallel subtests
// "sqlite" and "postgres". The store is closed when its subtest ends.
func Each(t *testing.T, test func(t *testing.T, s *perdure.Store)) {
	t.Helper()
	EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		test(t, Open(t, cfg))
	})
}

// EachConfig is [Each] for tests that open the store themselves: several times,
// from several processes, or with other settings. The configuration names a
// fresh place; leases last long enough for the slowest machine.
func EachConfig(t *testing.T, test func(t *testing.T, cfg perdure.Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, perdure.Config{Dir: t.TempDir()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, perdure.Config{Dir: t.TempDir(), DSN: Postgres(t), LeaseTTL: time.Hour})
	})
}

// Open opens a store, and closes it when the test ends.
func Open(t testing.TB, cfg perdure.Config) *perdure.Store {
	t.Helper()
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
