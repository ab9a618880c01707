package workspace_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/workspace"
)

// noGit is a program that does not exist.
const noGit = "/nonexistent/git"

// later is a clock that is ahead, so that new files are settled.
func later() time.Time { return time.Now().Add(10 * time.Second) }

// fatal is a *testing.T or a *rapid.T.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// project creates a folder with files: name to content, "name/" for a folder,
// "name@" for a link.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, root, files)
	return root
}

func write(t fatal, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(root, strings.TrimRight(name, "/@"))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		case strings.HasSuffix(name, "@"):
			err = os.Symlink(content, full)
		default:
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t fatal, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil && !errors.Is(err, syscall.ENOTDIR) {
			t.Fatal(err)
		}
	}
}

// config keeps the snapshots in the workspace as the program does.
func config(root string) workspace.Config {
	return workspace.WithClock(workspace.Config{Root: root, Dir: filepath.Join(root, ".perdure", "snapshots"),
		Home: "/nonexistent"}, later)
}

func open(t fatal, cfg workspace.Config) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func take(t testing.TB, w *workspace.Workspace) workspace.ID {
	t.Helper()
	id, _ := takeStats(t, w)
	return id
}

func takeStats(t testing.TB, w *workspace.Workspace) (workspace.ID, workspace.Stats) {
	t.Helper()
	id, stats, err := w.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id, stats
}

func restore(t testing.TB, w *workspace.Workspace, id workspace.ID) workspace.Restored {
	t.Helper()
	done, err := w.Restore(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// tree describes the paths of a folder except .git and .perdure: mode, and hash or target.
func tree(t fatal, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		if d.Name() == ".git" || d.Name() == ".perdure" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x", len(data), sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		all[filepath.ToSlash(rel)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// git runs git with settings of its own.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// paths returns the paths of a snapshot.
func paths(t testing.TB, w *workspace.Workspace, id workspace.ID) []string {
	t.Helper()
	files, _, err := w.Files(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, f := range files {
		list = append(list, f.Path)
	}
	return list
}

// brief formats changes.
func brief(changes []workspace.Change) []string {
	list := []string{}
	for _, c := range changes {
		text := string(c.Kind) + " " + c.Path
		if c.From != "" {
			text += " from " + c.From
		}
		list = append(list, text)
	}
	return list
}
