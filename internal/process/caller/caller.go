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
	"slices"

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
	// parent is the process ID of the parent; leader is set if the process leads a session
	// with a controlling terminal.
	parent int
	leader bool
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

// maxAncestors limits the ancestors of a process.
const maxAncestors = 100

// Ancestor is a process above the caller.
type Ancestor struct {
	PID int `json:"pid"`
	// Start is the time at which it started, in the form of the system.
	Start string `json:"start"`

	program string
	leader  bool
}

// Same reports whether two ancestors are the same process.
func (a Ancestor) Same(b Ancestor) bool { return a.PID == b.PID && a.Start == b.Start }

// Ancestors returns the parent, its parent, and so on up to the first that is not known; none
// on systems that do not report them.
func (c Caller) Ancestors() []Ancestor {
	var all []Ancestor
	p, ok := c.now()
	for ok && p.parent > 1 && len(all) < maxAncestors {
		pid := p.parent
		if p, ok = inspect(pid); ok {
			all = append(all, Ancestor{PID: pid, Start: p.start, program: p.name, leader: p.leader})
		}
	}
	return all
}

// Starter returns the program that started the caller through shells without a terminal of
// their own, as agents start hooks; false if it is not known, or if a user's shell did.
func (c Caller) Starter() (Ancestor, bool) {
	for _, a := range c.Ancestors() {
		if !slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "busybox"}, a.program) {
			return a, true
		}
		if a.leader {
			break
		}
	}
	return Ancestor{}, false
}
