package heldout_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/loop/heldout"
)

// TestLayOver: the files of the folder replace those of the copy, and nothing is written or removed behind
// links of the copy.
func TestLayOver(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	folder, root := filepath.Join(dir, "held-out"), filepath.Join(dir, "copy")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(folder+"/tests/deep/a_test", "held out")
	write(folder+"/b/c", "held out")
	write(folder+"/.git/config", "of the repository")
	write(root+"/kept", "kept")
	write(root+"/b", "a file in the place of a folder")
	write(outside+"/deep/a_test", "outside")
	write(outside+"/other", "outside")
	if err := os.Symlink(outside, root+"/tests"); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	check, err := heldout.Parse(link, t.TempDir(), "true")
	if err != nil {
		t.Fatal(err)
	}
	if err := check.LayOver(root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{root + "/tests/deep/a_test": "held out", root + "/b/c": "held out",
		root + "/kept": "kept", outside + "/deep/a_test": "outside", outside + "/other": "outside"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{root + "/tests", root + "/tests/deep"} {
		if info, err := os.Lstat(name); err != nil || !info.IsDir() {
			t.Errorf("%s is no folder: %v", name, err)
		}
	}
	if _, err := os.Lstat(root + "/.git"); err == nil {
		t.Error(".git of the folder was copied")
	}
}
