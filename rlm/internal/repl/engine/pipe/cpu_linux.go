package pipe

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often the host reads what the process uses.
const watchEvery = time.Second

// memoryOf returns 0: the limit of the process itself holds.
func memoryOf(int) int64 { return 0 }

// processorTime returns the processor time that a process has used, 0 if it has ended. Its
// threads and the children that it waited for are included. See proc_pid_stat(5).
func processorTime(pid int) time.Duration {
	const first, last, perSecond = 11, 14, 100 // utime to cstime, behind the name; USER_HZ
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	var ticks int64
	for i := first; i <= last && i < len(fields); i++ {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}

// processesBeside returns the limit that lets a process without namespaces make n processes and
// threads, or a few more: those of the user that exist already count, and there are at most as
// many as on the machine. Root has no such limit.
func processesBeside(n int) int {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return -1
	}
	return int(info.Procs) + n
}
