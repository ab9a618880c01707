package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// unbriefed converts the store to that of an older program, without briefs of
// iterations.
func (w *workplace) unbriefed() {
	t := w.t
	t.Helper()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure"),
		Heads: headsFolder()})
	if err != nil {
		t.Fatal(err)
	}
	err = store.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
		if _, err := tx.Exec(ctx, "UPDATE loop SET briefs = 0"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM brief")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.VerifyLog(t.Context())
	if err = errors.Join(err, store.Close(), os.RemoveAll(r.Heads)); err != nil {
		t.Fatal(err)
	}
	w.forge("UPDATE event SET link = NULL", // it had no chain either
		"UPDATE tree_stat SET events = 0, head = '', unchained = (SELECT event FROM seq)",
		"UPDATE seq SET events = 0, head = '', unchained = event")
}

// After a kill at any point while the briefs of an older loop are created, the next
// reader creates the rest, with the same output as before.
func TestLoopBriefsKilled(t *testing.T) {
	t.Parallel()
	const look = "perdure loop status --persistence && perdure loop status --quality && perdure loop status --regressions"
	place := func(t *testing.T) *workplace {
		t.Helper()
		w := newWorkplace(t)
		w.history(250) // two transactions
		return w
	}
	seen := func(w *workplace) string { // without the name of the loop
		var lines []string
		for line := range strings.Lines(w.sh(look)) {
			if !strings.Contains(line, "history-") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	w := place(t)
	want := seen(w)
	if !strings.Contains(want, "test_failure ×2") {
		t.Fatalf("it shows %s", want)
	}
	w.unbriefed()
	passed := filepath.Join(t.TempDir(), "failpoints")
	w.sh("perdure loop status --persistence", "PERDURE_FAILPOINT_LIST="+passed)
	points := passages(t, passed)
	if points["loop.briefs_filled"] != 2 {
		t.Fatalf("it passes %v", points)
	}
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 10))
	for _, point := range slices.Sorted(maps.Keys(points)) {
		for _, nth := range passagesToKill(rng, points[point]) {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				w := place(t)
				w.unbriefed()
				const bySignal = 128 + 9 // as a shell says it
				if out, errs, status := w.try("perdure loop status --persistence",
					fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, nth)); status != -1 && status != bySignal {
					t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
				}
				w.sh("perdure doctor")
				if got := seen(w); got != want {
					t.Errorf("it shows\n%s, before\n%s", got, want)
				}
				w.sh("perdure doctor")
			})
		}
	}
}
