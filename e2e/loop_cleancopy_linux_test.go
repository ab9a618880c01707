package e2e

import (
	"os"
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
