package guard_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/process/guard"
)

// killGuard kills the guard of a child that prints its parent first.
func (r running) killGuard(t *testing.T) {
	t.Helper()
	pid, err := strconv.Atoi(r.line(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// runaways start processes that no longer belong to the child by parent, group, session or
// environment, and ignore signals. Each prints its process ID.
const runaways = `trap '' TERM HUP INT; echo $PPID
(sh -c 'echo $$; exec sleep 1000' &)
(setsid sh -c 'echo $$; exec sleep 1000' &)
(setsid sh -c '(setsid sh -c "echo \$\$; exec sleep 1000" &)' &)
(env -i "$(command -v setsid)" "$(command -v sh)" -c 'echo $$; read x < "$0"' "$0" &)
sleep 1000`

// needSetsid skips a test without the program.
func needSetsid(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
}

func TestLostGuardLeavesNothing(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := sh(runaways)
	cfg.Args = append(cfg.Args, fifo)
	child := start(t.Context(), t, cfg)
	guardPid := child.line(t)
	pids := []string{child.line(t), child.line(t), child.line(t), child.line(t)}
	n, err := strconv.Atoi(guardPid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); !errors.Is(err, guard.ErrGuardLost) {
		t.Errorf("error = %v, want that the guard was lost", err)
	}
	wantGone(t, append(pids, guardPid)...)
	child.rest(t)
}

// TestLostGuardWithCopiedOutput: output that is copied ends with the processes that
// hold it, and not after a delay.
func TestLostGuardWithCopiedOutput(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	var out strings.Builder
	cfg := sh(`(setsid sh -c 'echo $$; exec sleep 1000' &); read line; kill -9 $PPID; sleep 1000`)
	cfg.Stdout, cfg.Stdin = &out, strings.NewReader("go\n")
	if err := guard.Run(t.Context(), cfg); !errors.Is(err, guard.ErrGuardLost) {
		t.Errorf("error = %v, want that the guard was lost", err)
	}
	for _, pid := range strings.Fields(out.String()) {
		wantGone(t, pid)
	}
}

// TestLostGuardAmongOthers: the other guards keep their children, also those that are
// orphans in another session.
func TestLostGuardAmongOthers(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	const script = `echo $PPID; (setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' &); `
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cfg := sh(script + "read x; exit 5")
	cfg.Stdin, cfg.Grace = r, -1
	other := start(t.Context(), t, cfg)
	_ = r.Close()
	other.line(t)
	left := other.line(t)
	for range 3 {
		lost := start(t.Context(), t, sh(script+"sleep 1000"))
		lost.killGuard(t)
		if err := lost.Wait(); !errors.Is(err, guard.ErrGuardLost) {
			t.Errorf("error = %v, want that the guard was lost", err)
		}
		lost.rest(t)
	}
	wantAlive(t, left)
	_ = w.Close()
	var exit *guard.ExitError
	if err := other.Wait(); !errors.As(err, &exit) || exit.Code != 5 {
		t.Errorf("error = %v, want exit status 5", err)
	}
	wantGone(t, left)
}

func wantAlive(t *testing.T, pids ...string) {
	t.Helper()
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("process %d is gone: %v", pid, err)
		}
	}
}

// TestLostGuardSparesTheProgram: processes that this program started without a guard are
// not killed, and their status is left to it.
func TestLostGuardSparesTheProgram(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	ended, endedOut := own(t, `exit 3`)
	if _, err := io.ReadAll(endedOut); err != nil { // it has ended and waits to be reaped
		t.Fatal(err)
	}
	apart, apartOut := own(t, `echo $$; exec cat`)
	parent, parentOut := own(t, `(setsid sh -c 'echo $$; exec cat <&3 3<&-' 3<&0 &)`)
	pids := []string{lineOf(t, apartOut), lineOf(t, parentOut)}

	lost := start(t.Context(), t, sh(`echo $PPID; sleep 1000`))
	lost.killGuard(t)
	if err := lost.Wait(); !errors.Is(err, guard.ErrGuardLost) {
		t.Errorf("error = %v, want that the guard was lost", err)
	}
	wantAlive(t, pids...)
	var exit *exec.ExitError
	if err := ended.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the status of an ended child is %v, want 3", err)
	}
	if err := apart.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := apart.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Errorf("the status of a killed child is %v", err)
	}
	if err := parent.Wait(); err != nil {
		t.Error(err)
	}
	orphan, err := strconv.Atoi(pids[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(orphan, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = syscall.Wait4(orphan, nil, 0, nil) // it may have another parent
}

// own starts a child without a guard, in a session of its own. Its input stays open.
func own(t *testing.T, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, inErr := cmd.StdinPipe()
	out, w, outErr := os.Pipe()
	if err := errors.Join(inErr, outErr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return cmd, bufio.NewReader(out)
}

func lineOf(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestLostGuardAndForkingChain is TestForkingChain with a killed guard.
func TestLostGuardAndForkingChain(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	script := filepath.Join(t.TempDir(), "chain")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho link\nsetsid \"$0\" &\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := sh(`echo $PPID; "$0" & sleep 1000`)
	cfg.Args = append(cfg.Args, script)
	child := start(t.Context(), t, cfg)
	child.killGuard(t)
	if err := child.Wait(); !errors.Is(err, guard.ErrGuardLost) {
		t.Errorf("error = %v, want that the guard was lost", err)
	}
	child.rest(t)
}

// TestStoppedGuard: a guard that the child stops is continued and does its work.
func TestStoppedGuard(t *testing.T) {
	t.Parallel()
	var exit *guard.ExitError
	if err := guard.Run(t.Context(), sh(`kill -STOP $PPID; exit 3`)); !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("error = %v, want exit status 3", err)
	}
}

// TestGuardStoppedAgainAndAgain: then it counts as lost.
func TestGuardStoppedAgainAndAgain(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cfg := sh(`read x; while kill -STOP $PPID; do :; done; sleep 1000`)
	cfg.Stdin = r
	child := start(t.Context(), t, cfg)
	_, _ = r.Close(), w.Close()
	if err := child.Wait(); !errors.Is(err, guard.ErrGuardLost) {
		t.Errorf("error = %v, want that the guard was lost", err)
	}
	child.rest(t)
}

// TestThreadOfAnEndedLeader: a process whose first thread has ended is shown as a zombie.
// It is killed like any other.
func TestThreadOfAnEndedLeader(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	for name, script := range map[string]string{
		"ended": `echo $PPID; setsid "$0" & read x`, "lost": `echo $PPID; setsid "$0" & read x; kill -9 $PPID`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cfg := sh(script)
			cfg.Args, cfg.Env = append(cfg.Args, os.Args[0]), append(os.Environ(), modeVar+"=headless")
			cfg.Stdin, cfg.Grace = r, -1
			child := start(t.Context(), t, cfg)
			_ = r.Close()
			child.line(t)
			left := child.line(t)
			_ = w.Close()
			if err := child.Wait(); errors.Is(err, guard.ErrGuardLost) != (name == "lost") {
				t.Errorf("error = %v", err)
			}
			wantGone(t, left)
			child.rest(t)
		})
	}
}

// TestAdoptionEndsWithTheLastGuard, and a program that adopted orphans before still does.
func TestAdoptionEndsWithTheLastGuard(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"reaper": "0 1 0\n", "init": "1 1 1\n"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), modeVar+"="+mode)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %v: %q, want %q", mode, err, out, want)
		}
	}
}

// TestGuardCannotBeTraced: a child of the same user that traces its guard is refused.
func TestGuardCannotBeTraced(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env = "/", []string{modeVar + "=traced"}
	if os.Getuid() == 0 { // root may trace everything
		const unprivileged = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != unix.EPERM.Error() {
		t.Errorf("trace the guard: %s, want %v", got, unix.EPERM)
	}
}
