package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// handoffChange is a command that is killed, with the commands before it.
type handoffChange struct {
	before, kill string
	// done tells from what is shown whether the command counts; nil when
	// nothing is shown.
	done func(c *handoff.Checkpoint) bool
	// after has to succeed at the end; may be empty.
	after    string
	postgres bool
}

func handoffChanges() map[string]handoffChange {
	steps := func(want string) func(c *handoff.Checkpoint) bool {
		return func(c *handoff.Checkpoint) bool { return c != nil && strings.Contains(completed(c), want) }
	}
	const begun = "perdure handoff start T --pending a --pending b --agent x; perdure handoff step one --created " +
		"src/App.tsx --agent x;"
	return map[string]handoffChange{
		"start": {kill: "perdure handoff start T --pending a",
			done: func(c *handoff.Checkpoint) bool { return c != nil }},
		"step": {before: begun, kill: "perdure handoff step two --created src/toggle.tsx", done: steps("two")},
		"step on PostgreSQL": {before: begun, kill: "perdure handoff step two --created src/toggle.tsx", done: steps("two"),
			postgres: true},
		"next story": {before: begun + edited("one", "one by hand") + edited(`"currentStory": null`,
			`"currentStory": "US-2"`),
			kill: "perdure handoff step two", done: steps("two"),
			after: edited(`"currentStory": "US-2"`, `"currentStory": null`) +
				"perdure handoff show --json | grep '\"one by hand\"'"},
		"batch": {before: begun, kill: `printf '{"op":"step","text":"two"}\n{"op":"decide","text":"d"}\n' | perdure ` +
			`handoff --batch -`, done: func(c *handoff.Checkpoint) bool {
			if steps("two")(c) != (len(c.Decisions) == 1) {
				panic("half of a batch is shown")
			}
			return steps("two")(c)
		}},
		"adopt": {before: begun + edited(`"blockers": \[\]`, `"blockers": ["theirs"]`), kill: "perdure handoff step two",
			done: steps("two")},
		"reassign": {before: begun, kill: "perdure handoff reassign --to y",
			done: func(c *handoff.Checkpoint) bool { return c.Metadata.Reason == handoff.ReasonReassignment }},
		"claim": {before: begun, kill: "perdure handoff resume --agent y"},
		"done":  {before: begun, kill: "perdure handoff done", done: func(c *handoff.Checkpoint) bool { return c == nil }},
	}
}

// edited edits the file by hand.
func edited(from, to string) string {
	return "sed 's/" + from + "/" + to + "/' builder-state.json > n && mv n builder-state.json;"
}

// After a kill at any point of any change, the file is the old one or the new one, each
// recorded entry is complete, and the next command updates the file and leaves no
// temporary files.
func TestHandoffKilledAtFailpoints(t *testing.T) {
	t.Parallel()
	chosen := uint64(seed(t))
	for name, c := range handoffChanges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(chosen, uint64(len(name))))
			list := c.workplace(t)
			passed := filepath.Join(list.dir, "failpoints")
			list.sh(c.before)
			list.sh(c.kill, "PERDURE_FAILPOINT_LIST="+passed)
			points := strings.Fields(list.read("failpoints"))
			for _, want := range []string{"tx.before_commit", "tx.after_commit", "ledger.before_write", "ledger.after_write",
				"ledger.after_file",
				"handoff.before_write", "handoff.before_rename", "handoff.after_rename"} {
				if !slices.Contains(points, want) && c.done != nil {
					t.Errorf("%s does not pass %s", name, want)
				}
			}
			times := passages(t, passed)
			for _, point := range slices.Sorted(maps.Keys(times)) {
				for _, nth := range passagesToKill(rng, times[point]) {
					t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
						t.Parallel()
						c.workplace(t).killed(c, point, nth)
					})
				}
			}
		})
	}
}

func (c *handoffChange) workplace(t *testing.T) *workplace {
	t.Helper()
	w := newWorkplace(t)
	if c.postgres {
		w.env = append(w.env, "PERDURE_STORE="+testdb.PostgresStore(t))
	}
	return w
}

// killed makes a change that is killed at the nth passage of a point, and checks the
// result.
func (w *workplace) killed(c handoffChange, point string, n int) {
	t := w.t
	t.Helper()
	w.sh(c.before)
	old := w.inFile()
	const bySignal = 128 + 9 // as a shell says it
	if out, _, status := w.try(c.kill, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)); status != -1 &&
		status != bySignal {
		t.Fatalf("it was not killed, it ended with %d: %s", status, out)
	}
	left := w.inFile()
	before := w.looked()
	if c.done == nil { // a claim changes nothing of the work
		if left != old {
			t.Errorf("the file holds\n%s\nbefore\n%s", left, old)
		}
		w.sh("perdure handoff resume --agent z --take-over")
		return
	}
	counts := c.done(before)
	switch point {
	case "ledger.after_write", "handoff.before_write", "handoff.before_rename", "handoff.after_rename",
		"ledger.after_file":
		if !counts {
			t.Error("what is in the ledger does not count")
		}
	case "ledger.before_write":
		if counts {
			t.Error("what was never recorded counts")
		}
	}
	// The next command.
	if before == nil {
		w.sh("perdure handoff start Next")
	}
	w.sh("perdure handoff step after")
	shown, file := w.shown(), w.inFile()
	if raw, err := shown.Compact(); err != nil || string(raw) != file {
		t.Errorf("%v: the file holds\n%s\nthe ledger gives\n%s", err, file, raw)
	}
	want := []string{"after"}
	if before != nil {
		want = append(strings.Split(completed(before), "; "), "after")
	}
	if got := completed(shown); got != strings.TrimPrefix(strings.Join(want, "; "), "; ") {
		t.Errorf("completed: %s, want %s", got, want)
	}
	if strings.Contains(old, "theirs") && !slices.Contains(shown.Blockers, "theirs") {
		t.Errorf("an edit of the file is lost: %q", shown.Blockers)
	}
	w.sh(c.after)
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// inFile returns the checkpoint in the file; "" if there is none. An incomplete file
// fails the test.
func (w *workplace) inFile() string {
	t := w.t
	t.Helper()
	path := filepath.Join(w.dir, handoff.FileName)
	doc, err := handoff.Load(path)
	if errors.Is(err, handoff.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatalf("the file is not whole: %v", err)
	}
	c, err := doc.Checkpoint(handoff.PRD)
	if err != nil {
		t.Fatalf("the file is not whole: %v", err)
	}
	if c == nil {
		return ""
	}
	raw, err := c.Compact()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// looked returns the output of the program; nil if no work is open.
func (w *workplace) looked() *handoff.Checkpoint {
	w.t.Helper()
	out, errs, status := w.try("perdure handoff show --json")
	switch status {
	case 0:
		return w.parse(out)
	case 4:
		return nil
	}
	w.t.Fatalf("show: exit status %d: %s", status, errs)
	return nil
}

func compact(t *testing.T, c *handoff.Checkpoint) []byte {
	t.Helper()
	raw, err := c.Compact()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// stepsEnv passes the folder, the name of the file and the number of steps to the role
// "steps".
const stepsEnv = "PERDURE_E2E_STEPS"

// recordSteps records steps as fast as it can.
func recordSteps(ctx context.Context, s *perdure.Store) error {
	parts := strings.Split(os.Getenv(stepsEnv), "|")
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		return err
	}
	r := ledger.New(ledger.Config{Ledgers: ledger.NewStore(s),
		Location: handoff.Location{File: parts[0], Root: filepath.Dir(parts[0])},
		Folder:   filepath.Dir(parts[0]), Agent: parts[1], Snapshots: filepath.Join(filepath.Dir(parts[0]), "snapshots")})
	for i := range n {
		if _, err := r.Apply(ctx, ledger.Op{Kind: ledger.OpStep, Text: fmt.Sprintf("%s %d", parts[1], i)}); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stdout, "recorded")
	return nil
}

// Two processes record many steps each at once: none is lost, and the file shows
// the last state.
func TestHandoffTwoWriters(t *testing.T) {
	t.Parallel()
	each := effort.Of(100, 500)
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		dir := t.TempDir()
		file := filepath.Join(dir, handoff.FileName)
		if err := os.WriteFile(file, []byte(`{"activePrd": {"id": "p"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		var outs []*bufio.Reader
		for _, name := range []string{"a", "b"} {
			_, out := start(t, "steps", cfg, "env", fmt.Sprintf("%s=%s|%s|%d", stepsEnv, file, name, each))
			outs = append(outs, out)
		}
		for _, out := range outs {
			says(t, out, "recorded")
		}
		r := ledger.New(ledger.Config{Ledgers: ledger.NewStore(testdb.Open(t, cfg)),
			Location: handoff.Location{File: file, Root: dir}, Folder: dir,
			Snapshots: filepath.Join(dir, "snapshots")})
		v, err := r.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]int{"a": -1, "b": -1}
		for _, s := range v.Ledger.CompletedSteps {
			name, number, _ := strings.Cut(s.Step, " ")
			if n, err := strconv.Atoi(number); err != nil || n != last[name]+1 {
				t.Fatalf("%q after %q %d", s.Step, name, last[name])
			}
			last[name]++
		}
		if n := len(v.Ledger.CompletedSteps); n != 2*each || v.Behind || len(v.Notes) > 0 {
			t.Errorf("%d of %d steps; the file is behind: %v; %q", n, 2*each, v.Behind, v.Notes)
		}
		want := handoff.Project(v.Ledger, 0)
		if shown, err := v.Shown.Compact(); err != nil || string(shown) != string(compact(t, &want)) {
			t.Errorf("%v: the file does not show the last state:\n%s", err, shown)
		}
	})
}
