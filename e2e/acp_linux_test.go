package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// With a daemon, which has the tokens, a gate is shown with the commands that answer it. Stop pauses
// the loop there.
func TestACPDaemon(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", gatedAgent)
	w.env = append(w.env, "PERDURE_LOOP_APPROVER=terminal")
	w.serve()
	e := w.edits(acpLoop)
	s := e.session()
	id := e.begin(s, "Make the tests pass")
	e.until(func(u *update) bool { return strings.Contains(u.text(), "perdure loop answer abort") })
	e.cancel(s)
	if got := e.ends(id); got != turnCancelled || len(e.asked) > 0 {
		t.Errorf("the turn ended with %s, asked %+v", got, e.asked)
	}
	e.says("is paused; `/resume` continues it")
	if out, _, _ := w.try("perdure loop status --json"); !strings.Contains(out, `"paus`) {
		t.Errorf("the state is %.300s", out)
	}
}

// Two sessions in one folder work side by side.
func TestACPTwoSessions(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	e := w.edits("")
	one, two := e.session(), e.session()
	first, second := e.begin(one, "Which file has a toggle?"), e.begin(two, "What is the app?")
	ended := make(map[string]bool)
	for !ended[first] || !ended[second] {
		m, ok := e.receive()
		if !ok || m.Error != nil {
			t.Fatalf("the process ended or refused: %v", m.Error)
		}
		if m.Method == "" {
			ended[string(m.ID)] = true
		}
	}
	e.says("src/toggle.tsx")
	e.says("src/App.tsx")
}

// followedLoop is a loop that a process executes and another one follows, in the same session.
type followedLoop struct {
	e, other     *acpEditor
	session      string
	id, followed string // the turns of both
}

// followLoop begins a loop, waits for the first turn of its agent, and lets another process follow it.
func followLoop(w *workplace) *followedLoop {
	w.t.Helper()
	l := &followedLoop{e: w.edits(acpLoop)}
	l.session = l.e.session()
	l.id = l.e.begin(l.session, "Make the tests pass")
	l.e.until(func(u *update) bool { return strings.HasSuffix(u.ID, "/turn-1") && u.Status == "in_progress" })
	l.other = w.edits(acpLoop)
	if err := l.other.load(l.session); err != nil {
		w.t.Fatal(err)
	}
	l.followed = l.other.begin(l.session, "/resume")
	l.other.until(func(u *update) bool { return strings.Contains(u.text(), "Another process executes") })
	return l
}

// A loop that another process executes and that is paused there stays paused: the process that follows
// it does not resume it.
func TestACPPausedElsewhere(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	release := filepath.Join(t.TempDir(), "release")
	w.write("agent.sh", "cat > /dev/null\ntest -e "+release+" || exec tail -f /dev/null\necho pass > tests/b\n")
	l := followLoop(w)
	signal := func(sig syscall.Signal) { // the process sees the pause after its next try to take the loop over
		t.Helper()
		if err := l.other.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	l.e.cancel(l.session)
	if got := l.e.ends(l.id); got != turnCancelled {
		t.Errorf("the turn ended with %s", got)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	signal(syscall.SIGCONT)
	if got := l.other.ends(l.followed); got != turnEnded {
		t.Errorf("the turn of the process that follows ended with %s", got)
	}
	if out, _, _ := w.try("perdure loop status --json"); !strings.Contains(out, `"status":"paused"`) {
		t.Errorf("the loop is not paused: %.400s", out)
	}
}

// A request to pause a loop stays although another process follows the loop, to take it over.
func TestACPFollowerKeepsRequests(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent.sh", "cat > /dev/null\necho x >> notes\nsleep 4\n")
	l := followLoop(w)
	w.sh("perdure loop pause")
	if got := l.e.ends(l.id); got != turnEnded {
		t.Errorf("the turn ended with %s", got)
	}
	if out, _, _ := w.try("perdure loop status --json"); !strings.Contains(out, `"status":"paused"`) {
		t.Errorf("the loop is not paused: %.400s", out)
	}
	if n := strings.Count(w.sh("perdure events --json"), `"loop.asked"`); n != 2 {
		t.Errorf("there were %d requests, want 2", n)
	}
}

// A loop that another process executes is taken over when that process is killed.
func TestACPLoopTakenOver(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	release := filepath.Join(t.TempDir(), "release")
	w.write("agent.sh", "cat > /dev/null\ntest -e "+release+" || exec tail -f /dev/null\necho pass > tests/b\n")
	l := followLoop(w)
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.e.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := l.other.ends(l.followed); got != turnEnded {
		t.Errorf("the turn ended with %s", got)
	}
	w.completedLoop(1)
}
