//go:build unix

package state

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// terminalLogin returns a name of the kernel's session: its leader and, if the system
// reports it, the leader's start time and the boot ID. It returns "" without a terminal.
func terminalLogin() string {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	_ = tty.Close() // its existence suffices
	leader, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	name := strconv.Itoa(leader)
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		name += " " + strings.TrimSpace(string(boot))
	}
	return name + " " + started(leader)
}

// started returns the start time of a process in ticks since boot.
func started(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is a name in parentheses with arbitrary characters.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const startTime = 22 - 3
	if len(fields) <= startTime {
		return ""
	}
	return fields[startTime]
}
