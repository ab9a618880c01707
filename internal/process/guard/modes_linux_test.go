package guard_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/process/guard"
)

// special does what a mode of this system says, and reports whether there is one.
func special(mode string) bool {
	switch mode {
	case "headless":
		beHeadless()
	case "reaper":
		showAdoption()
	case "init":
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		showAdoption()
	case "traced":
		beTraced()
	case "below":
		pid, err := strconv.Atoi(os.Args[1])
		fmt.Println(guard.Below(pid), err)
	case "guarded":
		limit, err := strconv.ParseUint(os.Args[1], 10, 64)
		if err == nil {
			err = unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: limit, Max: limit}, nil)
		}
		fmt.Println(guard.Guarded(), err)
	case "tracer":
		fmt.Println(syscall.PtraceAttach(os.Getppid()))
	default:
		return false
	}
	return true
}

// beHeadless ends its first thread, prints its process ID and waits for ever.
func beHeadless() {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() { // the first goroutine has moved to another thread
		fmt.Println(syscall.Exec(os.Args[0], os.Args, os.Environ()))
		return
	}
	debug.SetGCPercent(-1) // it would wait for the first thread
	go func() {
		stat := fmt.Sprintf("/proc/self/task/%d/stat", os.Getpid())
		for {
			if text, err := os.ReadFile(stat); err != nil || bytes.Contains(text, []byte(") Z ")) {
				break
			}
		}
		fmt.Println(os.Getpid())
		_ = unix.Pause()
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// showAdoption prints whether this process adopts orphans before, while and after a child
// runs.
func showAdoption() {
	adopts := func() (is int32) {
		_ = unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0)
		return is
	}
	before := adopts()
	p, err := guard.Start(context.Background(), guard.Config{Path: "true"})
	if err != nil {
		fmt.Println(err)
		return
	}
	during := adopts()
	err = p.Wait()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(before, during, adopts())
}

// beTraced runs a child that traces its guard.
func beTraced() {
	err := guard.Run(context.Background(), guard.Config{Path: "/proc/self/exe", Env: []string{modeVar + "=tracer"},
		Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Println(err)
	}
}
