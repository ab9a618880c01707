package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/workspace"
)

// TestSnapshotsSurviveTheirFolder: snapshots that are copied out of the workspace can be restored
// after their folder, or parts of it, were removed or replaced.
func TestSnapshotsSurviveTheirFolder(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(dir string) error{
		"folder":         os.RemoveAll,
		"folder is made": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
		"packs":          func(dir string) error { return os.RemoveAll(filepath.Join(dir, "packs")) },
		"manifests":      func(dir string) error { return os.RemoveAll(filepath.Join(dir, "manifests")) },
		"one pack": func(dir string) error {
			list, err := filepath.Glob(filepath.Join(dir, "packs", "*.pack"))
			if err != nil || len(list) == 0 {
				return errors.New("no pack")
			}
			return os.Remove(list[0])
		},
		"a file is in its place": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
			dir := filepath.Join(root, ".perdure", "snapshots")
			open := func() *workspace.Workspace {
				w, err := workspace.Open(workspace.Config{Root: root, Dir: dir, Copy: copied, Grace: -1})
				if err != nil {
					t.Fatal(err)
				}
				return w
			}
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w := open()
			put("untracked", "precious")
			first, _, err := w.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			put("second", "more")
			if _, _, err := w.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, again := range []bool{false, true} { // the same process, and another one
				if again {
					w = open()
				}
				if err := errors.Join(remove(dir), os.Remove(filepath.Join(root, "untracked"))); err != nil {
					t.Fatal(err)
				}
				if name == "a file is in its place" {
					if _, err := w.Restore(t.Context(), first); err == nil {
						t.Fatal("a file was taken for the folder of the snapshots")
					}
					return
				}
				if _, err := w.Restore(t.Context(), first); err != nil {
					t.Fatalf("another process %v: %v", again, err)
				}
				if got, err := os.ReadFile(filepath.Join(root, "untracked")); err != nil || string(got) != "precious" {
					t.Fatalf("restored %q, %v", got, err)
				}
			}
			if _, err := w.Sweep(t.Context(), workspace.Retain{Keep: []workspace.ID{first}}); err != nil {
				t.Fatal(err)
			}
			ids, err := filepath.Glob(filepath.Join(copied, "manifests", "*"))
			if err != nil || len(ids) != 2 { // and its list of ignored paths
				t.Errorf("copies after the sweep: %v, %v", ids, err)
			}
		})
	}
}
