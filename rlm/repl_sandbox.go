package rlm

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
	"github.com/perdure/perdure/rlm/internal/repl/engine/starlark"
)

// ReplSandbox starts the Python that runs the code of REPLs, empty for python3, and returns the
// layers that confine the code on this machine: "namespaces", "Landlock", "seccomp" or
// "sandbox-exec". checks are what the process tried before any code, and could not do. The error
// says why code would be refused. It is for diagnosis; a run starts an engine of its own.
func ReplSandbox(ctx context.Context, program string) (layers, checks []string, err error) {
	var e python.Engine
	s, err := e.Start(ctx, python.Config{Program: program})
	if f, ok := isEngine(err); ok {
		return nil, nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "start REPL", Msg: f.Msg, Hint: f.Hint, Err: f.Err}
	}
	if err != nil {
		return nil, nil, err
	}
	confined := s.Sandbox()
	return confined.Layers, confined.Checks, s.Close()
}

// EnterEngine makes this program able to run REPLs in Starlark, whose interpreter is this program,
// started again in a sandbox. In that process it does not return; in all others it returns at
// once. Programs call it at the beginning of main, and of TestMain in tests, after
// worker.EnterGuard. REPLs in Python do not need it.
func EnterEngine() { starlark.Enter() }
