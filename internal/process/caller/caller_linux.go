package caller

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inspects reports whether inspect works on this system.
const inspects = true

// peer returns the process and the user at the other end of a Unix socket.
func peer(fd int) (pid, uid int) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, -1
	}
	return int(cred.Pid), int(cred.Uid)
}

func inspect(pid int) (process, bool) {
	if pid <= 0 {
		return process{}, false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parse(stat)
}

// parse reads "pid (name) state ppid pgrp session tty_nr tpgid …". The name can contain
// anything, also parentheses. The process is not there if it is a zombie.
func parse(stat []byte) (process, bool) {
	const state, parent, group, session, tty, foreground, start = 0, 1, 2, 3, 4, 5, 19 // fields after the name
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if begin < 0 || end < begin {
		return process{}, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= start || fields[state][0] == 'Z' || fields[state][0] == 'X' {
		return process{}, false
	}
	above, err := strconv.Atoi(string(fields[parent]))
	if err != nil {
		return process{}, false
	}
	id := bytes.TrimSpace(stat[:begin])
	return process{
		parent:     above,
		leader:     string(fields[tty]) != "0" && bytes.Equal(fields[session], id),
		start:      string(fields[start]),
		name:       string(stat[begin+1 : end]),
		foreground: string(fields[tty]) != "0" && bytes.Equal(fields[group], fields[foreground]),
	}, true
}
