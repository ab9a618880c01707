package guard

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Below reports whether a process is below a guard that this process, or one it belongs to,
// has started: an agent, a model that is a program, or what they started. A process without
// CAP_SYS_RESOURCE cannot hide it, also not by an empty environment, a session of its own,
// another user ID or the end of its parent. It returns true if the system does not report it.
// On systems other than Linux it returns false.
func Below(pid int) bool {
	own, ok := locksLimit(0)
	limit, known := locksLimit(pid)
	return !ok || !known || limit < own
}

// Guarded reports whether this process is below a guard: it has the mark of guarded
// processes, whatever its parent is. A process without CAP_SYS_RESOURCE that has the mark
// keeps it. It also returns true if the system itself sets a limit as low as the mark.
func Guarded() bool {
	own, ok := locksLimit(0)
	return ok && own <= markedLimit
}

// locksLimit returns the hard limit of RLIMIT_LOCKS of a process; 0 is this one. It also works
// for zombies of the same user. That of another user's process is only in /proc.
func locksLimit(pid int) (limit uint64, ok bool) {
	var both unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &both) == nil {
		return both.Max, true
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, false
	}
	return parseLocksLimit(string(text))
}

// parseLocksLimit reads the line "Max file locks  SOFT  HARD  locks" of /proc/PID/limits.
func parseLocksLimit(text string) (hard uint64, ok bool) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, "Max file locks")
		fields := strings.Fields(rest)
		if !found || len(fields) < 2 {
			continue
		}
		if fields[1] == "unlimited" {
			return unix.RLIM_INFINITY, true
		}
		hard, err := strconv.ParseUint(fields[1], 10, 64)
		return hard, err == nil
	}
	return 0, false
}
