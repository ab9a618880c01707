package caller

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// inspects reports whether inspect works on this system.
const inspects = true

// peer returns the process and the user at the other end of a Unix socket.
func peer(fd int) (pid, uid int) {
	uid = -1
	if cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED); err == nil {
		uid = int(cred.Uid)
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0, uid
	}
	return pid, uid
}

func inspect(pid int) (process, bool) {
	if pid <= 0 {
		return process{}, false
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return process{}, false
	}
	const noTerminal, sessionLeader = -1, 2 // EPROC_SLEADER
	at := k.Proc.P_starttime
	name, _, _ := bytes.Cut(k.Proc.P_comm[:], []byte{0})
	return process{
		start:      fmt.Sprintf("%d.%06d", at.Sec, at.Usec),
		name:       string(name),
		parent:     int(k.Eproc.Ppid),
		leader:     k.Eproc.Tdev != noTerminal && k.Eproc.Flag&sessionLeader != 0,
		foreground: k.Eproc.Tdev != noTerminal && k.Eproc.Pgid == k.Eproc.Tpgid,
	}, true
}
