//go:build unix

package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// guardName is the guard's argument 0. Enter recognises the guard by it, and so do users
// who list processes.
const guardName = "perdure-guard"

// What the program writes to the guard after the order.
const (
	askStop = 'T' // SIGTERM, grace, SIGKILL
	askKill = 'K' // SIGKILL
)

// ioDelay is how long copying the child's output may go on after everything is
// gone; it matters only for a process that escaped and holds the output open.
const ioDelay = 10 * time.Second

// order is the first line the guard reads.
type order struct {
	Path  string        `json:"path"`
	Args  []string      `json:"args"`
	Env   []string      `json:"env"`
	Dir   string        `json:"dir"`
	Grace time.Duration `json:"grace"`
	Hold  int           `json:"hold"`

	Sandbox *sandbox.Config `json:"sandbox,omitempty"`
}

// report is what the guard writes: one line when the child started or could
// not, one when all is over.
type report struct {
	Pid int `json:"pid,omitempty"`
	// Layers are those of the child's sandbox.
	Layers []string `json:"layers,omitempty"`

	Errno syscall.Errno `json:"errno,omitempty"`
	Msg   string        `json:"msg,omitempty"`
	// Sandbox is what failed if no sandbox could be made, Refused is set if the system
	// refuses it.
	Sandbox string `json:"sandbox,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	Code    int    `json:"code,omitempty"`
	Signal  int    `json:"signal,omitempty"`
}

// Process is a running child. Its methods are safe for concurrent use, but
// Wait is called once.
type Process struct {
	guard   *exec.Cmd
	control *os.File
	status  *os.File
	reports *bufio.Reader
	pid     int
	layers  []string
	ending  sync.WaitGroup // until the guard has ended and is not reaped
	waited  chan struct{}  // closed by Wait
	watcher sync.WaitGroup
	stopped error // why the context ended; to be read when watcher is done
}

// Start starts a child under a guard. When ctx ends, the child is stopped as
// by [Process.Stop]. Wait has to be called.
//
// It returns ErrNotEntered in a program that did not call Enter, an
// [*exec.Error] when there is no such program, an [*fs.PathError] when the
// system refuses to run it, and a [*sandbox.Error] when no sandbox can be made.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	if !entered.Load() {
		return nil, ErrNotEntered
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	path, err := Find(cfg.Path, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p := &Process{waited: make(chan struct{})}
	ownGuards().enter()
	if err := p.startGuard(cfg); err != nil {
		ownGuards().leave(0)
		return nil, fmt.Errorf("start guard process: %w", err)
	}
	if err := p.startChild(cfg, path); err != nil {
		_ = p.control.Close() // makes the guard end
		_ = p.reap(errors.Is(err, ErrGuardLost))
		_ = p.status.Close()
		return nil, err
	}
	p.watcher.Go(func() { p.watch(ctx) })
	return p, nil
}

// startGuard starts the guard and keeps this side of its two pipes.
func (p *Process) startGuard(cfg Config) error {
	exe, err := ownBinary()
	if err != nil {
		return err
	}
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return err
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, controlR.Close(), controlW.Close())
	}
	p.control, p.status, p.reports = controlW, statusR, bufio.NewReader(statusR)
	p.guard = &exec.Cmd{
		Path: exe, Args: []string{guardName}, Env: guardEnv(),
		Stdin: cfg.Stdin, Stdout: cfg.Stdout, Stderr: cfg.Stderr,
		ExtraFiles:  append([]*os.File{controlR, statusW}, cfg.Hold...),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   ioDelay,
	}
	err = p.guard.Start()
	runtime.KeepAlive(cfg.Hold)
	_ = controlR.Close()
	_ = statusW.Close()
	if err != nil {
		return errors.Join(err, controlW.Close(), statusR.Close())
	}
	ownGuards().add(p.guard.Process.Pid)
	p.ending.Go(func() { awaitEnd(p.guard.Process.Pid) })
	return nil
}

// reap waits for the end of the guard. What a lost guard left is ended first, because it
// may hold the output open that is copied until its end.
func (p *Process) reap(lost bool) error {
	if lost {
		_ = p.guard.Process.Kill() // it may have closed its pipe only
	}
	p.ending.Wait()
	if lost && p.pid > 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	if lost {
		ownGuards().endOrphans()
	}
	err := p.guard.Wait()
	ownGuards().leave(p.guard.Process.Pid)
	return err
}

// ownBinary returns the file that this process runs, even if it was replaced since.
func ownBinary() (string, error) {
	const self = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(self); err == nil {
			return self, nil
		}
	}
	return os.Executable()
}

// guardEnv is the guard's own environment; the child's travels in the order.
// Two of the guard's goroutines are always in blocking system calls: on a
// machine with two processors the third would wait 10 ms for its turn. A guard
// built with the race detector would sleep a second when it ends.
func guardEnv() []string {
	env := []string{"GOMAXPROCS=4", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"}
	if dir, ok := os.LookupEnv("GOCOVERDIR"); ok {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

// startChild sends the order and reads the result of the start.
func (p *Process) startChild(cfg Config, path string) error {
	line, err := json.Marshal(order{
		Path: path, Args: append([]string{cfg.Path}, cfg.Args...), Env: cfg.Env,
		Dir: cfg.Dir, Grace: cfg.Grace, Hold: len(cfg.Hold), Sandbox: cfg.Sandbox,
	})
	if err != nil {
		return err
	}
	if _, err := p.control.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send order to guard process: %w", err)
	}
	r, err := p.read()
	if err != nil {
		return fmt.Errorf("start child: %w", err)
	}
	if r.Errno != 0 {
		return &fs.PathError{Op: "fork/exec", Path: path, Err: r.Errno}
	}
	if r.Sandbox != "" {
		return &sandbox.Error{Op: r.Sandbox, Err: errors.New(r.Msg), Refused: r.Refused}
	}
	if r.Msg != "" {
		return errors.New("start child: " + r.Msg)
	}
	p.pid, p.layers = r.Pid, r.Layers
	return nil
}

func (p *Process) read() (report, error) {
	var r report
	line, err := p.reports.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return r, ErrGuardLost
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(line, &r)
}

// watch stops the child when the context ends.
func (p *Process) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
		p.stopped = ctx.Err()
		p.Stop()
	case <-p.waited:
	}
}

// Pid returns the child's process ID, which is also that of its group.
func (p *Process) Pid() int { return p.pid }

// Layers returns the layers of the child's sandbox, such as [sandbox.LayerSeccomp]; none
// without one.
func (p *Process) Layers() []string { return p.layers }

// Stop sends SIGTERM to the child and its descendants, and SIGKILL after the grace. It
// does not wait.
func (p *Process) Stop() { p.ask(askStop) }

// Kill kills the child and its descendants. It does not wait.
func (p *Process) Kill() { p.ask(askKill) }

func (p *Process) ask(what byte) {
	_, _ = p.control.Write([]byte{what}) // fails only when all is over
}

// Wait waits until the child and all its descendants are gone and its output
// has been copied. What the child left running when it ended is stopped as by
// Stop. What a lost guard left is killed; the error is then ErrGuardLost.
//
// The error of a child that exited with another status than 0 or was killed by a
// signal is an [*ExitError]; if the context had ended, it wraps ctx.Err() too.
func (p *Process) Wait() error {
	r, err := p.read()
	ioErr := p.reap(err != nil)
	close(p.waited)
	p.watcher.Wait()
	_ = p.control.Close()
	_ = p.status.Close()

	var exit *exec.ExitError
	switch {
	case err != nil:
		return waitError(p.stopped, err)
	case r.Signal != 0:
		return waitError(p.stopped, &ExitError{Code: -1, Signal: syscall.Signal(r.Signal).String()})
	case r.Code != 0:
		return waitError(p.stopped, &ExitError{Code: r.Code})
	case ioErr != nil && !errors.As(ioErr, &exit):
		return waitError(p.stopped, fmt.Errorf("copy the child's input and output: %w", ioErr))
	}
	return waitError(p.stopped, nil)
}
