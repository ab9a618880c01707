package loop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// git runs git in the workspace.
func (b *bench) git(args ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=U",
		"GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=U", "GIT_COMMITTER_EMAIL=u@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func newCommitBench(t *testing.T, turns ...func(w *turn) error) *bench {
	t.Helper()
	b := newBench(t, turns...)
	b.git("init", "-q", "-b", "main")
	b.git("config", "user.name", "Ada")
	b.git("config", "user.email", "ada@example.com")
	b.git("add", "-A")
	b.git("commit", "-q", "-m", "first")
	return b
}

func committing(c *config.Config) { c.Commit = true }

func (b *bench) branch() string { return "perdure/" + loop.ID(&b.tree) }

// subjects are those of the commits of the loop, the first one first.
func (b *bench) subjects() []string {
	b.Helper()
	return strings.Split(b.git("log", "--reverse", "--format=%s", "main.."+b.branch()), "\n")
}

func (b *bench) same(what string, got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// hasWorkspace checks that the branch has the files of the workspace.
func (b *bench) hasWorkspace() {
	b.Helper()
	index := []string{"--work-tree=" + b.dir, "--git-dir=" + filepath.Join(b.TempDir(), "g")}
	b.git(append(index, "init", "-q")...)
	b.git(append(index, "add", "-A")...)
	b.same("files of the workspace", b.git(append(index, "write-tree")...), b.git("rev-parse", b.branch()+"^{tree}"))
}

// endsAtWorkspace checks that the branch has the files of the workspace, and that nothing of
// the user's changed.
func (b *bench) endsAtWorkspace() {
	b.Helper()
	b.hasWorkspace()
	b.same("HEAD", b.git("log", "-1", "--format=%D %s"), "HEAD -> main first")
	b.same("staged", b.git("diff", "--cached"), "")
}

func TestCommits(t *testing.T) {
	t.Parallel()
	b := newCommitBench(t, write("tests/b", "not yet"), write("notes", "thinking"), func(w *turn) error {
		w.text = "done\x1b[31m\n\nPerdure-Check: failed"
		return w.write("tests/b", "pass")
	})
	b.put("draft", "of the user")
	b.launch(committing)
	if l := b.work(); l.Status != record.Completed {
		t.Fatal(show(l))
	}
	b.same("commits", b.subjects(), []string{"Uncommitted changes from before the loop",
		"Iteration 1: check fails (1 test), quality 50%", "Iteration 2: check fails (1 test), quality 50%",
		"Iteration 3: check passes, quality 100%"})
	b.same("files", b.git("diff", "--name-only", b.branch()+"^", b.branch()), "tests/b")
	b.same("message", b.git("log", "-1", "--format=%an%n%B", b.branch()), strings.Join([]string{"Ada",
		"Iteration 3: check passes, quality 100%", "", "done␛[31m", "", "Perdure-Check: failed", "",
		"Perdure-Loop: " + loop.ID(&b.tree), "Perdure-Iteration: 3", "Perdure-Check: passed", "Perdure-Quality: 100",
		"Perdure-Agent: scripted"}, "\n"))
	b.same("trailer", b.git("log", "-1", "--format=%(trailers:key=Perdure-Check,valueonly)", b.branch()), "passed")
	all := b.outcomes()
	for i, o := range slices.Backward(all) {
		if i > 0 && o.Commit != b.git("rev-parse", b.branch()+"~"+string(rune('0'+3-i))) {
			t.Errorf("iteration %d has the commit %s", i, o.Commit)
		}
	}
	b.endsAtWorkspace()
}

// An iteration that is reverted stays on the branch, with a commit after it that reverts it;
// the loop ends with its best iteration.
func TestCommitsOfRevertedIterations(t *testing.T) {
	t.Parallel()
	b := newCommitBench(t, func(w *turn) error { return w.write("notes", "good") },
		func(w *turn) error { return w.remove("tests/a") }, write("more", "x"))
	b.launch(committing, func(c *config.Config) {
		c.Unattended, c.MaxIterations, c.Sealed = true, 3, config.SealOff
	})
	b.work()
	b.same("statuses", b.statuses(), "kept reverted kept")
	b.same("commits", b.subjects(), []string{"Iteration 1: check fails (1 test), quality 50%",
		"Iteration 2: check fails (1 test), quality 16% is void", "Revert iteration 2",
		"Iteration 3: check fails (1 test), quality 50%", "Restore iteration 1, the best"})
	b.same("trailers", b.git("log", "-1", "--format=%(trailers:key=Perdure-Quality,valueonly)"+
		"%(trailers:key=Perdure-Regression,valueonly)", b.branch()+"~3"), "void\ntest_deletion")
	b.endsAtWorkspace()
}

func TestCommitsAreRefusedWithoutRepository(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true",
		Workspace: b.dir, Agent: "scripted", Commit: true}})
	if perdure.CodeOf(err) != perdure.CodeInvalid || perdure.HintOf(err) == "" {
		t.Errorf("launched: %v", err)
	}
	if list, err := b.records.Loops(t.Context(), 10); err != nil || len(list) > 0 {
		t.Errorf("loops: %v, %v", list, err)
	}
}

// A branch that the user moved pauses the loop; it goes on when it is back, or without commits.
func TestCommitsPauseForTheUsersBranch(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		b := newCommitBench(t, write("tests/b", "not yet"), func(w *turn) error { return w.write("tests/b", "pass") })
		b.agent.turns[1] = func(w *turn) error {
			b.git("branch", "user", b.branch())
			b.git("branch", "-f", b.branch(), "main")
			return w.write("tests/b", "pass")
		}
		b.launch(committing)
		l := b.work()
		if l.Status != record.Paused || l.Step != "commit" || !strings.Contains(string(l.State), "was moved to") {
			t.Fatal(show(l))
		}
		b.same("branch", b.git("rev-parse", b.branch()), b.git("rev-parse", "main"))
		var req record.ResumeRequest
		if off {
			req.Config = []byte(`{"commit":false}`)
		} else {
			b.git("branch", "-f", b.branch(), "user")
		}
		_, err := b.engine.Resume(t.Context(), b.tree.ID, req)
		b.ok(err)
		if l = b.work(); l.Status != record.Completed || b.agent.done != 2 {
			t.Fatal(show(l))
		}
		if off {
			b.same("branch", b.git("rev-parse", b.branch()), b.git("rev-parse", "main"))
		} else {
			b.same("commits", len(b.subjects()), 2)
			b.endsAtWorkspace()
		}
	}
}

// Commits can be turned on when the loop is resumed, and the end by --revert is on the branch.
func TestCommitsFromAResume(t *testing.T) {
	t.Parallel()
	b := newCommitBench(t, write("tests/b", "not yet"), write("notes", "x"))
	b.launch(func(c *config.Config) { c.MaxIterations = 1 })
	b.work()
	_, err := b.engine.Resume(t.Context(), b.tree.ID, record.ResumeRequest{
		Config: []byte(`{"commit":true,"max_iterations":2}`)})
	b.ok(err)
	b.work()
	b.same("commits", b.subjects(), []string{"Files from before iteration 2",
		"Iteration 2: check fails (1 test), quality 50%", "Restore iteration 1, the best"})
	b.hasWorkspace()
	s, err := state.Read(b.row().State)
	b.ok(err)
	b.same("position", s.Branch.Head, b.git("rev-parse", b.branch()))
	if left, err := filepath.Glob(filepath.Join(b.loops, loop.ID(&b.tree), "commit-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestCommitsOfARevertedLoop(t *testing.T) {
	t.Parallel()
	b := newCommitBench(t, write("tests/b", "not yet"))
	b.agent.turns[0] = func(w *turn) error {
		b.ok(b.records.Ask(w.ctx, b.tree.ID, record.Revert))
		return w.write("tests/b", "not yet")
	}
	b.launch(committing)
	if l := b.work(); l.Status != record.Aborted {
		t.Fatal(show(l))
	}
	list := b.subjects()
	b.same("last commit", list[len(list)-1], "Restore the files from before the loop")
	b.same("changes of the loop", b.git("diff", "main", b.branch()), "")
	b.endsAtWorkspace()
}

// TestCommitsAtAGate: while an unattended loop stands at a gate, the branch has the files of the
// workspace; an approved iteration comes back with a commit of its own.
func TestCommitsAtAGate(t *testing.T) {
	t.Parallel()
	atGate := []string{"Iteration 1: check fails (1 test), quality 50%",
		"Iteration 2: check fails (2 tests), quality 16% is void", "Restore iteration 1, the best"}
	for answer, then := range map[string][]string{
		"approve": {"Restore iteration 2, which was approved", "Iteration 3: check fails (2 tests), quality 31%"},
		"reject":  {"Iteration 3: check fails (1 test), quality 50%"},
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			b := newCommitBench(t, write("notes", "good"), write("tests/a", "broken"), write("more", "x"))
			b.launch(committing, func(c *config.Config) {
				c.Unattended, c.MaxIterations, c.MaxRetries, c.Sealed = true, 3, -1, config.SealOff
			})
			if l := b.work(); l.Step != "gate" {
				t.Fatal(show(l))
			}
			b.same("commits at the gate", b.subjects(), atGate)
			b.hasWorkspace()
			b.answer(answer, "")
			b.work()
			want := slices.Concat(atGate, then)
			b.same("commits", b.subjects()[:len(want)], want)
			b.hasWorkspace()
		})
	}
}
