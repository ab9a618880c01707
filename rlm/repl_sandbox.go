package rlm

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// ReplLayers starts the Python that runs the code of REPLs, empty for python3, and returns what
// confines the code on this machine: "namespaces", "Landlock", "seccomp". The error says why code
// would be refused. It is for diagnosis; a run starts an engine of its own.
func ReplLayers(ctx context.Context, program string) ([]string, error) {
	var e python.Engine
	s, err := e.Start(ctx, python.Config{Program: program})
	if f, ok := isEngine(err); ok {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "start REPL", Msg: f.Msg, Hint: f.Hint, Err: f.Err}
	}
	if err != nil {
		return nil, err
	}
	layers := s.Layers()
	return layers, s.Close()
}
