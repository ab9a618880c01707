package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// name is argument 0 of the process that makes a sandbox and becomes the program.
const name = "perdure-sandbox"

// File descriptors of that process.
const (
	fdOrder  = 3
	fdStatus = 4
)

// Program is the program to run.
type Program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
	// Dir is the working folder.
	Dir string `json:"dir"`
}

type order struct {
	Config  Config  `json:"config"`
	Program Program `json:"program"`
	// Parent is the process with which the program ends.
	Parent int `json:"parent"`
}

// failure is what the process reports when it does not become the program.
type failure struct {
	Op    string        `json:"op"`
	Msg   string        `json:"msg"`
	Errno syscall.Errno `json:"errno,omitempty"`
	// Exec is set if the sandbox was made and the program cannot be executed, Refused if the
	// system refuses sandboxes.
	Exec    bool `json:"exec,omitempty"`
	Refused bool `json:"refused,omitempty"`
}

// Maker describes the child process that makes the sandbox and becomes the program.
type Maker struct {
	// Exe is the file of this program, which calls [Enter]. Env is the environment until the
	// program starts, Attr are attributes of the child.
	Exe  string
	Env  []string
	Attr *syscall.SysProcAttr
	// Created is called when the child exists and has not begun.
	Created func()
}

// Start starts a program as a child of the calling thread and returns its process ID. An
// *Error means that no sandbox could be made; other errors are those of executing the
// program, and of entering its folder.
func Start(cfg *Config, p Program, by Maker) (pid int, err error) {
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return 0, &Error{Op: "make pipe", Err: err}
	}
	defer orderW.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(&Error{Op: "make pipe", Err: err}, orderR.Close())
	}
	defer statusR.Close()
	attr := by.Attr
	attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	if !cfg.Network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if cfg.OwnProcesses {
		attr.Cloneflags |= syscall.CLONE_NEWPID
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	pid, err = syscall.ForkExec(by.Exe, []string{name}, &syscall.ProcAttr{Env: by.Env, Sys: attr,
		Files: []uintptr{0, 1, 2, orderR.Fd(), statusW.Fd()}})
	if err := errors.Join(orderR.Close(), statusW.Close()); err != nil {
		return 0, &Error{Op: "close pipe", Err: err}
	}
	if err != nil {
		return 0, &Error{Op: "create namespaces", Err: err, Refused: refusal(err)}
	}
	by.Created()
	err = json.NewEncoder(orderW).Encode(order{Config: *cfg, Program: p, Parent: os.Getpid()})
	var f failure
	if err == nil && json.NewDecoder(statusR).Decode(&f) != nil {
		return pid, nil // closed by a successful execve
	}
	var status syscall.WaitStatus
	_, waited := syscall.Wait4(pid, &status, 0, nil)
	for errors.Is(waited, syscall.EINTR) {
		_, waited = syscall.Wait4(pid, &status, 0, nil)
	}
	switch {
	case err != nil:
		return 0, &Error{Op: "send order", Err: err}
	case f.Exec:
		return 0, f.Errno
	}
	return 0, &Error{Op: f.Op, Err: errors.New(f.Msg), Refused: f.Refused}
}

// Enter makes the sandbox and becomes the program, in a process that [Start] started. It
// returns only if that fails, with isMaker set, or in other processes. It is called first in
// main; a maker then exits.
func Enter() (isMaker bool) {
	if len(os.Args) != 1 || os.Args[0] != name {
		return false
	}
	runtime.LockOSThread() // capabilities are those of a thread
	unix.CloseOnExec(fdOrder)
	unix.CloseOnExec(fdStatus)
	var o order
	if json.NewDecoder(os.NewFile(fdOrder, "order")).Decode(&o) != nil {
		return true
	}
	f := o.become()
	_ = json.NewEncoder(os.NewFile(fdStatus, "status")).Encode(f) // fails when the parent is dead
	return true
}

// become makes the sandbox and executes the program. It returns only if that fails.
func (o *order) become() failure {
	err := o.Config.make()
	if err == nil {
		err = dropCapabilities()
	}
	if err == nil {
		err = o.dieWithParent()
	}
	if err == nil && o.Config.OwnProcesses {
		const noRandomAddresses = 0x0040000 // ADDR_NO_RANDOMIZE of personality(2)
		_, _, _ = unix.Syscall(unix.SYS_PERSONALITY, noRandomAddresses, 0, 0)
	}
	if err != nil {
		f := failure{Op: "make sandbox", Msg: err.Error()}
		if e, ok := errors.AsType[*Error](err); ok {
			f.Op, f.Msg, f.Refused = e.Op, e.Err.Error(), e.Refused
		}
		return f
	}
	if err = syscall.Chdir(o.Program.Dir); err == nil {
		err = syscall.Exec(o.Program.Path, o.Program.Args, o.Program.Env) //nolint:gosec // what this is for
	}
	f := failure{Op: "execute program", Msg: err.Error(), Exec: true}
	_ = errors.As(err, &f.Errno)
	return f
}

// refusal reports whether an error of a system call means that the system has no sandboxes
// for this user: by its settings, a security module or a filter of system calls, or because
// the kernel is too old.
func refusal(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EINVAL, syscall.ENODEV,
		syscall.ENOSPC, syscall.EUSERS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// dieWithParent makes the kernel kill the program when its parent ends.
func (o *order) dieWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return &Error{Op: "set signal for the death of the parent", Err: err}
	}
	alive := os.Getppid() == o.Parent
	if o.Config.OwnProcesses { // the parent has no number here; it reads the status
		status := []unix.PollFd{{Fd: fdStatus}}
		_, err := unix.Poll(status, 0)
		alive = err == nil && status[0].Revents&unix.POLLERR == 0
	}
	if !alive {
		return &Error{Op: "find parent", Err: syscall.ESRCH}
	}
	return nil
}

// dropCapabilities gives up all capabilities, for programs that are executed later, too.
func dropCapabilities() error {
	const last = 63
	for c := range uintptr(last + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return &Error{Op: "drop capabilities", Err: err, Refused: refusal(err)}
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	for _, err := range []error{unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), unix.Capset(&head, &none[0])} {
		if err != nil {
			return &Error{Op: "drop capabilities", Err: err, Refused: refusal(err)}
		}
	}
	return nil
}
