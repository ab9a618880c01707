package server

import (
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// peer returns the process at the other end of a Unix socket; 0 for other connections.
func peer(conn net.Conn) int {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// opens reports whether a process has a file of the folder open. It also returns true if
// the process cannot be inspected.
func opens(pid int, dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	files := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(files)
	if err != nil {
		return true
	}
	for _, entry := range entries {
		name, err := os.Readlink(filepath.Join(files, entry.Name()))
		if err == nil && filepath.Dir(name) == dir {
			return true
		}
	}
	return false
}
