package perdure_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// copyStore copies the files of a store that is open, as a kill leaves them, without those of the names.
func copyStore(t *testing.T, from string, without ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, name := range without {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A store that is opened to be read only is read with its log, in each state that a process leaves it
// in, and none of its files changes.
func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	living := t.TempDir()
	s := testdb.Open(t, perdure.Config{Dir: living})
	want := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "root"}})
	for name, dir := range map[string]string{
		"open in another process": living, "killed": copyStore(t, living),
		"without the index of the log": copyStore(t, living, "perdure.db-shm"), "closed": stored(t),
	} {
		before := namesIn(t, dir)
		r, err := perdure.Open(t.Context(), perdure.Config{Dir: dir, ReadOnly: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		trees, err := r.Trees(t.Context(), perdure.TreeFilter{})
		if err != nil || len(trees) != 1 || name != "closed" && trees[0].ID != want.ID {
			t.Errorf("%s: %d trees, %v", name, len(trees), err)
		}
		more := perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "x"}}
		if _, err := r.CreateTree(t.Context(), more); !perdure.IsReadOnly(err) {
			t.Errorf("%s: a write returned %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after := namesIn(t, dir); name != "open in another process" && len(after) > len(before) {
			t.Errorf("%s: files %v, before %v", name, after, before)
		}
	}
	if _, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir(), ReadOnly: true}); err == nil {
		t.Error("a folder without a store was opened")
	}
}

// namesIn lists the files of a folder.
func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
