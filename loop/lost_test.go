package loop_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/worker"
)

// netBench is a bench whose store is in the workspace, with copies outside of it.
func netBench(t *testing.T, turns ...func(w *turn) error) *bench {
	t.Helper()
	dir, root := t.TempDir(), t.TempDir()
	b := openBench(t, perdure.Config{Dir: filepath.Join(dir, ".perdure"), Copies: root}, turns...)
	b.dir, b.loops = dir, filepath.Join(b.store.Dir(), "loops")
	b.put("tests/a", "pass")
	b.put("tests/b", "fail")
	b.put("untracked", "precious")
	var err error
	b.engine, err = loop.New(t.Context(), loop.EngineConfig{Store: b.store, Agents: b.agent, Dir: b.loops,
		Copies: copies.Loops(root, b.loops)})
	b.ok(err)
	return b
}

// TestLoopSurvivesRemovalOfItsStore: whatever a program removes of the folder of the store, the loop
// goes on with all that was stored, and the untracked files that were removed with it are back.
func TestLoopSurvivesRemovalOfItsStore(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(store string) error{
		"store":           os.RemoveAll,
		"store is empty":  func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
		"store is moved":  func(dir string) error { return os.Rename(dir, dir+".away") },
		"database":        func(dir string) error { return os.Remove(filepath.Join(dir, "perdure.db")) },
		"log":             func(dir string) error { return os.Remove(filepath.Join(dir, "perdure.db-wal")) },
		"loops":           func(dir string) error { return os.RemoveAll(filepath.Join(dir, "loops")) },
		"blobs":           func(dir string) error { return os.RemoveAll(filepath.Join(dir, "blobs")) },
		"another store":   func(dir string) error { return errors.Join(os.RemoveAll(dir), otherStore(dir)) },
		"only its locks":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "sessions")) },
		"its own storage": func(dir string) error { return errors.Join(removeSnapshots(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *bench
			b = netBench(t, write("x", "1"), func(w *turn) error {
				if !strings.HasPrefix(name, "store") {
					return errors.Join(w.write("new", "2"), remove(b.store.Dir()))
				}
				return errors.Join(w.write("tests/b", "pass"), w.remove("untracked"), remove(b.store.Dir()))
			}, write("tests/b", "pass"))
			b.launch()
			l := b.work()
			if l.Status != record.Completed || l.Iteration > 3 {
				t.Fatalf("%s: %s", show(l), b.reason())
			}
			if got, err := os.ReadFile(filepath.Join(b.dir, "untracked")); err != nil || string(got) != "precious" {
				t.Errorf("the untracked file: %q, %v", got, err)
			}
			for _, o := range b.outcomes() {
				for _, id := range []workspace.ID{o.Before, o.After} {
					path := filepath.Join(b.loops, loop.ID(&b.tree), "snapshots", "manifests", string(id))
					if _, err := os.Stat(path); err != nil && (o.Iteration == 0 || o.Check.Passed) {
						t.Errorf("iteration %d: %v", o.Iteration, err)
					}
				}
			}
			fresh, err := perdure.Open(t.Context(), perdure.Config{Dir: b.store.Dir()})
			b.ok(err)
			defer fresh.Close()
			rows, err := record.New(fresh).Iterations(t.Context(), b.tree.ID, 0, 100)
			if err != nil || len(rows) != l.Iteration+1 {
				t.Errorf("another process finds %d iterations, %v", len(rows), err)
			}
		})
	}
}

// otherStore makes a store without rows in a folder.
func otherStore(dir string) error {
	path := filepath.Join(dir, "perdure.db")
	return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, []byte("not a database"), 0o600))
}

func removeSnapshots(dir string) error {
	all, err := filepath.Glob(filepath.Join(dir, "loops", "*", "snapshots"))
	for _, one := range all {
		err = errors.Join(err, os.RemoveAll(one))
	}
	return err
}

// TestCheckThatCleansTheWorkspace: a check that removes the store and untracked files loses neither.
func TestCheckThatCleansTheWorkspace(t *testing.T) {
	t.Parallel()
	b := netBench(t, func(w *turn) error { return errors.Join(w.write("tests/b", "pass"), w.write("src/new", "work")) })
	b.launch(func(c *config.Config) { c.Until = "rm -rf .perdure untracked src\n" + checkTAP })
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Fatalf("%s: %s", show(l), b.reason())
	}
	for name, want := range map[string]string{"untracked": "precious", "src/new": "work"} {
		if got, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestStoreRemovedWithoutCopies: without a folder for copies the loop ends, and nothing is written to
// the removed files.
func TestStoreRemovedWithoutCopies(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(*turn) error { return os.Rename(b.store.Dir(), b.store.Dir()+".away") })
	b.launch()
	w, err := worker.New(worker.Config{Store: b.store, Session: b.session,
		Handlers: map[string]worker.Handler{perdure.KindLoop: b.engine}, DrainTimeout: -1})
	b.ok(err)
	err = w.Run(t.Context())
	if perdure.CodeOf(err) != perdure.CodeUnavailable || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("the worker ends with %v", err)
	}
	<-b.store.Removed()
}
