package guard

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// adoptOrphans does nothing: the system cannot do it.
func adoptOrphans() bool { return false }

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dup2(from, to int) error { return unix.Dup2(from, to) }

// members returns the processes that belong to the child and still run.
func members(guard, child int) []process { return relatives(processes(), guard, child) }

// processes lists all processes.
func processes() []process {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	all := make([]process, 0, len(list))
	for i := range list {
		k := &list[i]
		p := process{
			pid: int(k.Proc.P_pid), parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid),
			zombie: k.Proc.P_stat == zombieState,
		}
		if session, err := unix.Getsid(p.pid); err == nil {
			p.session = session
		}
		all = append(all, p)
	}
	return all
}
