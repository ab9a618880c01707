package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	looprecord "github.com/perdure/perdure/loop/record"
)

const importedLoop = `{"version":"2.0.0","loop_id":"ralph-fix-tests-a1b2c3d4","status":"paused","iteration":7,"task":"Make the tests pass",
"iteration_history":[{"iteration":1,"quality_score":60},{"iteration":2,"quality_score":85},{"iteration":7,"quality_score":70}]}`

const loopImport = `perdure loop import state.json --until "sh check.sh" --agent "exec:sh agent.sh"`

// cameIn reports whether the loop was imported: completely, or not at all.
func (w *workplace) cameIn() bool {
	t := w.t
	t.Helper()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if problems, err := store.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store: %v, %v", problems, err)
	}
	trees, err := store.Trees(t.Context(), perdure.TreeFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(trees) == 0 {
		return false
	}
	records := looprecord.New(store)
	l, err := records.Loop(t.Context(), trees[0].ID)
	if err != nil || len(trees) > 1 || l.Iteration != 7 || l.Status != looprecord.Paused {
		t.Fatalf("%d trees, the loop %+v, %v", len(trees), l, err)
	}
	list, err := records.Iterations(t.Context(), trees[0].ID, 0, 10)
	if err != nil || len(list) != 3 {
		t.Errorf("%d iterations, %v", len(list), err)
	}
	if doc, err := records.Document(t.Context(), trees[0].ID); err != nil ||
		!strings.Contains(string(doc), "ralph-fix-tests") {
		t.Errorf("the document is %s, %v", doc, err)
	}
	return true
}

// After a kill at any point, a loop is imported completely or not at all: then it can be
// imported again, else it can be resumed.
func TestLoopImportKilled(t *testing.T) {
	t.Parallel()
	place := func(t *testing.T) *workplace {
		t.Helper()
		w := newLoopPlace(t)
		w.write("state.json", importedLoop)
		w.write("agent.sh", "echo pass > tests/b\n")
		return w
	}
	passed := filepath.Join(t.TempDir(), "failpoints")
	list := place(t)
	list.sh(loopImport, "PERDURE_FAILPOINT_LIST="+passed)
	if !list.cameIn() {
		t.Fatal("the loop is not there")
	}
	points := passages(t, passed)
	for _, want := range []string{"loop.import.document", "loop.adopted", "tx.before_commit"} {
		if points[want] == 0 {
			t.Errorf("the import does not pass %s", want)
		}
	}
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 10))
	for _, point := range slices.Sorted(maps.Keys(points)) {
		for _, nth := range passagesToKill(rng, points[point]) {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				w := place(t)
				const bySignal = 128 + 9 // as a shell says it
				if out, errs, status := w.try(loopImport, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, nth)); status != -1 &&
					status != bySignal {
					t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
				}
				if !w.cameIn() {
					w.sh(loopImport)
				}
				w.sh("perdure loop resume --max-iterations 12")
				if got := w.read("tests/b"); got != "pass\n" {
					t.Errorf("the loop left %q", got)
				}
			})
		}
	}
}
