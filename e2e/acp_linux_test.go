package e2e

import (
	"strings"
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
