package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// These tests run loops with agents that try to outlive their turn, or to end what
// supervises them.

// editor is a script that changes files of the workspace for ever, and ignores signals.
const editor = `trap '' TERM INT HUP
echo $$ >> "$PIDS"
while :; do echo pass > tests/b; rm -f tests/a; echo more >> edited; sleep 0.01; done > /dev/null 2>&1
`

// perduresID sets P to the process ID of perdure, the parent of the agent's guard.
const perduresID = `P=$(cut -d ' ' -f 4 /proc/$PPID/stat)` + "\n"

// edits waits until the editor has changed a file.
const edits = `while [ ! -e edited ]; do sleep 0.01; done` + "\n"

// killedTitle is the title of the gate of an agent that killed its guard.
const killedTitle = "guard process killed in iteration 1; the iteration is reverted"

// newAttackPlace is a place for loops with an editor, which the agent finds in EDITOR.
func newAttackPlace(t *testing.T) (w *workplace, pids string) {
	t.Helper()
	w = newLoopPlace(t)
	pids = w.beside("pids")
	if err := os.WriteFile(w.beside("editor"), []byte(editor), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PIDS="+pids, "EDITOR="+w.beside("editor"))
	return w, pids
}

// untouched checks that the files are those from before the loop.
func (w *workplace) untouched() {
	w.t.Helper()
	if a, b := w.read("tests/a"), w.read("tests/b"); a != "pass\n" || b != "fail\n" {
		w.t.Errorf("tests/a holds %q, tests/b %q", a, b)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "edited")); !os.IsNotExist(err) {
		w.t.Errorf("the file of the agent is there: %v", err)
	}
}

// TestSecurityGuardKilled: an agent that kills its guard and leaves a process that edits
// has nothing of it: the process is gone, the iteration is reverted, and the loop waits
// for a person.
func TestSecurityGuardKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, flags string }{
		"setsid": {`setsid sh "$EDITOR" &` + "\n" + edits + `kill -9 $PPID; sleep 1000`, ""},
		"unattended": {`setsid sh "$EDITOR" &` + "\n" + edits + `kill -9 $PPID; sleep 1000`,
			"--unattended --max-retries 3"},
		"double fork": {`(setsid sh -c '(setsid sh "$EDITOR" &)' &)` + "\n" + edits + `kill -9 $PPID; sleep 1000`, ""},
		"other environment": {`env -i PATH="$PATH" PIDS="$PIDS" setsid sh "$EDITOR" &` + "\n" + edits +
			`kill -9 $PPID; sleep 1000`, ""},
		"by another process": {`setsid sh "$EDITOR" &` + "\n" + edits +
			`G=$PPID; (setsid sh -c "kill -9 $G" &); sleep 1000`, ""},
		"all children of perdure": {perduresID + `setsid sh "$EDITOR" &` + "\n" + edits +
			`kill -9 $(cat /proc/$P/task/*/children); sleep 1000`, ""},
		"stopped again and again": {`setsid sh "$EDITOR" &` + "\n" + edits +
			`while kill -STOP $PPID; do :; done; sleep 1000`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pids := newAttackPlace(t)
			said, status := w.loopWith(c.script, c.flags)
			noneLeft(t, pids, 1)
			w.untouched()
			wantSaid(t, said, status, 6, "iteration 1: undone: the guard process was killed", killedTitle)
			wantSaid(t, w.sh("perdure loop status"), 0, 0, killedTitle,
				"perdure loop answer")
			wantSaid(t, w.sh("perdure loop report"), 0, 0, "reverted", "guard_lost: ",
				killedTitle)
			w.sh("perdure loop answer continue")
			w.endsWell()
		})
	}
}

// TestSecurityAgentLeavesProcesses: without an attack on the guard, processes that leave
// the agent's session and parents are ended before the check runs.
func TestSecurityAgentLeavesProcesses(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"setsid":      `setsid sh "$EDITOR" &` + "\n" + edits,
		"double fork": `(setsid sh -c '(setsid sh "$EDITOR" &)' &)` + "\n" + edits,
		"nohup":       `nohup sh "$EDITOR" > /dev/null 2>&1 &` + "\n" + edits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pids := newAttackPlace(t)
			said, status := w.loopWith(script, "--max-iterations 1 --no-wait")
			noneLeft(t, pids, 1)
			wantSaid(t, said, status, 6, "1 test removed")
		})
	}
}

// TestSecurityGuardStopped: a guard that the agent stops works on.
func TestSecurityGuardStopped(t *testing.T) {
	t.Parallel()
	w, pids := newAttackPlace(t)
	said, status := w.loopWith(`setsid sh "$EDITOR" &
`+edits+`kill -STOP $PPID`, "--max-iterations 1")
	noneLeft(t, pids, 1)
	wantSaid(t, said, status, 6, "1 test removed")
}

// TestSecurityPerdureStopped: a stopped perdure judges nothing; when it is continued, it
// ends what the agent left and judges the iteration.
func TestSecurityPerdureStopped(t *testing.T) {
	t.Parallel()
	w, pids := newAttackPlace(t)
	stopped := w.beside("stopped")
	w.agent(perduresID + `setsid sh "$EDITOR" &
` + edits + `kill -STOP $P; echo $P > "$STOPPED.new"; mv "$STOPPED.new" "$STOPPED"`)
	cmd := w.command("exec perdure loop run 'Make the tests pass' --until 'sh check.sh' --no-wait --max-iterations 1 "+
		"--agent 'exec:sh "+w.agentFile()+"'", "STOPPED="+stopped)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "perdure is stopped", func() bool { _, err := os.Stat(stopped); return err == nil })
	raw, err := os.ReadFile(stopped)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || pid != cmd.Process.Pid {
		t.Fatalf("process %d is stopped and not %d: %v", pid, cmd.Process.Pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	noneLeft(t, pids, 1)
	wantSaid(t, said.String(), cmd.ProcessState.ExitCode(), 6, "1 test removed")
}

// TestSecurityPerdureKilled: the guard ends what the agent left, and the resumed loop
// reverts the interrupted turn.
func TestSecurityPerdureKilled(t *testing.T) {
	t.Parallel()
	w, pids := newAttackPlace(t)
	said, status := w.loopWith(perduresID+`(setsid sh -c '(setsid sh "$EDITOR" &)' &)
`+edits+`kill -9 $P; sleep 1000`, "")
	if status != -1 && status != 128+9 {
		t.Fatalf("it was not killed: status %d\n%s", status, said)
	}
	w.agent(`cat tests/a tests/b > "$SEEN"; ls >> "$SEEN"; echo pass > tests/b`)
	said, status = w.goOn("SEEN=" + w.beside("seen"))
	noneLeft(t, pids, 1)
	wantSaid(t, said, status, 0, "iteration 1: undone: it was interrupted",
		"completed: the check passes after iteration 1")
	seen, err := os.ReadFile(w.beside("seen"))
	if err != nil || !strings.HasPrefix(string(seen), "pass\nfail\n") || strings.Contains(string(seen), "edited") {
		t.Errorf("the second turn saw\n%s%v", seen, err)
	}
}

// TestSecurityKilledWhileContaining: a kill before or after the files are restored changes
// nothing: the iteration is reverted, and the loop waits at one gate.
func TestSecurityKilledWhileContaining(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"loop.act.done:1", "loop.contain:1", "loop.contain.done:1", "loop.decide.done:1"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, pids := newAttackPlace(t)
			said, status := w.loopWith(`setsid sh "$EDITOR" &
`+edits+`kill -9 $PPID; sleep 1000`, "--unattended", "PERDURE_FAILPOINT="+point)
			if status != -1 && status != 128+9 {
				t.Fatalf("it was not killed: status %d\n%s", status, said)
			}
			noneLeft(t, pids, 1)
			said, status = w.goOn()
			wantSaid(t, said, status, 6, killedTitle)
			w.untouched()
			w.sh("perdure loop answer continue")
			w.endsWell()
		})
	}
}
