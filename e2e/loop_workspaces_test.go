package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Loops in folders that are not as one thinks of them.

// listing returns every path of the workspace with its kind, mode, target and content,
// without the paths that snapshots exclude by design.
const listing = `find . \( -name .git -o -name .perdure \) -prune -o -print | LC_ALL=C sort | while read -r f; do
if [ -L "$f" ]; then echo "$f -> $(readlink "$f")"; elif [ -d "$f" ]; then echo "$f/ $(stat -c %a "$f")"; else echo "$f $(stat -c %a "$f") $(cksum < "$f")"; fi; done`

// tangle makes the workspace one of a repository that has others in it and links
// out of it.
const tangle = `
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@localhost GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@localhost
mkdir "$0.outside" && echo secret > "$0.outside/secret"
git init -q "$0.lib" && (cd "$0.lib" && echo lib > lib && git add . && git commit -q -m lib)
git init -q inner && (cd inner && echo in > file && echo skipped > .gitignore && echo mine > skipped && git add . && git commit -q -m inner)
git -c protocol.file.allow=always submodule --quiet add "$0.lib" module
ln -s "$0.outside" out; ln -s "$0.outside/secret" secret; ln -s nowhere dangling; ln -s . itself
mkdir empty; echo untracked > untracked; chmod 755 untracked
git add tests check.sh && git commit -q -m all
`

// TestLoopInTangledWorkspace: repositories within the repository, submodules and links
// are restored, and no file outside is changed.
func TestLoopInTangledWorkspace(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	if _, errs, status := w.try(`sh -c '` + tangle + `' ` + w.dir); status != 0 {
		t.Fatal(errs)
	}
	before := w.sh(listing)
	said, status := w.loopWith(`rm -rf module/lib tests/a; echo changed > inner/file; echo new > inner/new
rm out secret; mkdir out; echo mine > out/secret; ln -sfn /etc dangling; rmdir empty; chmod 644 untracked; git add -A > /dev/null`, "")
	wantSaid(t, said, status, 6, "1 test removed")
	index := w.sh("git status --porcelain=v2 | grep -c ^[12] || true")
	w.sh("perdure loop abort --revert")
	if after := w.sh(listing); after != before {
		t.Errorf("after the loop was reverted the files are\n%s\nbefore they were\n%s", after, before)
	}
	if index == "0\n" {
		t.Error("the index of the user was changed")
	}
	if secret, err := os.ReadFile(w.beside("outside") + "/secret"); err != nil || string(secret) != "secret\n" {
		t.Errorf("the file outside holds %q, %v", secret, err)
	}
	if w.read("inner/skipped") != "mine\n" {
		t.Error("an ignored file of the repository within was changed")
	}
	w.storeIsSound()
}

// TestLoopWithoutGit: the same without a repository, and without the program.
func TestLoopWithoutGit(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"no repository": nil, "no program": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			if env == nil {
				w.sh("rm -rf .git")
			} else {
				w.sh(`mkdir "$BIN"; for p in sh cat rm basename echo; do ln -s "$(command -v $p)" "$BIN/"; done`, "BIN="+w.beside("bin"))
				env = []string{"PATH=" + filepath.SplitList(w.path)[0] + ":" + w.beside("bin")}
			}
			w.sh("mkdir sub; echo x > sub/x")
			before := w.sh(listing)
			said, status := w.loopWith("rm -r sub tests/a; echo new > new", "", env...)
			wantSaid(t, said, status, 6, "1 test removed")
			w.sh("perdure loop abort --revert", env...)
			if after := w.sh(listing); after != before {
				t.Errorf("after the loop was reverted the files are\n%s\nbefore they were\n%s", after, before)
			}
		})
	}
}

// TestLoopLosesItsRepository: an agent that removes .git is noticed, because no
// snapshot has it; a person is asked at once, and the loop can continue.
func TestLoopLosesItsRepository(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	said, status := w.loopWith("rm -rf .git", "--unattended")
	wantSaid(t, said, status, 6, "iteration 1: regression: .git is gone",
		"snapshots do not have it", "perdure loop answer reject")
	w.sh("perdure loop answer reject --reason 'leave it alone'")
	w.endsWell()
}

// TestLoopLeavesOut: files that snapshots leave out are reported and not changed.
func TestLoopLeavesOut(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.sh("truncate -s 1G large")
	said, status := w.loopWith("rm tests/a; test -e later || truncate -s 1G later", "")
	wantSaid(t, said, status, 6, "snapshots leave out large (larger than 256 MiB)",
		"iteration 1: snapshots leave out later (larger than 256 MiB)")
	out := w.sh("perdure loop abort --revert; perdure loop report; du -sk .perdure | cut -f 1")
	if strings.Count(out, "snapshots leave out") != 1 || w.read("tests/a") != "pass\n" {
		t.Errorf("the report, and how much is kept:\n%s", out)
	}
	for _, name := range []string{"large", "later"} {
		if info, err := os.Stat(filepath.Join(w.dir, name)); err != nil || info.Size() != 1<<30 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if kept := sizeOf(t, filepath.Join(w.dir, ".perdure")); kept > 10<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// sizeOf returns the size of the files of a folder.
func sizeOf(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestLoopRefusesWorkspace: a folder that cannot be a workspace is refused with a hint,
// and no file is created in it.
func TestLoopRefusesWorkspace(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	for _, c := range []struct{ script, want string }{
		{"cd /", "it is the root of the file system"},
		{"mkdir home; cd home; HOME=$PWD; export HOME", "it is or contains the home folder"},
		{"mkdir -p above/home; cd above; HOME=$PWD/home; export HOME", "it is or contains the home folder"},
		{"git init -q --bare bare; cd bare", "it is a bare repository"},
		{"cd .git", "it is inside of a .git folder"},
		{"cd tests; set -- --workspace a", "it is not a folder"},
		{"cd tests; set -- --workspace none", "workspace is missing"},
	} {
		out, errs, status := w.try("set --; " + c.script + `; perdure loop run x --until true --even-if-green ` +
			`--agent exec:true "$@"; s=$?; test ! -e .perdure && exit $s`)
		if status != 2 {
			t.Errorf("%s: status %d\n%s", c.script, status, out+errs)
		}
		if err := toldOnce("\n"+errs, c.want); err != nil {
			t.Errorf("%s: %v\n%s", c.script, err, errs)
		}
	}
}

// TestLoopsInOneWorkspace: of two loops that begin at once in one folder, or in
// one and another below it, one is refused.
func TestLoopsInOneWorkspace(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{"same": ".", "below": "tests"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			w.agent(`echo turn >> "$LOG"; while [ ! -e "$LOG.go" ]; do sleep 0.01; done; echo pass > tests/b`)
			env := "LOG=" + w.beside("log")
			type end struct {
				said   string
				status int
			}
			ends := make(chan end, 2)
			for _, folder := range []string{".", second} {
				go func() {
					out, errs, status := w.try(fmt.Sprintf("perdure loop run x --no-wait --until 'sh %s/check.sh' "+
						"--agent 'exec:sh %s' --workspace %s", w.dir, w.agentFile(), folder), env)
					ends <- end{out + errs, status}
				}()
			}
			refused := <-ends
			wantSaid(t, refused.said, refused.status, 5, "and has not ended", "hint: `perdure loop resume x-")
			if err := os.WriteFile(w.beside("log.go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if ended := <-ends; ended.status == 5 {
				t.Errorf("both are refused: %s", ended.said)
			}
			w.storeIsSound()
		})
	}
}
