// Package starlark runs the blocks of a REPL in Starlark, a small language like Python: without
// exceptions, classes, f-strings and imports. It needs no other program, and nothing of the
// system can be reached from it. The interpreter is a process of its own all the same, which is
// this program, see [Enter].
//
// The modules re (with Go's regular expressions), json and math are there.
package starlark

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/pipe"
)

// role is the argument of this program with which it is the interpreter.
const role = "starlark-engine"

// entered reports whether this process called Enter. It is global because it is a property of
// the process: without it, its file started again would be an ordinary program.
var entered atomic.Bool //nolint:gochecknoglobals // see above

// Config configures a session.
type Config struct {
	Contents engine.Contents
	Limits   engine.Limits
	// Tools are the names of the functions by which the code calls tools of the user.
	Tools []string
	// Hidden are folders that the interpreter must not read.
	Hidden []string
	// Unsandboxed lets the code run if no sandbox can be made.
	Unsandboxed bool
	// LazyBytes is the size of a context from which it is read in parts; 0 means 64 MiB.
	LazyBytes int64
	// KeepNames leaves the names of the functions that only this program has as the code binds them, has
	// them under perdure as well, and reads the variable answer at the end of a block.
	KeepNames bool
}

// Start starts an interpreter. Without a sandbox it refuses with KindUnsandboxed, unless the
// configuration says otherwise.
func Start(ctx context.Context, cfg Config) (engine.Session, error) {
	if cfg.LazyBytes == 0 {
		cfg.LazyBytes = 64 << 20
	}
	if !entered.Load() {
		return nil, &engine.Error{Kind: engine.KindMissing, Msg: "this program cannot run Starlark",
			Hint: "call rlm.EnterEngine at the beginning of main"}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg.Limits.Processes = -1 // the code can start none, and the interpreter has threads
	return pipe.StartConfined(ctx, pipe.Config{Contents: cfg.Contents, Tools: cfg.Tools, Limits: cfg.Limits,
		LazyBytes: cfg.LazyBytes, KeepNames: cfg.KeepNames,
		Command: guard.Config{Path: exe, Args: []string{role}, Env: []string{"GOTRACEBACK=none", "GOMAXPROCS=2"}}},
		pipe.Confinement{Readable: []string{exe}, Hidden: cfg.Hidden, Unsandboxed: cfg.Unsandboxed})
}

// Enter is the interpreter in a process that [Start] started, and ends it. In other processes it
// returns at once. It is called first in main, after guard.Enter.
func Enter() {
	if len(os.Args) != 2 || os.Args[1] != role {
		entered.Store(true)
		return
	}
	status := 0
	if serve(pipe.NewLink(os.Stdin, os.Stdout)) != nil {
		status = 1
	}
	os.Exit(status)
}
