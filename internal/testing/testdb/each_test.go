package testdb_test

import (
	"path"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func TestEach(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		if got, want := s.Database(), path.Base(t.Name()); got != want {
			t.Errorf("subtest %s has a store on %s", want, got)
		}
	})
}

// Several openings of one place see one store.
func TestEachConfig(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		first, second := testdb.Open(t, cfg), testdb.Open(t, cfg)
		if first.Database() != second.Database() || first.Dir() != second.Dir() {
			t.Error("two openings of one configuration differ")
		}
	})
}
