package branch_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/loop/branch"
)

// A worktree has the files of HEAD and no branch; what an interrupted call left is replaced,
// also where git still knows it.
func TestAddWorktree(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.put("a.txt", "changed\n")
	p.put("new/1", "x")
	p.put("new/2", "x")
	dir := filepath.Join(t.TempDir(), "fix")
	for range 2 {
		p.ok(os.MkdirAll(dir, 0o700))
		p.ok(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600))
		w, err := p.repository().AddWorktree(t.Context(), dir)
		p.ok(err)
		if head := p.git("rev-parse", "HEAD"); w.Commit+"\n" != head || w.Uncommitted != 2 {
			t.Errorf("worktree %+v, want commit %s and 2 uncommitted changes", w, head)
		}
		if got := p.git("-C", dir, "status", "--porcelain", "--branch"); got != "## HEAD (no branch)\n" {
			t.Errorf("status of the worktree: %s", got)
		}
		text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		if string(text) != "one\n" {
			t.Errorf("a.txt holds %q, %v", text, err)
		}
	}
	if got := p.git("status", "--porcelain", "--branch"); got != "## main\n M a.txt\n?? new/\n" {
		t.Errorf("status of the repository: %s", got)
	}
	sub := newPlace(t, filepath.Join(p.root, "dir"))
	if got, want := sub.repository().Within("x"), filepath.Join("x", "dir"); filepath.Clean(got) != want {
		t.Errorf("the workspace would be %s, want %s", got, want)
	}
}

// A worktree is made while another process makes one, whose files git cannot read yet.
func TestAddWorktreeDuringAnother(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.git("worktree", "add", "--detach", filepath.Join(t.TempDir(), "other"))
	common := filepath.Join(p.root, ".git", "worktrees", "other", "commondir")
	text, err := os.ReadFile(common)
	p.ok(err)
	p.ok(os.Truncate(common, 0))
	time.AfterFunc(100*time.Millisecond, func() { p.ok(os.WriteFile(common, text, 0o600)) })
	_, err = p.repository().AddWorktree(t.Context(), filepath.Join(t.TempDir(), "fix"))
	p.ok(err)
}

// Neither hooks nor filters of the repository run.
func TestAddWorktreeStartsNoPrograms(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	ran := filepath.Join(t.TempDir(), "ran")
	program := "#!/bin/sh\necho >> " + ran + "\ncat\n"
	p.put(".git/hooks/post-checkout", program)
	p.put(".git/program", program)
	for _, file := range []string{"hooks/post-checkout", "program"} {
		p.ok(os.Chmod(filepath.Join(p.root, ".git", file), 0o700))
	}
	for _, key := range []string{"filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "core.fsmonitor"} {
		p.git("config", key, filepath.Join(p.root, ".git/program"))
	}
	p.put(".git/info/attributes", "* filter=evil\n")
	_, err := p.repository().AddWorktree(t.Context(), filepath.Join(t.TempDir(), "fix"))
	p.ok(err)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program ran")
	}
}

func TestAddWorktreeNeedsACommit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.git("init", "-q")
	err := p.repository().CanAddWorktree(t.Context())
	if problem, ok := errors.AsType[*branch.Error](err); !ok || problem.Hint == "" {
		t.Errorf("error %v, want one with a hint", err)
	}
}
