package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoopStoreRemoved: a loop whose store is removed by its agent goes on, also if a folder of the same
// name exists again. If the workspace is removed, the loop ends with the command that restores the copy.
func TestLoopStoreRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]string{
		"store":             "rm -rf .perdure",
		"store is replaced": "rm -rf .perdure; mkdir .perdure; echo x > .perdure/perdure.db",
		"store is initialised": "rm -rf .perdure; perdure init; echo init $? >> \"$LOG.statuses\"; " +
			"perdure var set --scope global x 1; echo var $? >> \"$LOG.statuses\"",
		"log":        "rm .perdure/perdure.db-wal; perdure var set --scope global x 1; echo var $? >> \"$LOG.statuses\"",
		"everything": "rm -rf ./* .[!.]*",
		"workspace":  `d=$PWD; cd /; rm -rf "$d"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			said, status := w.loopWith(`echo turn >> "$LOG"; case $(wc -l < "$LOG") in *2) perdure var set --scope global kept yes; `+
				remove+`;; *3) echo pass > tests/b;; esac`, "", "LOG="+w.beside("log"))
			switch name {
			case "workspace":
				wantSaid(t, said, status, 7, "cannot be put back", "a copy is in ", "perdure restore --copy ")
				w.write("check.sh", loopCheck)
				wantSaid(t, w.sh("perdure restore"), 0, 0, "restored "+w.dir)
			case "everything": // also .git
				wantSaid(t, said, status, 6, "they were put back", ".git is gone")
			default:
				if strings.Contains(wantRefusedOrKept(t, w), "init 0") { // init writes settings, which only the user may
					wantSaid(t, said, status, 6, "they were put back", "the settings of perdure changed")
					break
				}
				wantSaid(t, said, status, 0, "they were put back", "completed: the check passes after iteration 3")
			}
			if got := w.sh("perdure var get --scope global kept"); got != "yes\n" {
				t.Errorf("a variable that was set before the removal: %q", got)
			}
			w.storeIsSound()
		})
	}
}

// TestLoopInPlaceOfRemovedProject: a project in the folder of one that was removed starts as any other, and
// its copies are its own.
func TestLoopInPlaceOfRemovedProject(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	for _, removes := range []string{"", "rm -rf .perdure; "} {
		said, status := w.loopWith(removes+"echo pass > tests/b", "")
		wantSaid(t, said, status, 0, "completed: the check passes after iteration 1")
		check := w.read("check.sh")
		w.sh(`d=$PWD; cd /; rm -rf "$d"; mkdir -p "$d/tests"; echo fail > "$d/tests/b"; echo pass > "$d/tests/a"`)
		w.write("check.sh", check)
	}
}

// wantRefusedOrKept returns what the agent's other commands ended with. The test fails unless each was
// refused (7) or came after the store was put back (0), which may happen within the agent's turn: then
// what it wrote is kept.
func wantRefusedOrKept(t *testing.T, w *workplace) (statuses string) {
	t.Helper()
	statuses = w.sh("cat " + w.beside("log.statuses") + " 2>&1 || :")
	if strings.Contains(statuses, "No such file") {
		return ""
	}
	for line := range strings.Lines(statuses) {
		if !strings.HasSuffix(line, " 7\n") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("another command meanwhile: %s, want status 7 or 0", line)
		}
	}
	wrote := strings.Contains(statuses, "var 0")
	if _, _, status := w.try("perdure var get --scope global x"); (status == 0) != wrote {
		t.Errorf("var get x: status %d after\n%s", status, statuses)
	}
	return statuses
}

// TestLoopKilledWhileStoreIsPutBack: after a kill at each step of putting the store back, it is there or
// its copy is, with everything that was stored before the agent's turn.
func TestLoopKilledWhileStoreIsPutBack(t *testing.T) {
	t.Parallel()
	const turns = `echo turn >> "$LOG"; case $(wc -l < "$LOG") in *2) git clean -fdxq;; *[3-9]) echo pass > tests/b;; esac`
	start := func(t *testing.T, env string) (w *workplace, said string, status int) {
		t.Helper()
		w = newLoopPlace(t)
		w.sh("git init -q; git add check.sh tests; git -c user.name=a -c user.email=a@b.c commit -qm base; " +
			"echo precious > untracked; perdure var set --scope global kept yes")
		said, status = w.loopWith(turns, "", "LOG="+w.beside("log"), env)
		return w, said, status
	}
	list := filepath.Join(t.TempDir(), "failpoints")
	_, said, status := start(t, "PERDURE_FAILPOINT_LIST="+list)
	wantSaid(t, said, status, 0, "untracked files (", "they were put back",
		"completed: the check passes after iteration 3")
	points := passages(t, list)
	for _, point := range []string{"store.removed", "store.put_back.copied", "copies.files_put_back", "copies.replaced",
		"store.put_back.placed", "sqldb.reopen", "store.put_back.opened", "store.put_back.locked"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			if points[point] == 0 {
				t.Fatal("not passed")
			}
			w, said, status := start(t, fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, points[point]))
			if status != -1 && status != 128+9 {
				t.Fatalf("not killed, status %d\n%s", status, said)
			}
			if out, errs, status := w.try("perdure var get --scope global kept"); status != 0 {
				wantSaid(t, out+errs, status, 4, "`perdure restore` in "+w.dir)
				w.sh("perdure restore")
			}
			said, status = w.goOn("LOG=" + w.beside("log"))
			wantSaid(t, said, status, 0, "completed: the check passes after iteration")
			if w.sh("perdure var get --scope global kept") != "yes\n" || w.read("untracked") != "precious\n" {
				t.Error("lost: the variable or the untracked file")
			}
			w.storeIsSound()
		})
	}
}
