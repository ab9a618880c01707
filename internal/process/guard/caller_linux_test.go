package guard_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/process/guard"
)

// TestBelowOfAnotherUser: a process also sees that a process of another user is below a guard,
// or is not.
func TestBelowOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to start processes of two users")
	}
	child := start(t.Context(), t, sh(`echo $$; exec sleep 1000`))
	for pid, want := range map[string]string{child.line(t): "true <nil>\n", strconv.Itoa(os.Getpid()): "false <nil>\n",
		"2147483647": "true <nil>\n"} { // no process has this number
		const unprivileged = 65534
		cmd := exec.Command("/proc/self/exe", pid)
		cmd.Dir, cmd.Env = "/", []string{modeVar + "=below"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("Below(%s) = %q, want %q: %v", pid, out, want, err)
		}
	}
	child.Kill()
	_ = child.Wait()
}

// TestGuardedWithoutAncestors: a process with the mark is below a guard also if no process
// above it has another limit, and if it has lowered the limit further.
func TestGuardedWithoutAncestors(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"1073741824": "true <nil>\n", "1073741820": "true <nil>\n",
		"5": "true <nil>\n", "18446744073709551615": "false <nil>\n"} {
		cmd := exec.Command("/proc/self/exe", limit)
		cmd.Dir, cmd.Env = "/", []string{modeVar + "=guarded"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, fs.ErrPermission) {
			t.Skip("the system refuses process namespaces")
		}
		if err != nil || string(out) != want {
			t.Errorf("limit %s: guarded %q, want %q: %v", limit, out, want, err)
		}
	}
}

func TestParseLocksLimit(t *testing.T) {
	t.Parallel()
	const head = "Limit  Soft Limit  Hard Limit  Units\nMax cpu time  1  2  seconds\n"
	for text, want := range map[string]struct {
		limit uint64
		ok    bool
	}{
		head + "Max file locks            unlimited            unlimited            locks     \n": {1<<64 - 1, true},
		head + "Max file locks            5                    1073741824           locks     \n": {1 << 30, true},
		head: {}, "": {}, "Max file locks": {}, "Max file locks 1 x locks": {},
	} {
		if limit, ok := guard.ParseLocksLimit(text); limit != want.limit || ok != want.ok {
			t.Errorf("%q: %d, %v", text, limit, ok)
		}
	}
}
