//go:build unix

package state

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// terminalLogin tells the sessions of the kernel apart that have a terminal: by
// the process that leads them and, where the system says it, by when it started
// in which boot. It is empty without a terminal.
func terminalLogin() string {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	_ = tty.Close() // only whether there is one counts
	leader, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	who := strconv.Itoa(leader)
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		who += " " + strings.TrimSpace(string(boot))
	}
	return who + " " + started(leader)
}

// started is when a process started, in ticks since the boot.
func started(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is a name in brackets that may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const startTime = 22 - 3
	if len(fields) <= startTime {
		return ""
	}
	return fields[startTime]
}
