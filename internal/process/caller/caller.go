// Package caller identifies the process that makes a request: this process, or the one at the
// other end of a Unix socket.
//
// A process ID can be used again when its process has ended. A Caller therefore holds the
// start time of its process, and a process with another start time is not the caller. The
// time between connect and [Of] is not covered: it is that between two system calls of the
// server.
package caller

import (
	"net"
	"os"

	"golang.org/x/term"
)

// Caller is a process.
type Caller struct {
	// PID is 0 if the process is not known: the system does not report it, or it had ended before
	// the server asked.
	PID int
	// UID is the user of the process when it connected, -1 if it is not known.
	UID int

	self  bool
	start string
}

// Self returns this process as the caller.
func Self() Caller {
	return Caller{PID: os.Getpid(), UID: os.Geteuid(), self: true}
}

// Of returns the process at the other end of a Unix socket, and false for other connections.
func Of(conn net.Conn) (Caller, bool) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return Caller{}, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Caller{UID: -1}, true
	}
	pid, uid := 0, -1
	_ = raw.Control(func(fd uintptr) { pid, uid = peer(int(fd)) })
	p, ok := inspect(pid)
	if !ok {
		pid = 0
	}
	return Caller{PID: pid, UID: uid, start: p.start}, true
}

// process is what the system reports of a process.
type process struct {
	// start is the time at which it started, in the form of the system.
	start string
	name  string
	// foreground is set if it is in the foreground of its controlling terminal.
	foreground bool
}

// now returns the caller's process, and false if it has ended or is not known.
func (c Caller) now() (process, bool) {
	if c.PID <= 0 {
		return process{}, false
	}
	p, ok := inspect(c.PID)
	return p, ok && (c.self || p.start == c.start)
}

// Ended reports whether the process has ended, or had ended before the server asked. It is
// false on systems that do not report it.
func (c Caller) Ended() bool {
	if c.self || !inspects {
		return false
	}
	_, ok := c.now()
	return !ok
}

// Terminal reports whether the process has a controlling terminal and is in its foreground.
// On systems that do not report that, it reports whether standard input of this process is a
// terminal, and false for other processes.
func (c Caller) Terminal() bool {
	if c.self && !inspects {
		return term.IsTerminal(int(os.Stdin.Fd()))
	}
	p, ok := c.now()
	return ok && p.foreground
}

// Program returns the name of the process's program as the system shows it, which the process
// can change; "" if it is not known.
func (c Caller) Program() string {
	p, _ := c.now()
	return p.name
}
