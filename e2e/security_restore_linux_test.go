package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/storage/heads"
)

// earlierCopy is a place whose store is an earlier copy of it, with other trees since.
func earlierCopy(t *testing.T) *workplace {
	t.Helper()
	w := newWorkplace(t)
	w.sh("perdure run first --model mock:hash && perdure var set limit 1")
	early := w.saved()
	w.sh("perdure run second --model mock:hash && perdure var set limit 2")
	w.swap(early)
	w.sh("perdure run third --model mock:hash --cache=false; perdure run fourth --model mock:hash")
	if status, faults := w.verified(); status != 1 || !strings.Contains(faults, "recorded_head ") {
		t.Fatalf("status %d: %s", status, faults)
	}
	return w
}

// A store that the user restored from a backup is accepted on a terminal or with --yes, and not
// without. Later changes are found, and cannot be accepted.
func TestSecurityRestoredBackup(t *testing.T) {
	t.Parallel()
	w := earlierCopy(t)
	for _, flags := range []string{"--accept", "--accept --json", "--accept tree-00000001", "--yes"} {
		if out, errs, status := w.detached("perdure verify-log " + flags); status == 0 {
			t.Errorf("%s: accepted\n%s%s", flags, out, errs)
		}
	}
	p := w.onTerminal("perdure verify-log --accept")
	p.until("accept this state? [y/N]")
	p.types("n")
	if said, status := p.ends(); status != 1 {
		t.Errorf("refused, status %d: %s", status, said)
	}
	if status, _ := w.verified(); status != 1 {
		t.Errorf("accepted without a yes, status %d", status)
	}
	p = w.onTerminal("perdure verify-log --accept")
	p.until("[y/N]")
	p.types("y")
	if said, status := p.ends(); status != 0 || !strings.Contains(said, "accepted; later changes are found") {
		t.Errorf("accepted, status %d: %s", status, said)
	}
	if status, faults := w.verified(); status != 0 {
		t.Errorf("after it was accepted, status %d: %s", status, faults)
	}
	w.sh("perdure run fifth --model mock:hash && perdure verify-log --accept && perdure verify-log")

	early := w.saved()
	w.sh("perdure run sixth --model mock:hash")
	w.swap(early)
	w.sh("perdure verify-log --accept --yes --json && perdure verify-log")
	w.forge(`UPDATE event SET data = '{"attempt":2}' WHERE seq = 4`)
	out, errs, status := w.try("perdure verify-log --accept --yes")
	if status != 5 || !strings.Contains(errs, "causes all of these faults") {
		t.Errorf("a changed event, status %d: %s%s", status, out, errs)
	}
	if status, faults := w.verified(); status != 1 || !strings.Contains(faults, "event_changed event 4 ") {
		t.Errorf("a changed event, status %d: %s", status, faults)
	}
}

// An agent cannot accept the earlier copy that it put at the place of the store, also not
// without its environment or on a terminal that it opens.
func TestSecurityAgentAcceptsCopy(t *testing.T) {
	t.Parallel()
	w := earlierCopy(t)
	said := w.beside("said")
	w.write("check.sh", loopCheck)
	w.write("tests/a", "pass\n")
	w.write("tests/b", "fail\n")
	dir, state := w.dir+"/.perdure", strings.TrimSuffix(heads.Folder(os.Getenv), "/perdure/heads")
	clean := "env -i PATH=\"$PATH\" HOME=/ PERDURE_DIR=" + dir + " XDG_STATE_HOME=" + state + " "
	const tried = 4
	script := "cat > /dev/null\n"
	for _, command := range []string{"perdure verify-log --accept --yes", clean + "perdure verify-log --accept --yes",
		clean + "setsid -w perdure verify-log --accept --yes", clean + "perdure trust"} {
		script += command + " >> " + said + " 2>&1\necho status $? >> " + said + "\n"
	}
	if out, status := w.loopWith(script+"echo pass > tests/b\n", "--detection off"); status != 0 {
		t.Fatalf("the loop ended with %d: %s", status, out)
	}
	raw, err := os.ReadFile(said)
	if err != nil || strings.Count(string(raw), "is not allowed to do this") != tried ||
		strings.Count(string(raw), "status 5") != tried {
		t.Errorf("%s, %v", raw, err)
	}
	if status, faults := w.verified(); status != 1 {
		t.Errorf("accepted, status %d: %s", status, faults)
	}
}
