package guard

import (
	"os"

	"golang.org/x/sys/unix"
)

// Below reports whether a process is below a guard that this process, or one it belongs to,
// has started: an agent, a model that is a program, or what they started. A process without
// CAP_SYS_RESOURCE cannot hide it, also not by an empty environment, a session of its own or
// the end of its parent. On systems other than Linux it returns false.
func Below(pid int) bool { return marked(pid) }

// Supervisor returns the process above the guard that this process is below: the perdure
// process that supervises it. It is 0 if there is none, or if it has ended.
func Supervisor() int {
	var own unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &own) != nil {
		return 0
	}
	for pid := os.Getppid(); pid > 1; {
		var limit unix.Rlimit
		if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit) == nil && limit.Max > own.Max {
			return pid
		}
		p, ok := readStat(pid)
		if !ok {
			return 0
		}
		pid = p.parent
	}
	return 0
}
