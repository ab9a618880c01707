package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// These tests run loops with faults of agents and people: an agent that does not stop,
// that removes the files of the loop, that prints very much. They check the files, the
// records and the processes.

// loopWith runs a loop with an agent that is a script outside of the workspace, and
// returns its output and its exit status. It does not wait at a gate.
func (w *workplace) loopWith(agent, flags string, env ...string) (said string, status int) {
	w.t.Helper()
	w.agent(agent)
	out, errs, status := w.try(fmt.Sprintf("perdure loop run 'Make the tests pass' --until 'sh check.sh' --agent "+
		"'exec:sh %s' --no-wait %s", w.agentFile(), flags), env...)
	return out + errs, status
}

// agent replaces the script of the agent.
func (w *workplace) agent(script string) {
	w.t.Helper()
	if err := os.WriteFile(w.agentFile(), []byte(script), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// agentFile is outside the workspace, so that it is not part of it.
func (w *workplace) agentFile() string { return w.dir + ".agent" }

// outside is a file outside the workspace.
func (w *workplace) beside(name string) string { return w.dir + "." + name }

// goOn resumes the loop.
func (w *workplace) goOn(env ...string) (said string, status int) {
	w.t.Helper()
	out, errs, status := w.try("perdure loop resume --no-wait", env...)
	return out + errs, status
}

// endsWell resumes the loop with an agent that completes the task, and checks that the
// loop passes and its store is sound.
func (w *workplace) endsWell() {
	w.t.Helper()
	w.agent("echo pass > tests/b")
	if said, status := w.goOn(); status != 0 || !strings.Contains(said, "completed: the check passes") {
		w.t.Errorf("it does not go on: status %d\n%s", status, said)
	}
	if w.read("tests/a") != "pass\n" {
		w.t.Errorf("tests/a holds %q", w.read("tests/a"))
	}
	w.storeIsSound()
}

func (w *workplace) storeIsSound() {
	w.t.Helper()
	if out := w.sh("perdure doctor"); !strings.Contains(out, "sound") {
		w.t.Error(out)
	}
}

// wantSaid fails unless all strings are printed.
func wantSaid(t *testing.T, said string, status, want int, texts ...string) {
	t.Helper()
	if status != want {
		t.Errorf("status %d, want %d\n%s", status, want, said)
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q:\n%s", text, said)
		}
	}
}

// noneLeft checks that the processes ended that wrote their IDs into a file.
func noneLeft(t *testing.T, file string, least int) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(raw))
	if len(all) < least {
		t.Errorf("%d processes were started, want %d", len(all), least)
	}
	for _, text := range all {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if !gone(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// TestLoopAgentThatDoesNotStop: an agent that hangs, prints without end, ignores signals
// or leaves processes behind is ended, with all processes it started, before its
// iteration is judged.
func TestLoopAgentThatDoesNotStop(t *testing.T) {
	t.Parallel()
	const (
		left = `sh -c 'trap "" TERM INT HUP; echo $$ >> "$0"; while :; do sleep 0.05; done' "$PIDS" > /dev/null 2>&1 &` +
			"\n"
		apart = `setsid sh -c 'trap "" TERM INT HUP; echo $$ >> "$0"; while :; do sleep 0.05; done' "$PIDS" > /dev/null ` +
			`2>&1 &` + "\n"
		forked = `while [ "$(cat "$PIDS" 2> /dev/null | wc -l)" -lt 2 ]; do sleep 0.01; done` + "\n"
	)
	const asks, fails = "no agent of the chain can continue", "failed: the check does not pass"
	for name, c := range map[string]struct {
		script, flags, says, end string
		processes, status        int
	}{
		"hangs": {"echo $$ >> $PIDS; exec sleep 1000", "--idle-timeout 5s", "nothing was heard for 5s", asks, 1, 6},
		"chatters": {"echo $$ >> $PIDS; while :; do echo still here; sleep 0.05; done", "--timeout 5s", "timeout",
			fails, 1, 1},
		"does not listen": {"trap '' TERM INT HUP; echo $$ >> $PIDS; while :; do sleep 0.05; done", "--idle-timeout 5s",
			"nothing was heard for 5s", asks, 1, 6},
		"leaves others": {left + apart + forked + "echo done", "", "iteration 1: check fails", fails, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			pids := w.beside("pids")
			said, status := w.loopWith(c.script, "--max-iterations 1 --max-retries 0 "+c.flags, "PIDS="+pids)
			wantSaid(t, said, status, c.status, c.says, c.end)
			noneLeft(t, pids, c.processes)
			w.storeIsSound()
		})
	}
}

// TestLoopAgentMissing: a program that cannot be started pauses the loop with a hint, and
// uses no iteration.
func TestLoopAgentMissing(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	w.write("agent", "#!/nowhere/interpreter\n")
	w.sh("chmod +x agent")
	out, errs, status := w.try("perdure loop run 'Make the tests pass' --until 'sh check.sh' --agent exec:./agent")
	wantSaid(t, out+errs, status, 3, "paused: the agent cannot work here: not_found: ",
		"check the spelling, that the program is installed", "perdure loop resume make-the-tests-pass-")
	w.write("agent", "#!/bin/sh\necho pass > tests/b\n")
	said, status := w.goOn()
	wantSaid(t, said, status, 0, "completed: the check passes after iteration 1")
}

// TestLoopKilledInATurn: after a kill of perdure during a turn, the agent is ended, its
// changes are reverted, and the turn is repeated under its number.
func TestLoopKilledInATurn(t *testing.T) {
	t.Parallel()
	w := newLoopPlace(t)
	pids := w.beside("pids")
	said, status := w.loopWith(`echo $$ >> "$PIDS"
rm tests/a; echo half > new; echo half > tests/b
kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat) # the parent of its guard
exec sleep 1000`, "", "PIDS="+pids)
	if status != -1 && status != 128+9 {
		t.Fatalf("it was not killed: status %d\n%s", status, said)
	}
	w.agent("ls new tests/* > \"$SEEN\"; echo pass > tests/b")
	said, status = w.goOn("SEEN=" + w.beside("seen"))
	wantSaid(t, said, status, 0, "iteration 1: undone: it was interrupted",
		"completed: the check passes after iteration 1")
	noneLeft(t, pids, 1)
	seen, err := os.ReadFile(w.beside("seen"))
	if err != nil || string(seen) != "tests/a\ntests/b\n" || w.read("tests/a") != "pass\n" {
		t.Errorf("the second turn saw\n%s(%v); tests/a holds %q", seen, err, w.read("tests/a"))
	}
	w.storeIsSound()
}
