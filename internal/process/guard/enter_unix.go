//go:build unix

package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// File descriptors of the guard.
const (
	fdControl = 3
	fdStatus  = 4
	fdHold    = 5 // and the following
)

// Enter makes this process able to start guarded children. In an ordinary
// process it returns at once; in a guard process it does the guard's work and
// never returns. It must be the first call of main or TestMain, before flags
// are read and goroutines are started.
func Enter() {
	if sandbox.Enter() {
		os.Exit(1)
	}
	if len(os.Args) == 1 && os.Args[0] == guardName {
		os.Exit(runGuard())
	}
	entered.Store(true)
}

// runGuard is the guard's main. It returns the exit status, which means nothing: what
// happened to the child is in the reports.
func runGuard() int {
	// The child is killed by the system when the thread that started it ends.
	runtime.LockOSThread()
	// Caught instead of ignored, because a child inherits ignored signals.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	unix.CloseOnExec(fdControl)
	unix.CloseOnExec(fdStatus)
	control := bufio.NewReader(os.NewFile(fdControl, "control"))
	status := os.NewFile(fdStatus, "status")

	var o order
	line, err := control.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		return 2
	}
	for fd := fdHold; fd < fdHold+o.Hold; fd++ {
		unix.CloseOnExec(fd)
	}
	adopted := adoptOrphans()
	pid, layers, err := o.start()
	if err != nil {
		send(status, startFailure(err))
		return 1
	}
	silence()
	send(status, report{Pid: pid, Layers: layers})

	w := &warden{pid: pid, grace: o.Grace, adopted: adopted}
	asked := make(chan byte)
	go readAsked(control, asked)
	reaped := make(chan reaping)
	go reap(pid, reaped)
	send(status, w.watch(asked, signals, reaped))
	return 0
}

// start starts the child.
func (o *order) start() (pid int, layers []string, err error) {
	if o.Sandbox != nil {
		return startInSandbox(o)
	}
	protect()
	pid, err = syscall.ForkExec(o.Path, o.Args, &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: childAttr(),
	})
	return pid, nil, err
}

func send(status io.Writer, r report) {
	line, err := json.Marshal(r)
	if err != nil {
		line = []byte(`{"msg":"report cannot be written"}`)
	}
	_, _ = status.Write(append(line, '\n')) // fails when the program is dead
}

func startFailure(err error) report {
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return report{Sandbox: e.Op, Refused: e.Refused, Msg: e.Err.Error()}
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return report{Errno: errno}
	}
	return report{Msg: err.Error()}
}

// silence closes the guard's copies of the child's input and output, so that the program
// sees them close when the child closes them.
func silence() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		for fd := range 3 {
			_ = unix.Close(fd)
		}
		return
	}
	defer null.Close()
	for fd := range 3 {
		_ = dup2(int(null.Fd()), fd)
	}
}

// readAsked passes on the program's requests; the death of the program is a request to
// kill. It runs until the process ends.
func readAsked(control *bufio.Reader, asked chan<- byte) {
	for {
		b, err := control.ReadByte()
		if err != nil {
			asked <- askKill
			return
		}
		asked <- b
	}
}

// reaping reports that children ended.
type reaping struct {
	// main is set when the child itself was among them, with its status.
	main   bool
	status syscall.WaitStatus
	// none is set in the last report, when no children are left.
	none bool
}

// reap waits for children, the adopted ones too, until there are none.
func reap(main int, reaped chan<- reaping) {
	for {
		var r reaping
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		for err == nil && pid > 0 {
			if pid == main {
				r.main, r.status = true, status
			}
			pid, err = syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		}
		if err == syscall.EINTR {
			err = nil
		}
		r.none = err != nil
		reaped <- r
		if r.none {
			return
		}
	}
}
