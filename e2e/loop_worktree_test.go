package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// worktreeRun is loopRun in a worktree.
var worktreeRun = strings.Replace(loopRun, "loop run", "loop run --worktree", 1)

// worktrees returns the folder of the worktrees of a place.
func (w *workplace) worktrees() (dir string, env []string) {
	dir = w.beside("data")
	return filepath.Join(dir, "perdure", "worktrees"), []string{"XDG_DATA_HOME=" + dir}
}

// A loop that is killed while it makes its worktree makes it again, and each iteration has one
// commit.
func TestLoopWorktreeKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"loop.worktree", "loop.worktree.copy", "loop.worktree.done", "loop.begin.done",
		"loop.act.done"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newCommitPlace(t)
			folder, env := w.worktrees()
			if out, errs, status := w.try(worktreeRun, append(env, "PERDURE_FAILPOINT="+point+":1")...); status != -1 &&
				status != 128+9 {
				t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
			}
			before := w.sh("cat tests/*")
			out, errs, status := w.try("perdure loop resume", env...)
			if status != 0 {
				t.Fatalf("resume ended with %d: %s%s", status, out, errs)
			}
			branch := strings.TrimSpace(w.sh("git for-each-ref --format='%(refname:short)' refs/heads/perdure"))
			if subjects := w.sh("git log --format=%s main.." + branch + " | sed 's/, quality.*//' | tr '\\n' '|'"); subjects !=
				loopCommits {
				t.Errorf("commits %s, want %s: %s", subjects, loopCommits, errs)
			}
			if made, err := os.ReadDir(folder); err != nil || len(made) != 1 {
				t.Errorf("worktrees %v, %v", made, err)
			}
			if now := w.sh("cat tests/*; git status --porcelain -uno"); now != before {
				t.Errorf("the folder changed: %q, before %q", now, before)
			}
			w.storeIsSound()
		})
	}
}

// Loops with worktrees of one repository work at the same time.
func TestLoopsSideBySide(t *testing.T) {
	t.Parallel()
	w := newCommitPlace(t)
	_, env := w.worktrees()
	// Each agent waits until the others work, too.
	script := `cat > /dev/null; echo > "$TOGETHER/$1"
while [ "$(ls "$TOGETHER" | wc -l)" -lt 3 ]; do sleep 0.01; done
echo pass > tests/b; echo "$1" > who`
	if err := os.WriteFile(w.agentFile(), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	together := w.beside("together")
	if err := os.MkdirAll(together, 0o700); err != nil {
		t.Fatal(err)
	}
	env = append(env, "TOGETHER="+together)
	w.sh("perdure init")
	var loops sync.WaitGroup
	for i := range 3 {
		loops.Go(func() {
			run := fmt.Sprintf("perdure loop run 'Fix it %d' --until 'sh check.sh' --agent 'exec:sh %s %d' --worktree "+
				"--env TOGETHER --max-iterations 1", i, w.agentFile(), i)
			if out, errs, status := w.try(run, env...); status != 0 {
				t.Errorf("loop %d ended with %d: %s%s", i, status, out, errs)
			}
		})
	}
	loops.Wait()
	for i := range 3 {
		branch := w.sh(fmt.Sprintf("git branch --list --format='%%(refname:short)' 'perdure/fix-it-%d-*'", i))
		if who := w.sh("git show " + strings.TrimSpace(branch) + ":who"); who != fmt.Sprintf("%d\n", i) {
			t.Errorf("branch %s has the files of loop %q", branch, who)
		}
	}
	if left := w.sh("git status --porcelain -uno"); left != "" {
		t.Errorf("the folder changed: %s", left)
	}
	w.storeIsSound()
}
