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
	"github.com/perdure/perdure/internal/testing/effort"
	looprecord "github.com/perdure/perdure/loop/record"
)

// loopCheck is a completion command: each file in tests is a test that passes if it
// contains "pass".
const loopCheck = `n=0; bad=0
for f in tests/*; do n=$((n+1)); t=${f##*/}; read -r said < $f
case "$said" in pass*) echo "ok $n - $t";; *) echo "not ok $n - $t"; bad=1;; esac; done
echo "1..$n"; exit $bad
`

// loopAgent adds a line to a log in each turn. In the second it deletes a test,
// unless it learned that this was undone, and in the third it is done.
const loopAgent = `prompt=$(cat)
echo line >> log
case $(wc -l < log) in
*2) case "$prompt" in *"reverted"*) ;; *) rm tests/a ;; esac ;;
*3) echo pass > tests/b ;;
esac
echo "I added a line"
`

const loopRun = `perdure loop run "Make the tests pass" --until "sh check.sh" --agent "exec:sh agent.sh" --unattended`

func newLoopPlace(t *testing.T) *workplace {
	t.Helper()
	w := newWorkplace(t)
	w.write("check.sh", loopCheck)
	w.write("agent.sh", loopAgent)
	w.write("tests/a", "pass\n")
	w.write("tests/b", "fail\n")
	return w
}

// completedLoop is the one loop of the store, which was completed with the iteration
// of this number, and its iterations.
func (w *workplace) completedLoop(number int) (*perdure.Store, looprecord.Loop, []looprecord.Iteration) {
	t := w.t
	t.Helper()
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: filepath.Join(w.dir, ".perdure"),
		Heads: headsFolder()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	intactLog(t, store)
	records := looprecord.New(store)
	loops, err := records.Loops(t.Context(), 10)
	if err != nil || len(loops) != 1 || loops[0].Status != looprecord.Completed || loops[0].Iteration != number {
		t.Fatalf("loops: %+v, %v", loops, err)
	}
	list, err := records.Iterations(t.Context(), loops[0].Tree, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	return store, loops[0], list
}

// loopEnds checks the result of a loop: each number is used once, the iteration that
// deleted a test is reverted, and the files have no changes of interrupted turns.
func (w *workplace) loopEnds() {
	t := w.t
	t.Helper()
	if got := strings.Count(w.read("log"), "line\n"); got != 3 {
		t.Errorf("the agent's log has %d lines, want 3", got)
	}
	if w.read("tests/a") != "pass\n" || w.read("tests/b") != "pass\n" {
		t.Errorf("tests/a holds %q, tests/b %q", w.read("tests/a"), w.read("tests/b"))
	}
	store, l, list := w.completedLoop(4)
	var statuses []string
	for i, it := range list {
		statuses = append(statuses, string(it.Status))
		if it.Number != i+1 || it.EndedAt == nil {
			t.Errorf("iteration %d at place %d ended at %v", it.Number, i, it.EndedAt)
		}
	}
	if got := strings.Join(statuses, " "); got != "kept reverted kept kept" {
		t.Errorf("iterations: %s", got)
	}
	tree, err := store.Tree(t.Context(), l.Tree)
	if err != nil || tree.State != perdure.Completed {
		t.Errorf("the tree is %s, %v", tree.State, err)
	}
	if problems, err := store.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store: %v, %v", problems, err)
	}
}

// After a kill in any step of the machine, and where a step restores files or hands work
// over, a resumed loop continues and has the same result. In the long run it is killed at
// each passage of each failpoint, for example at each commit, else at one passage of each
// step and of its changes of files.
func TestLoopKilledInEachStep(t *testing.T) {
	t.Parallel()
	list := newLoopPlace(t)
	passed := filepath.Join(t.TempDir(), "failpoints")
	list.sh(loopRun, "PERDURE_FAILPOINT_LIST="+passed)
	list.loopEnds()
	points := passages(t, passed)
	wanted := []string{"sealed.copied", "sealed.checked", "ledger.after_write", "ledger.after_file",
		"workspace.restore.before_verify", "workspace.pack.before_rename"}
	for _, step := range []string{"begin", "baseline", "next", "prepare", "act", "measure", "judge", "decide",
		"diagnose", "adapt", "complete", "seal", "select", "finish"} {
		wanted = append(wanted, "loop."+step, "loop."+step+".done")
	}
	for _, want := range wanted {
		if points[want] == 0 {
			t.Errorf("the loop does not pass %s", want)
		}
	}
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 9))
	for _, point := range slices.Sorted(maps.Keys(points)) {
		if !effort.Long() && !changesLoop(point) {
			continue
		}
		for _, nth := range passagesToKill(rng, points[point]) {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				w := newLoopPlace(t)
				w.loopKilled(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, nth))
			})
		}
	}
}

// changesLoop reports whether a failpoint is a step of a loop, or a change of files in a
// step.
func changesLoop(point string) bool {
	for _, prefix := range []string{"loop.", "ledger.", "sealed.", "workspace.restore.", "workspace.sweep."} {
		if strings.HasPrefix(point, prefix) {
			return true
		}
	}
	return false
}

// loopKilled runs a loop that is killed, and resumes it.
func (w *workplace) loopKilled(kill string) {
	t := w.t
	t.Helper()
	const bySignal = 128 + 9 // as a shell says it
	temp := t.TempDir()
	if out, errs, status := w.try(loopRun, kill, "TMPDIR="+temp); status != -1 && status != bySignal {
		t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
	}
	out, errs, status := w.try("perdure loop resume", "TMPDIR="+temp)
	if left, err := filepath.Glob(filepath.Join(temp, "perdure-sealed-*")); err != nil || len(left) > 0 {
		t.Errorf("clean copies are left: %v, %v", left, err)
	}
	switch {
	case status == 0:
	case status == 4 && strings.Contains(errs, "there is no loop"): // it died before there was one
		w.sh(loopRun)
	case status == 5 && strings.Contains(errs, "has ended: completed"): // or when it had ended
	default:
		t.Fatalf("resume ended with %d: %s%s", status, out, errs)
	}
	w.loopEnds()
}

// passages counts how often each failpoint was passed.
func passages(t *testing.T, file string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for _, point := range strings.Fields((&workplace{t: t, dir: filepath.Dir(file)}).read(filepath.Base(file))) {
		count[point]++
	}
	return count
}
