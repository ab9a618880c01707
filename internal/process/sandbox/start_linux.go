package sandbox

import (
	"encoding/json"
	"errors"
	"math"
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

type order struct {
	Config  Config  `json:"config"`
	Program Program `json:"program"`
	// Parent is the process with which the program ends.
	Parent int `json:"parent"`
	// Bare is set if the process has no namespaces of its own.
	Bare bool `json:"bare,omitempty"`
}

// result is what the process reports: the layers of the sandbox before it becomes the program,
// or why it does not.
type result struct {
	Layers []string `json:"layers,omitempty"`
	failure
}

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

// Start starts a program as a child of the calling thread and returns its process ID and the
// layers of its sandbox. An *Error means that no sandbox could be made; other errors are those
// of executing the program, and of entering its folder.
func Start(cfg *Config, p Program, by Maker) (pid int, layers []string, err error) {
	o := order{Config: *cfg, Program: p, Parent: os.Getpid()}
	pid, layers, err = o.start(by)
	if e, ok := errors.AsType[*Error](err); ok && e.Refused && cfg.Confine != nil {
		o.Bare = true
		if pid, layers, without := o.start(by); without == nil {
			return pid, layers, nil
		}
	}
	return pid, layers, err
}

// start starts the process that carries out the order.
func (o *order) start(by Maker) (pid int, layers []string, err error) {
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return 0, nil, &Error{Op: "make pipe", Err: err}
	}
	defer orderW.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return 0, nil, errors.Join(&Error{Op: "make pipe", Err: err}, orderR.Close())
	}
	defer statusR.Close()
	pid, err = syscall.ForkExec(by.Exe, []string{name}, &syscall.ProcAttr{Env: by.Env, Sys: o.attributes(by),
		Files: []uintptr{0, 1, 2, orderR.Fd(), statusW.Fd()}})
	if err := errors.Join(orderR.Close(), statusW.Close()); err != nil {
		return 0, nil, &Error{Op: "close pipe", Err: err}
	}
	if err != nil {
		return 0, nil, &Error{Op: "create namespaces", Err: err, Refused: refusal(err)}
	}
	by.Created()
	err = json.NewEncoder(orderW).Encode(o)
	var r result
	if err == nil {
		reports := json.NewDecoder(statusR)
		// A successful execve closes the pipe after the first report.
		if ended := reports.Decode(&r); ended != nil || r.Layers != nil && reports.Decode(&r) != nil {
			return pid, r.Layers, nil
		}
	}
	var status syscall.WaitStatus
	_, waited := syscall.Wait4(pid, &status, 0, nil)
	for errors.Is(waited, syscall.EINTR) {
		_, waited = syscall.Wait4(pid, &status, 0, nil)
	}
	switch {
	case err != nil:
		return 0, nil, &Error{Op: "send order", Err: err}
	case r.Exec:
		return 0, nil, r.Errno
	}
	return 0, nil, &Error{Op: r.Op, Err: errors.New(r.Msg), Refused: r.Refused}
}

// attributes are those of the process: with the namespaces of the sandbox, unless it is bare.
func (o *order) attributes(by Maker) *syscall.SysProcAttr {
	attr := *by.Attr
	if o.Bare {
		return &attr
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	if !o.Config.Network {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if o.Config.OwnProcesses {
		attr.Cloneflags |= syscall.CLONE_NEWPID
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	return &attr
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
	reports := json.NewEncoder(os.NewFile(fdStatus, "status"))
	f := o.become(reports)
	_ = reports.Encode(result{failure: f}) // fails when the parent is dead
	return true
}

// become makes the sandbox and executes the program. It returns only if that fails.
func (o *order) become(reports *json.Encoder) failure {
	var err error
	if !o.Bare {
		err = o.Config.make()
	}
	if err == nil {
		err = o.dropCapabilities()
	}
	if err == nil {
		err = o.dieWithParent()
	}
	if err == nil && o.Config.OwnProcesses {
		const noRandomAddresses = 0x0040000 // ADDR_NO_RANDOMIZE of personality(2)
		_, _, _ = unix.Syscall(unix.SYS_PERSONALITY, noRandomAddresses, 0, 0)
	}
	if err == nil {
		err = closeOthers()
	}
	var layers []string
	if err == nil {
		layers, err = o.confine()
	}
	if err == nil {
		err = reports.Encode(result{Layers: layers})
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

// closeOthers lets the program have its standard streams only. What perdure itself was started
// with, such as a file that a shell opened or a connection, is beyond all layers of a sandbox.
func closeOthers() error {
	const first = 3
	if err := unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return &Error{Op: "close descriptors", Err: err, Refused: refusal(err)}
	}
	return nil
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
	if o.Config.OwnProcesses && !o.Bare { // the parent has no number here; it reads the status
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
func (o *order) dropCapabilities() error {
	const last = 63
	for c := range uintptr(last + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) &&
			!o.Bare { // without namespaces, an ordinary user may not; what is executed gets none back
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
