package guard

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// A guard and all its descendants have a mark: a hard limit of RLIMIT_LOCKS below that of
// this process. The kernel ignores this limit since Linux 2.4.25. It is inherited, and no
// process without CAP_SYS_RESOURCE can raise it. Names, environments and sessions are no
// marks, because a process can change its own.

// markedLimit is the limit below one that is larger or absent. Every guard has the same
// one: orphans are adopted by this process only if their guard is lost.
const markedLimit = 1 << 30

// maxStops is how often a guard that a signal stopped is continued before it counts as
// lost.
const maxStops = 3

// protect marks and hides the guard before it starts its child.
func protect() {
	mark()
	Hide()
}

// mark gives the guard the mark that its descendants inherit. It works without; then orphans
// are not found.
func mark() {
	var limit unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &limit) == nil && limit.Max > 0 {
		limit.Max = min(limit.Max-1, markedLimit)
		limit.Cur = limit.Max
		_ = unix.Prlimit(0, unix.RLIMIT_LOCKS, &limit, nil)
	}
}

// startInSandbox starts the child in a sandbox. The guard is hidden only when the child
// exists, because it could not write the child's user mapping otherwise; until then no
// foreign code runs.
func startInSandbox(o *order) (pid int, layers []string, err error) {
	mark()
	dir := o.Dir
	if dir == "" {
		if dir, err = syscall.Getwd(); err != nil {
			return 0, nil, err
		}
	}
	exe, err := ownBinary()
	if err != nil {
		return 0, nil, err
	}
	program := sandbox.Program{Path: o.Path, Args: o.Args, Env: o.Env, Dir: dir}
	maker := sandbox.Maker{Exe: exe, Env: guardEnv(), Attr: childAttr(), Created: Hide}
	return sandbox.Start(o.Sandbox, program, maker)
}

// Hide keeps other processes of the user from tracing this process and from reading its
// memory, its environment and its open files below /proc. The kernel writes no core dump of
// it any more. Programs that it starts are not hidden, and processes with CAP_SYS_PTRACE are
// not kept off. On systems other than Linux it does nothing.
func Hide() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// marked reports whether a process has a lower limit than this one. It also works for
// zombies.
func marked(pid int) bool {
	own, ok := locksLimit(0)
	limit, known := locksLimit(pid)
	return ok && known && limit < own
}

// adoptsOrphans reports whether this process adopts orphans already.
func adoptsOrphans() bool {
	var is int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0)
	return err == nil && is != 0
}

func adoptNoOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }

// endOrphans kills the orphans that this process adopted from guards, with their
// descendants, and reaps them, until there are none. It waits for no other children,
// whose status belongs to the code that started them.
func endOrphans(isGuard func(pid int) bool) {
	for {
		found := orphans(isGuard)
		if len(found) == 0 {
			return
		}
		pids := make([]int, len(found))
		for i, p := range found {
			pids[i] = p.pid
		}
		for _, p := range walk(pids) {
			if marked(p.pid) && p.group > 1 { // the whole group, so that forks do not escape
				_ = syscall.Kill(-p.group, syscall.SIGKILL)
			}
		}
		for _, p := range found {
			_, err := syscall.Wait4(p.pid, nil, unix.WALL, nil)
			for errors.Is(err, syscall.EINTR) {
				_, err = syscall.Wait4(p.pid, nil, unix.WALL, nil)
			}
		}
	}
}

// orphans lists the adopted children: they have the mark, another session than this
// process, and are not guards. The list of children is fast, but may lack one while
// another ends, so an empty one is confirmed by the list of all processes.
func orphans(isGuard func(pid int) bool) []process {
	self := os.Getpid()
	session, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	other := func(p process) bool {
		return p.parent != self || p.session == session || isGuard(p.pid) || !marked(p.pid)
	}
	var found []process
	pids, _ := children(self)
	for _, pid := range pids {
		if p, ok := readStat(pid); ok && !other(p) {
			found = append(found, p)
		}
	}
	if len(found) > 0 {
		return found
	}
	return slices.DeleteFunc(processes(), other)
}

// awaitEnd waits until a guard has ended, and does not reap it. A guard that a signal
// stops is continued, because it could not end the child any more; one that is stopped
// again and again is killed.
func awaitEnd(pid int) {
	for stops := 0; ; {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || info.Code != cldStopped:
			return
		}
		if stops++; stops > maxStops {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// cldStopped is CLD_STOPPED of <signal.h>.
const cldStopped = 5
