package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// commitRun is loopRun with commits.
var commitRun = strings.Replace(loopRun, "loop run", "loop run --commit", 1)

// loopCommits are the subjects of the commits of that loop without qualities, the first last.
const loopCommits = "Iteration 4: check passes|Iteration 3: check fails (1 test)|Revert iteration 2|" +
	"Iteration 2: check fails (1 test)|Iteration 1: check fails (1 test)|"

func newCommitPlace(t *testing.T) *workplace {
	t.Helper()
	w := newLoopPlace(t)
	w.env = append(w.env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=U",
		"GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=U", "GIT_COMMITTER_EMAIL=u@example.com")
	w.sh("rm -rf .git && git init -q -b main && git add -A && git commit -q -m first && cp .git/index .git/before")
	return w
}

// commitsOnce checks that each iteration of the loop has one commit, and that the branch ends
// with the files of the workspace.
func (w *workplace) commitsOnce() {
	w.t.Helper()
	branch := strings.TrimSpace(w.sh("git for-each-ref --format='%(refname:short)' refs/heads/perdure"))
	if strings.Contains(branch, "\n") {
		w.t.Errorf("branches of loops:\n%s", branch)
		return
	}
	subjects := w.sh("git log --format=%s main.." + branch + " | sed 's/, quality.*//' | tr '\\n' '|'")
	if subjects != loopCommits {
		w.t.Errorf("commits %s, want %s", subjects, loopCommits)
	}
	tree := w.sh("export GIT_INDEX_FILE=$(mktemp -u); git add -A && git write-tree; rm -f $GIT_INDEX_FILE")
	if want := w.sh("git rev-parse " + branch + "^{tree}"); tree != want {
		w.t.Errorf("the files differ from the branch: %s", w.sh("git diff --stat "+branch+" "+tree))
	}
	w.sh("git fsck --strict --no-dangling && cmp .git/index .git/before")
	if head := w.sh("git symbolic-ref HEAD; git log --format=%s main"); head != "refs/heads/main\nfirst\n" {
		w.t.Errorf("HEAD and main: %s", head)
	}
}

// A loop that is killed at any step has one commit an iteration when it is resumed.
func TestLoopCommitsKilledInEachStep(t *testing.T) {
	t.Parallel()
	list := newCommitPlace(t)
	passed := filepath.Join(t.TempDir(), "failpoints")
	out, errs, status := list.try(commitRun, "PERDURE_FAILPOINT_LIST="+passed)
	if status != 0 || !strings.Contains(errs, "commit ") || !strings.Contains(errs, " on perdure/make-the-tests-pass-") ||
		!strings.Contains(errs, "`git log -p HEAD..perdure/") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	list.commitsOnce()
	list.sh("git reset -q $(git for-each-ref --format='%(refname:short)' refs/heads/perdure)") // as docs/loops.md says
	if got := list.sh("git symbolic-ref HEAD; git status --porcelain"); got != "refs/heads/main\n" {
		t.Errorf("after git reset: %s", got)
	}
	points := passages(t, passed)
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 9))
	for _, point := range []string{"loop.begin", "loop.commit", "loop.commit.done", "branch.tree", "branch.before_ref",
		"branch.after_ref", "loop.finish", "loop.finish.done"} {
		if points[point] == 0 {
			t.Errorf("the loop does not pass %s", point)
		}
		for _, nth := range passagesToKill(rng, max(points[point], 1)) {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				t.Parallel()
				w := newCommitPlace(t)
				w.commitKilled(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, nth))
			})
		}
	}
}

// commitKilled runs a loop with commits that is killed, and resumes it.
func (w *workplace) commitKilled(kill string) {
	t := w.t
	t.Helper()
	const bySignal = 128 + 9
	if out, errs, status := w.try(commitRun, kill); status != -1 && status != bySignal {
		t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
	}
	out, errs, status := w.try("perdure loop resume")
	if status != 0 && (status != 5 || !strings.Contains(errs, "has ended: completed")) {
		t.Fatalf("resume ended with %d: %s%s", status, out, errs)
	}
	w.loopEnds()
	w.commitsOnce()
}

// Without a repository nothing begins, and no store is made.
func TestLoopCommitsNeedARepository(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.sh("rm -rf .git")
	out, errs, status := w.try(commitRun)
	if status != 2 || !strings.Contains(errs, "is not in the working tree of a git repository") ||
		!strings.Contains(errs, "git init") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".perdure")); err == nil {
		t.Error("a store was made")
	}
}
