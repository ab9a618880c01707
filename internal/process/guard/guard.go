// Package guard runs child processes that cannot outlive the program that
// started them, not even when it is killed with kill -9.
//
// Between the program and the child stands a small process, the guard: the
// same binary started again. It holds a pipe from the program. When the pipe
// closes, because the program died or because it asks, the guard kills the
// child and everything the child started, waits until all of them are gone,
// and only then ends itself. Files given in [Config].Hold stay open in the
// guard until then, so that a lock on one of them tells others when it is safe
// to take over.
//
// A program that uses the package calls [Enter] first in main, and its tests in
// TestMain. Programs of other modules call worker.EnterGuard, which is the same.
//
// # What it reaches
//
// The child gets a session and a process group of its own; it has no
// controlling terminal and does not receive a terminal's Ctrl-C.
//
// On Linux the guard adopts every orphan among the child's descendants, so
// that all of them are found and killed whatever session or group they moved
// to. On macOS it finds descendants by their parents and by the session: a
// process that starts a session of its own and whose parent has ended escapes.
// On other Unix systems it reaches the child's process group. On Windows there
// is not a guard: the child runs directly, is killed alone when the context ends,
// and survives the death of the program; Hold has no effect.
//
// # When the guard is killed
//
// Then Wait returns [ErrGuardLost]. On Linux the child dies with its guard, and what
// the child started becomes a child of the program, which kills and reaps it before
// Wait returns. For that the program is a child subreaper (see prctl(2)) from the
// start of its first guard to the end of its last one. It recognises the processes by
// a resource limit that they inherit and cannot raise; it neither signals nor waits
// for any other child. Elsewhere the program kills the child's group.
//
// On Linux a guard that is stopped by a signal is continued; after a few times it is
// killed and counts as lost. A process of the same user cannot trace it. It can kill
// the program and the guard at the same moment: then what the child started in other
// groups stays.
package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// DefaultGrace is the time between asking and killing when [Config].Grace is 0.
const DefaultGrace = 5 * time.Second

// ErrNotEntered is returned by [Start] in a program that did not call [Enter].
var ErrNotEntered = errors.New("programs cannot be started: call worker.EnterGuard first in main, and in TestMain " +
	"of tests")

// ErrGuardLost is returned by [Start] and [Process.Wait] when the guard ended without
// reporting how the child ended. A guard does not end before its child, so it was killed:
// by the child, a program that it started, or another process of the user.
var ErrGuardLost = errors.New("guard process was killed")

// entered reports whether this process called Enter. It is global because it is a property
// of the process that every user of the package has to see.
var entered atomic.Bool //nolint:gochecknoglobals // see above

// Entered reports whether this process called [Enter].
func Entered() bool { return entered.Load() }

// Config describes a child process.
type Config struct {
	// Path is the program: a name looked up in PATH, or a path with a
	// separator, relative to Dir. Required.
	Path string
	// Args are the arguments without the program's name.
	Args []string
	// Env is the environment; nil means that of this process. Of variables
	// given twice the last one counts.
	Env []string
	// Dir is the folder the child starts in; empty means this process's. On
	// Unix the child's PWD is this folder whatever Env contains: some programs
	// take their working folder from it.
	Dir string
	// Stdin, Stdout, Stderr: nil is the null device. An *os.File is given to
	// the child as it is; others are copied from and to. Stdout and Stderr
	// are written by at most one goroutine each, unless they are the same.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Hold are files that stay open in the guard, and are closed to the child,
	// until the child and its descendants are gone. A lock taken with flock on
	// one of them stays taken that long, unless the program unlocks it.
	Hold []*os.File
	// Sandbox, if set, is what the child can reach; see package sandbox. Only Linux has it, and
	// macOS for what has Confine: if none can be made, Start returns a *sandbox.Error.
	Sandbox *sandbox.Config
	// Grace is how long the child may take to end after it was asked with
	// SIGTERM, before it is killed. 0: DefaultGrace; negative: killed at once.
	// After the death of the program there is no grace.
	Grace time.Duration
}

func (c Config) withDefaults() Config {
	c.Grace = max(cmp.Or(c.Grace, DefaultGrace), 0)
	// Of variables given twice the last one counts, as in os/exec, which sets PWD
	// only for a nil Env.
	if dir, err := filepath.Abs(c.Dir); c.Env != nil && c.Dir != "" && err == nil && runtime.GOOS != "windows" {
		c.Env = append(slices.Clip(c.Env), "PWD="+dir)
	}
	c.Env = (&exec.Cmd{Env: c.Env, Dir: c.Dir}).Environ()
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("no Path"))
	}
	for _, text := range slices.Concat([]string{c.Path, c.Dir}, c.Args, c.Env) {
		if strings.IndexByte(text, 0) >= 0 {
			errs = append(errs, fmt.Errorf("%.40q holds a NUL byte", text))
		}
	}
	for i, f := range c.Hold {
		if f == nil {
			errs = append(errs, fmt.Errorf("nil in Hold[%d]", i))
		}
	}
	return errors.Join(errs...)
}

// Find returns the path of a program: name itself if it contains a separator, else its
// place in PATH. If there is none, the error is an [*exec.Error] or [*fs.PathError].
func Find(name, dir string) (string, error) {
	if !strings.ContainsRune(name, filepath.Separator) && !strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	full := name
	if dir != "" && !filepath.IsAbs(name) {
		full = filepath.Join(dir, name)
	}
	if _, err := exec.LookPath(full); err != nil {
		return "", err
	}
	return filepath.Abs(full)
}

// Missing reports whether an error of [Find] or [Start] says that there is no such
// program, or that it cannot be executed.
func Missing(err error) bool {
	return slices.ContainsFunc([]error{exec.ErrNotFound, fs.ErrNotExist, fs.ErrPermission, syscall.EISDIR,
		syscall.ENOEXEC},
		func(target error) bool { return errors.Is(err, target) })
}

// ExitError reports that a child did not exit with status 0.
type ExitError struct {
	// Code is the exit status; -1 when a signal ended the child.
	Code int
	// Signal is the name of the signal that ended the child, for example
	// "killed"; empty when it exited.
	Signal string
}

// Error returns how the child ended.
func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "ended by signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Run starts a child and waits for it; see [Start] and [Process.Wait].
func Run(ctx context.Context, cfg Config) error {
	p, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	return p.Wait()
}

// waitError is what Wait returns for a child that ended with result, and was
// stopped because of the end of a context if stopped is not nil: then also a
// child that exited with status 0 may not have finished.
func waitError(stopped, result error) error {
	switch {
	case stopped == nil:
		return result
	case result == nil:
		return fmt.Errorf("stopped: %w", stopped)
	}
	return fmt.Errorf("stopped: %w (%w)", stopped, result)
}
