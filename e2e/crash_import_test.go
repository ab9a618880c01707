package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/testing/effort"
)

// importSource writes a .aiwg folder with a tree and a loop that take several
// transactions, tasks of no tree, states, and settings.
func importSource(t *testing.T, dir string) {
	t.Helper()
	var tasks []any
	state := func(i int) map[string]any {
		v := map[string]any{"name": "n", "value": i, "type": "number", "created_at": "2026-02-09T10:00:00Z"}
		return map[string]any{"n": v}
	}
	task := func(i int, tree, parent any) {
		meta := map[string]any{"parent_id": parent}
		if tree != nil {
			meta["tree_id"] = tree
		}
		if i%500 == 1 {
			meta["rlm_state"] = state(i)
		}
		tasks = append(tasks, map[string]any{"id": fmt.Sprintf("task-%04d", i), "prompt": fmt.Sprintf("part %d", i),
			"state":     []string{"running", "completed"}[min(i%50, 1)],
			"createdAt": "2026-02-09T10:00:00Z", "metadata": meta})
	}
	task(2, "tree-12345678", nil)
	for i := 3; i < 2010; i++ { // a transaction takes 2,000
		task(i, "tree-12345678", "task-0002")
	}
	for i := 2010; i < 2020; i++ {
		task(i, nil, nil)
	}
	write := func(name string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("daemon/tasks.json", map[string]any{"version": 1, "tasks": tasks})
	write("rlm/global-state.json", map[string]any{"version": "1.0.0", "state_id": "state-00000001", "variables": state(1)})
	var history []any
	for i := 1; i <= 1010; i++ {
		history = append(history, map[string]any{"iteration": i, "quality_score": i % 100,
			"artifacts": []string{fmt.Sprintf("file-%d-with-a-long-name.go", i)}})
	}
	// Its state is too long to stand in the metadata of its task.
	write("ralph/loops/first-0a0b0c0d/state.json", map[string]any{"version": "2.0.0", "loop_id": "first-0a0b0c0d",
		"status": "running", "iteration": 1011, "iteration_history": history})
	write("ralph/loops/first-0a0b0c0d/iterations/iteration-1005.json", map[string]any{"iteration": 1005, "output": "x"})
	write("ralph/loops/second-0a0b0c0d/state.json", map[string]any{"version": "2.0.0", "loop_id": "second-0a0b0c0d",
		"status": "completed", "iteration": 0})
	if err := os.WriteFile(filepath.Join(dir, "aiwg.yml"), []byte("agent_persistence:\n  enabled: true\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	write("rlm/sessions/s/state.json", map[string]any{"version": "1.0.0", "state_id": "state-00000002",
		"variables": state(2)})
}

// exported returns the export of a store. The program writes it: with the race detector
// this process would take ten times as long.
func exported(t *testing.T, bin, store string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(bin, "export", "--layout", "aiwg", dir)
	cmd.Env = append(os.Environ(), "PERDURE_DIR="+store)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "nodes" || e.Name() == "report.md" {
			return nil // the same records as in the file of tasks; tells when it was made
		}
		raw, err := os.ReadFile(path)
		files[path[len(dir):]] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// healthy checks that the doctor finds no problem in a store.
func healthy(t *testing.T, bin, store string) {
	t.Helper()
	cmd := exec.Command(bin, "doctor")
	cmd.Env = append(os.Environ(), "PERDURE_DIR="+store)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the store is not sound: %v\n%s", err, out)
	}
}

// TestKillDuringImport kills an import after each of its steps: the store is sound, and
// another import has the result of one that was not interrupted.
func TestKillDuringImport(t *testing.T) {
	t.Parallel()
	bin, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), ".aiwg")
	importSource(t, source)
	run := func(dir string, env ...string) error {
		cmd := exec.Command(bin, "import", source, "--json")
		cmd.Env = append(append(os.Environ(), env...), "PERDURE_DIR="+dir)
		return cmd.Run()
	}
	alone := t.TempDir()
	list := filepath.Join(t.TempDir(), "failpoints")
	if err := run(alone, "PERDURE_FAILPOINT_LIST="+list); err != nil {
		t.Fatal(err)
	}
	want := exported(t, bin, alone)
	// Before each commit is all that can be on the disk, but for the end: what is
	// done between two of them is in memory.
	points := passages(t, list)
	for _, step := range []string{"import.after_trees", "import.after_tasks", "import.after_states", "import.after_loop",
		"import.after_iterations", "blob.after_rename"} {
		if points[step] == 0 {
			t.Errorf("the import does not pass %s", step)
		}
	}
	if points["tx.before_commit"] < 9 {
		t.Errorf("the import has %d transactions; the test proves too little", points["tx.before_commit"])
	}
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 11))
	odd := rng.IntN(2)
	for _, point := range []string{"tx.before_commit", "tx.after_commit"} {
		times := points[point]
		for n := 1; n <= times; n++ {
			switch {
			case point == "tx.after_commit" && n < times:
				continue // as before the next one
			case n%2 == odd && n < times && !effort.Long():
				continue // in another ordinary run
			}
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := run(dir, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)); !killed(err) {
					t.Fatalf("the import was not killed: %v", err)
				}
				healthy(t, bin, dir)
				if err := run(dir); err != nil {
					t.Fatalf("import again: %v", err)
				}
				healthy(t, bin, dir)
				if diff := cmp.Diff(want, exported(t, bin, dir)); diff != "" {
					t.Errorf("not what an import that was left alone gives (-alone +killed):\n%.3000s", diff)
				}
			})
		}
	}
}
