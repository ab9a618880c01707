package perdure_test

import (
	"math/rand/v2"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestStateModel does random operations on variables through two Stores on one
// database, and compares each outcome, and now and then all values, with a map.
// PERDURE_STATE_OPS sets how many, PERDURE_STATE_SEED repeats a run.
func TestStateModel(t *testing.T) {
	t.Parallel()
	ops := envNumber(t, "PERDURE_STATE_OPS", effort.Of(1000, 20_000))
	seed := envNumber(t, "PERDURE_STATE_SEED", int(rand.Uint32()))
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		t.Logf("PERDURE_STATE_SEED=%d", seed)
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		stores := []*perdure.Store{testdb.Open(t, cfg), testdb.Open(t, cfg)}
		refs, family, err := statetest.Refs(t.Context(), stores[0])
		if err != nil {
			t.Fatal(err)
		}
		m := statetest.New(refs, family)
		m.Undo = true
		for i := range ops {
			s := stores[r.IntN(2)]
			op := m.Next(r)
			if got, want := op.Do(t.Context(), s), op.Want(); got != want {
				t.Fatalf("operation %d, %s: %s, want %s", i, op.Text, got, want)
			}
			if i%200 == 0 || i == ops-1 {
				if err := m.Differs(t.Context(), s); err != nil {
					t.Fatalf("after operation %d, %s: %v", i, op.Text, err)
				}
			}
		}
		if err := statetest.Sound(t.Context(), stores[0]); err != nil {
			t.Error(err)
		}
	})
}
