//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
)

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFindRefusesLinks: a link can lead to a folder that is not the user's, also one with
// the user's rights.
func TestFindRefusesLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(mkdir(t, dir, "elsewhere"), filepath.Join(dir, ".perdure")); err != nil {
		t.Fatal(err)
	}
	_, err := config.Find(mkdir(t, dir, "a"))
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), "is a link") ||
		perdure.HintOf(err) == "" {
		t.Errorf("error %v", err)
	}
}

// TestFindRefusesLinksInside: a link to a file of another folder would use the store, the daemon
// or the settings there.
func TestFindRefusesLinksInside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"perdure.db", "perdure.sock", "blobs", config.FileName} {
		dir := t.TempDir()
		of := mkdir(t, dir, "clone", config.FolderName)
		if err := os.Symlink(filepath.Join(dir, "other", config.FolderName, name), filepath.Join(of, name)); err != nil {
			t.Fatal(err)
		}
		_, err := config.Find(filepath.Dir(of))
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), name+`" is a link`) ||
			!strings.Contains(perdure.HintOf(err), "PERDURE_DIR") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := config.Load(config.Sources{Dir: dir, Environ: []string{"PERDURE_DIR=" + of}}); err != nil &&
			strings.Contains(err.Error(), "is a link") {
			t.Errorf("%s: named by the user: %v", name, err)
		}
	}
}

// TestSettingsInPipes: a pipe in place of the settings file is refused and not waited for.
func TestSettingsInPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(mkdir(t, dir, config.FolderName), config.FileName)
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(config.Sources{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

func TestFindRefusesFoldersOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const other = 65534
	if err := os.Chown(mkdir(t, dir, ".perdure"), other, other); err != nil {
		t.Skipf("needs the right to give files away: %v", err)
	}
	_, err := config.Find(mkdir(t, dir, "a"))
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), "another user") ||
		perdure.HintOf(err) == "" {
		t.Errorf("error %v", err)
	}
	if got, err := config.Find(filepath.Dir(mkdir(t, dir, "a", ".perdure"))); err != nil || filepath.Dir(got) != dir+"/a" {
		t.Errorf("a folder below it: %s, %v", got, err)
	}
}

// TestFindEndsAtTheRepository: a folder above the repository's root, such as /tmp, does not
// belong to the project. The root of a work tree has a file .git.
func TestFindEndsAtTheRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mkdir(t, dir, ".perdure")
	deep := mkdir(t, dir, "repository", "a")
	if got, err := config.Find(deep); err != nil || got != filepath.Join(dir, ".perdure") {
		t.Fatalf("without a repository: %q, %v", got, err)
	}
	mkdir(t, dir, "repository", ".git")
	if got, err := config.Find(deep); err != nil || got != "" {
		t.Errorf("with a repository: %q, %v", got, err)
	}
	own := mkdir(t, dir, "repository", ".perdure")
	if got, err := config.Find(deep); err != nil || got != own {
		t.Errorf("with its own folder: %q, %v", got, err)
	}
	tree := mkdir(t, dir, "worktree")
	if err := os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Find(tree); err != nil || got != "" {
		t.Errorf("in a work tree: %q, %v", got, err)
	}
}
