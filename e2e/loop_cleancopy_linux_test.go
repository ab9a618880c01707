package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newCopyPlace is a place for a loop with a third test, that the user is logged in. With an
// account in the home folder it passes in the workspace, and fails in a clean copy.
func newCopyPlace(t *testing.T) (w *workplace, home string) {
	t.Helper()
	w, home = newToolPlace(t)
	if err := os.WriteFile(filepath.Join(home, ".account"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.write("check.sh", `[ ! -e needs/account ] || [ -e ~/.account ] || { echo "# not logged in"; account="not "; }
echo "${account}ok - account"
`+strings.Replace(strings.Replace(loopCheck, "n=0;", "n=1;", 1), "exit $bad", `[ -z "$account" ] && exit $bad`, 1))
	return w, home
}

// TestLoopFailsOnlyInCopy: work that passes only with the user's home folder is put to the
// agent once with what is different in a clean copy, then to the user, who can go on without
// another iteration.
func TestLoopFailsOnlyInCopy(t *testing.T) {
	t.Parallel()
	w, _ := newCopyPlace(t)
	prompts := w.beside("prompts")
	said, status := w.loopWith("cat >> "+prompts+"; echo pass > tests/b; mkdir -p needs; echo $$ > needs/account", "")
	wantSaid(t, said, status, 6, "the check passes in the workspace and fails only in a clean copy: account",
		"not logged in", "The home folder and the folder for temporary files are new and empty.",
		"--sealed-setup COMMAND", "perdure loop answer retry", "perdure loop answer continue")
	raw, err := os.ReadFile(prompts)
	if err != nil {
		t.Fatal(err)
	}
	got := string(raw)
	if strings.Count(got, "# Done when") != 2 || strings.Count(got, "fails only in a clean copy") != 1 ||
		!strings.Contains(got, "- account\n") || !strings.Contains(got, "The home folder") {
		t.Errorf("the prompts of two iterations:\n%s", got)
	}
	wantSaid(t, w.sh("perdure loop status"), 0, 0, "fails only in a clean copy: account", "perdure loop answer retry")
	said, errs, status := w.try("perdure loop resume --no-wait --sealed off && false; perdure loop answer retry")
	wantSaid(t, said+errs, status, 0, "sealed completion -> off", "answered gate 1")
	said, status = w.goOn()
	wantSaid(t, said, status, 0, "completed: the check passes after iteration 2")
}

// TestLoopUnconfirmed: a check of which only the exit status is known, and that passes because
// of a file of the agent outside of the workspace, is not reported as passed in a clean copy.
func TestLoopUnconfirmed(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	mark := w.beside("mark")
	w.agent("touch " + mark)
	said, errs, status := w.try("perdure loop run x --until '[ -e " + mark + " ]' --agent 'exec:sh " + w.agentFile() + "'")
	said += errs
	wantSaid(t, said, status, 0, "a clean copy does not confirm the check")
	if strings.Contains(said, "in a clean copy too") {
		t.Error(said)
	}
	wantSaid(t, w.sh("perdure loop status --persistence"), 0, 0, "not confirmed: ")
}

// started runs a command in the background until it has printed a text. It returns the file
// with its output.
func (w *workplace) started(command, text string) (cmd *exec.Cmd, output string) {
	w.t.Helper()
	output = w.beside("output")
	cmd = w.command("exec " + command + " > " + output + " 2>&1")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	until(w.t, "the loop has printed "+text, func() bool {
		said, err := os.ReadFile(output)
		return err == nil && strings.Contains(string(said), text)
	})
	return cmd, output
}

// TestLoopShowsCleanCopy: while a check runs in a clean copy, the loop's output, its status and
// the list of loops say so.
func TestLoopShowsCleanCopy(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.agent("echo pass > tests/b")
	cache := w.beside("cache") // the sandbox shows the folders of --env
	w.env = append(w.env, "GOCACHE="+cache)
	cmd, output := w.started("perdure loop run 'Make the tests pass' --until '[ \"$PWD\" = "+w.dir+
		" ] || until [ -e \"$GOCACHE/go-on\" ]; do sleep 0.1; done; sh check.sh' --check-timeout 1m --env GOCACHE "+
		"--agent 'exec:sh "+w.agentFile()+"'", "iteration 1: checking the result in a clean copy")
	status, list := w.sh("perdure loop status"), w.sh("perdure loop list")
	if err := errors.Join(os.MkdirAll(cache, 0o700), os.WriteFile(filepath.Join(cache, "go-on"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, w.sh("cat "+output))
	}
	wantSaid(t, status, 0, 0, "completing, clean-copy check", "iteration 1 of 10: checks the result in a clean copy, for ")
	wantSaid(t, list, 0, 0, "completing, clean-copy check")
}

// TestLoopCountsTimeOfCleanCopy: a terminal shows how long the check in a clean copy takes.
func TestLoopCountsTimeOfCleanCopy(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.agent("echo pass > tests/b")
	p := w.onTerminal("perdure loop run 'Make the tests pass' --until '[ \"$PWD\" = " + w.dir +
		" ] || sleep 3; sh check.sh' --agent 'exec:sh " + w.agentFile() + "'")
	p.until("\x1b[Kchecking the result in a clean copy (2.0s)")
	if said, status := p.ends(); status != 0 || !strings.Contains(said, "\r\x1b[K") {
		t.Errorf("status %d:\n%s", status, said)
	}
}

// TestLoopKilledAtGate: a loop whose process was killed while it waited at a gate is shown as
// interrupted, with the command that continues it.
func TestLoopKilledAtGate(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.agent("echo HONEST EXIT: impossible")
	cmd, _ := w.started("perdure loop run x --until 'sh check.sh' --agent 'exec:sh "+w.agentFile()+"'",
		"waiting for an answer")
	wantSaid(t, w.sh("perdure loop list"), 0, 0, "waiting at gate 1  ")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	out, errs, status := w.try("perdure loop list; perdure loop status")
	wantSaid(t, out, status, 0, "waiting at gate 1, interrupted", "no process runs it; `perdure loop resume x-")
	wantSaid(t, errs, 0, 0, "no process runs x-", "`perdure loop resume x-")
	wantSaid(t, w.sh("perdure loop list --json"), 0, 0, `"interrupted":true`)
}
