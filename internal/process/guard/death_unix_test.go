//go:build unix

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
)

// family prints its own process ID, and those of a child that ignores signals
// and of a grandchild whose parent has ended.
const family = `
trap '' TERM HUP INT
echo $$
sh -c 'trap "" TERM HUP INT; echo $$; sleep 1000' &
(sh -c 'echo $$; sleep 1000' &)
wait; wait; sleep 1000`

// escape is a process of another session whose parent has ended.
const escape = `
(setsid sh -c 'trap "" TERM HUP; echo $$; sleep 1000' &)
`

// doomed is a parent that will be killed, and its lock file.
type doomed struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	lock  string
}

// startParent starts this test binary as a parent that runs the script under a
// guard. The lock is taken in an open file that only the parent and its guard
// have. While other tests run a child, this process would adopt the guard of the killed
// parent, and end it with what a lost guard of its own left: such tests run alone.
func startParent(t *testing.T, script string) doomed {
	t.Helper()
	d := doomed{lock: filepath.Join(t.TempDir(), "lock")}
	lock, err := os.Create(d.lock)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	defer w.Close()
	d.cmd = exec.Command(os.Args[0], script)
	d.cmd.Env = append(os.Environ(), modeVar+"=parent")
	d.cmd.Stdout, d.cmd.Stderr, d.cmd.ExtraFiles = w, os.Stderr, []*os.File{lock}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	d.lines = bufio.NewReader(r)
	return d
}

func (d doomed) pids(t *testing.T, n int) []string {
	t.Helper()
	var pids []string
	for range n {
		line, err := d.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, strings.TrimSpace(line))
	}
	return pids
}

func (d doomed) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := d.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("parent ended by itself: %v", err)
	}
}

// stop stops the parent and waits until it has stopped.
func (d doomed) stop(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(d.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("parent did not stop: %v, %v", status, err)
	}
}

// takeLock takes the lock as another process would: it waits for it, or not.
func (d doomed) takeLock(t *testing.T, how int) error {
	t.Helper()
	f, err := os.Open(d.lock)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// members is how many processes a script of family, and of escape where the
// system can find it, prints.
func members() (script string, n int) {
	if _, err := exec.LookPath("setsid"); err == nil && adopts {
		return escape + family, 4
	}
	return family, 3
}

func TestKilledParentTakesEverythingWithIt(t *testing.T) { //nolint:paralleltest // see startParent
	script, n := members()
	d := startParent(t, script)
	pids := d.pids(t, n)
	d.kill(t)
	if err := d.takeLock(t, 0); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids...) // holding the lock proves it
	if rest, err := io.ReadAll(d.lines); err != nil || len(rest) > 0 {
		t.Errorf("output goes on: %q, %v", rest, err)
	}
}

func TestLockIsHeldUntilTheGuardIsGone(t *testing.T) { //nolint:paralleltest // see startParent
	d := startParent(t, "echo $PPID\n"+family)
	guardPid, err := strconv.Atoi(d.pids(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	pids := d.pids(t, 3)
	d.stop(t) // or it would continue the guard
	if err := syscall.Kill(guardPid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d.kill(t)
	if err := d.takeLock(t, syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("lock of a dead parent with a living child: %v, want that it is held", err)
	}
	for _, pid := range pids {
		n, _ := strconv.Atoi(pid)
		if err := syscall.Kill(n, 0); err != nil {
			t.Errorf("process %d of a stopped guard: %v", n, err)
		}
	}
	if err := syscall.Kill(guardPid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := d.takeLock(t, 0); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids...)
}

func TestChildDoesNotHoldTheLock(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Descriptors from 3 on are the guard's; a shell redirection fails on one
	// that is closed.
	cfg := sh(`for fd in 3 4 5 6; do if (eval "exec >&$fd") 2>/dev/null; then echo "$fd is open"; fi; done`)
	cfg.Hold = []*os.File{f}
	child := start(t.Context(), t, cfg)
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := child.rest(t); got != "" {
		t.Errorf("the child has the guard's files: %s", got)
	}
}

// TestForkingChain kills a process that keeps starting itself anew in another
// session and ends: no group and no session stays the same.
func TestForkingChain(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil || !adopts {
		t.Skip("needs a system that adopts orphans, and setsid")
	}
	script := filepath.Join(t.TempDir(), "chain")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho link\nsetsid \"$0\" &\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := sh(`"$0" & sleep 1000`)
	cfg.Args, cfg.Grace = append(cfg.Args, script), -1
	child := start(t.Context(), t, cfg)
	for range 3 {
		child.line(t)
	}
	child.Kill()
	_ = child.Wait()
	child.rest(t)
}
