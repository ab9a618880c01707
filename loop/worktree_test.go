package loop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// newWorktreeBench returns a bench whose loops can have worktrees.
func newWorktreeBench(t *testing.T, turns ...func(w *turn) error) (b *bench, worktrees string) {
	t.Helper()
	b = newCommitBench(t, turns...)
	worktrees = filepath.Join(t.TempDir(), "worktrees")
	b.restart(loop.EngineConfig{Worktrees: worktrees})
	return b, worktrees
}

func inWorktree(c *config.Config) { c.Worktree = true }

// A loop with a worktree works there and leaves the folder as it is. Ignored files are copied,
// uncommitted ones are not.
func TestWorktree(t *testing.T) {
	t.Parallel()
	b, worktrees := newWorktreeBench(t, func(w *turn) error {
		if _, err := os.Stat(filepath.Join(w.dir, "draft")); err == nil {
			t.Error("the worktree has an uncommitted file")
		}
		if text, err := os.ReadFile(filepath.Join(w.dir, "deps", "lib")); string(text) != "installed" {
			t.Errorf("ignored file: %q, %v", text, err)
		}
		return w.write("tests/b", "pass")
	})
	b.put(".git/info/exclude", "/deps/\n")
	b.put("deps/lib", "installed")
	b.put("draft", "of the user")
	b.launch(inWorktree)
	if l := b.work(); l.Status != record.Completed {
		t.Fatal(show(l))
	}
	cfg := b.config()
	if filepath.Dir(cfg.Workspace) != worktrees || cfg.WorktreeOf != b.dir || !cfg.Commit {
		t.Errorf("workspace %s of %s, commits %v", cfg.Workspace, cfg.WorktreeOf, cfg.Commit)
	}
	b.same("commits", b.subjects(), []string{"Iteration 1: check passes, quality 100%"})
	b.same("status of the folder", b.git("status", "--porcelain", "--branch"), "## main\n?? draft")
	b.same("failing test in the folder", b.read("tests/b"), "fail")
	b.git("worktree", "remove", "--force", cfg.Workspace)
	b.git("merge", "-q", "--ff-only", b.branch())
	b.same("failing test after the merge", b.read("tests/b"), "pass")
}

// What cannot work is refused before there is a loop.
func TestWorktreeRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(b *bench)
		cfg     config.Config
	}{
		"without a repository": {func(b *bench) { b.ok(os.RemoveAll(filepath.Join(b.dir, ".git"))) }, config.Config{}},
		"without a commit":     {func(b *bench) { b.git("update-ref", "-d", "HEAD") }, config.Config{}},
		"with its result":      {func(*bench) {}, config.Config{WorktreeOf: "/elsewhere"}},
		"without a folder":     {func(b *bench) { b.restart(loop.EngineConfig{}) }, config.Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, worktrees := newWorktreeBench(t, write("tests/b", "pass"))
			c.prepare(b)
			cfg := c.cfg
			cfg.Task, cfg.Until, cfg.Workspace, cfg.Agent, cfg.Worktree = "x", "true", b.dir, "scripted", true
			_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: cfg})
			if perdure.CodeOf(err) != perdure.CodeInvalid {
				t.Errorf("launched: %v", err)
			}
			if list, err := b.records.Loops(t.Context(), 10); err != nil || len(list) > 0 {
				t.Errorf("loops: %v, %v", list, err)
			}
			if made, err := os.ReadDir(worktrees); len(made) > 0 {
				t.Errorf("worktrees: %v, %v", made, err)
			}
		})
	}
}

// A folder for worktrees that cannot be made is named.
func TestWorktreeFolderRefused(t *testing.T) {
	t.Parallel()
	b, _ := newWorktreeBench(t)
	file := filepath.Join(t.TempDir(), "file")
	b.ok(os.WriteFile(file, nil, 0o600))
	b.restart(loop.EngineConfig{Worktrees: filepath.Join(file, "worktrees")})
	cfg := config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "scripted", Worktree: true}
	_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: cfg})
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), file) ||
		!strings.Contains(perdure.HintOf(err), "XDG_DATA_HOME") {
		t.Errorf("launched: %v", err)
	}
}

// A loop whose worktree cannot be made pauses, and goes on when the problem is fixed or ends
// when it is aborted.
func TestWorktreeNotMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  record.Control
		want record.Status
	}{
		"resume": {record.Resume, record.Completed},
		"abort":  {record.Abort, record.Aborted},
		"revert": {record.Revert, record.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, worktrees := newWorktreeBench(t, write("tests/b", "pass"))
			b.launch(inWorktree)
			git, hidden := filepath.Join(b.dir, ".git"), filepath.Join(b.dir, "git")
			b.ok(os.Rename(git, hidden))
			if l := b.work(); l.Status != record.Paused {
				t.Fatal(show(l))
			}
			if c.ask == record.Resume {
				b.ok(os.Rename(hidden, git))
			}
			b.ask(c.ask)
			if l := b.work(); l.Status != c.want {
				t.Fatal(show(l))
			}
			if made, err := os.ReadDir(worktrees); err != nil || (len(made) > 0) != (c.want == record.Completed) {
				t.Errorf("worktrees: %v, %v", made, err)
			}
		})
	}
}

// A loop whose worktree was removed while its agent worked pauses, and continues when the command
// of the pause has made the worktree again.
func TestWorktreeMadeAgain(t *testing.T) {
	t.Parallel()
	var b *bench
	b, _ = newWorktreeBench(t, func(w *turn) error { return os.RemoveAll(w.dir) }, write("tests/b", "pass"))
	b.launch(inWorktree)
	if l := b.work(); l.Status != record.Paused {
		t.Fatal(show(l))
	}
	args := []string{"worktree", "add", "--force", "--detach", b.config().Workspace, b.branch()}
	if want := fmt.Sprintf("`git -C %q worktree add --force --detach %q %s`", b.dir, args[4], args[5]); !strings.Contains(
		b.reason(), want) {
		t.Fatalf("the loop is paused: %s; want %s", b.reason(), want)
	}
	b.git(args...)
	b.ask(record.Resume)
	if l := b.work(); l.Status != record.Completed {
		t.Fatal(show(l))
	}
}

// A loop whose worktree was removed can be aborted.
func TestWorktreeRemoved(t *testing.T) {
	t.Parallel()
	var b *bench
	b, _ = newWorktreeBench(t, func(w *turn) error {
		b.ask(record.Pause)
		return w.write("notes", "x")
	})
	b.launch(inWorktree)
	if l := b.work(); l.Status != record.Paused {
		t.Fatal(show(l))
	}
	b.ok(os.RemoveAll(b.config().Workspace))
	b.ask(record.Abort)
	if l := b.work(); l.Status != record.Aborted {
		t.Fatal(show(l))
	}
	b.same("commits", b.subjects(), []string{"Iteration 1: check fails (1 test), quality 50%"})
}
