//go:build !unix

package guard

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// Enter makes this process able to start children. There is no guard process
// on this system.
func Enter() { entered.Store(true) }

// Process is a running child. Its methods are safe for concurrent use, but
// Wait is called once.
type Process struct {
	cmd *exec.Cmd
	// ended is why the context given to Start ended, if it did.
	ended func() error
}

// Start starts a child, directly on this system. When ctx ends, the child is
// killed. Wait has to be called.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	if !entered.Load() {
		return nil, ErrNotEntered
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	if cfg.Sandbox != nil {
		return nil, &sandbox.Error{Op: "create namespaces", Err: sandbox.ErrUnsupported, Refused: true}
	}
	path, err := Find(cfg.Path, cfg.Dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, cfg.Args...)
	cmd.Env, cmd.Dir = cfg.Env, cfg.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cfg.Stdin, cfg.Stdout, cfg.Stderr
	cmd.WaitDelay = cfg.Grace + 1
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd: cmd, ended: ctx.Err}, nil
}

// Pid returns the child's process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Layers returns none: this system has no sandbox.
func (p *Process) Layers() []string { return nil }

// Stop kills the child: this system has no way to ask.
func (p *Process) Stop() { p.Kill() }

// Kill kills the child. It does not wait.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Wait waits until the child has ended and its output has been copied. A child
// that exited with another status than 0 is an [*ExitError]; if the context had
// ended, the error wraps ctx.Err() too.
func (p *Process) Wait() error {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = &ExitError{Code: exit.ExitCode()}
	}
	return waitError(p.ended(), err)
}
