// Package python runs the blocks of a REPL with CPython, in a process that is confined by the
// operating system.
package python

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/pipe"
)

//go:embed runner.py
var runner string

//go:embed reference.py
var reference string

// program is the code that the interpreter runs.
func program() string { return runner + "\n\n" + reference + "\n\nmain()\n" }

// Config configures a session.
type Config struct {
	// Program is the Python interpreter; empty means python3.
	Program  string
	Contents engine.Contents
	Limits   engine.Limits
	// Tools are the names of the functions by which the code calls tools of the user.
	Tools []string
	// Hidden are folders that the code must not read, such as that of the store.
	Hidden []string
	// Unsandboxed lets the code run if no sandbox can be made.
	Unsandboxed bool
	// LazyBytes is the size of a context from which it is read in parts; 0 means 64 MiB.
	LazyBytes int64
	// KeepNames leaves the names of the functions that only this program has as the code binds them, has
	// them under perdure as well, and reads the variable answer at the end of a block.
	KeepNames bool
	// Reference, if set, runs the blocks by the rules of the reference implementation.
	Reference *engine.Reference
}

// Engine starts sessions. The zero value is ready for use, by many goroutines.
type Engine struct {
	mu    sync.Mutex // guards known
	known map[string]*interpreter
}

// Start starts an interpreter. Without a sandbox it refuses with KindUnsandboxed, unless the
// configuration says otherwise.
func (e *Engine) Start(ctx context.Context, cfg Config) (engine.Session, error) {
	if cfg.LazyBytes == 0 {
		cfg.LazyBytes = 64 << 20
	}
	if cfg.Program == "" {
		cfg.Program = "python3"
	}
	found, err := e.find(ctx, cfg.Program)
	if err != nil {
		return nil, err
	}
	return pipe.StartConfined(ctx, pipe.Config{Contents: cfg.Contents, Tools: cfg.Tools, Limits: cfg.Limits,
		LazyBytes: cfg.LazyBytes, KeepNames: cfg.KeepNames, Reference: cfg.Reference,
		Command: guard.Config{Path: found.Executable, Args: []string{"-s", "-u", "-c", program()}, Env: environment()}},
		pipe.Confinement{Readable: found.paths(), Hidden: cfg.Hidden, Unsandboxed: cfg.Unsandboxed,
			Executed: found.relaunched(), Checked: true})
}

// environment is all that the code has of one: fixed hashes, time zone and encoding.
func environment() []string {
	return []string{"PYTHONHASHSEED=0", "TZ=UTC", "LC_ALL=C.UTF-8", "PYTHONUTF8=1", "PYTHONNOUSERSITE=1",
		"PYTHONDONTWRITEBYTECODE=1", "PATH="}
}

// interpreter is where a Python is.
type interpreter struct {
	Executable string   `json:"executable"`
	Version    []int    `json:"version"`
	Prefixes   []string `json:"prefixes"`
}

// paths are the folders that it reads.
func (i *interpreter) paths() []string {
	return append([]string{i.Executable, "/etc/ld.so.cache"}, i.Prefixes...)
}

// relaunched are the programs that the interpreter of a framework of macOS replaces itself by.
func (i *interpreter) relaunched() []string {
	var programs []string
	for _, prefix := range i.Prefixes {
		programs = append(programs, filepath.Join(prefix, "Resources", "Python.app", "Contents", "MacOS", "Python"))
	}
	return programs
}

// oldest is the oldest version that has all that the runner uses.
func oldest() []int { return []int{3, 9} }

// describe prints where the interpreter is.
const describe = `import json, sys
print(json.dumps({"executable": sys.executable, "version": list(sys.version_info[:2]),
    "prefixes": sorted({sys.prefix, sys.base_prefix, sys.exec_prefix})}))`

// find asks an interpreter where it is. That is remembered: to ask takes as long as to start it.
func (e *Engine) find(ctx context.Context, program string) (*interpreter, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.known[program]; found != nil {
		return found, nil
	}
	var out, errs bytes.Buffer
	err := guard.Run(ctx, guard.Config{Path: program, Args: []string{"-I", "-c", describe}, Stdout: &out,
		Stderr: &errs})
	found := new(interpreter)
	missing := &engine.Error{Kind: engine.KindMissing, Hint: "install Python 3.9 or later, or name one with --repl-python"}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, guard.ErrNotEntered):
		return nil, err
	case pipe.Killed(err):
		return nil, &engine.Error{Kind: engine.KindKilled, Err: err, Msg: program + " ended while it started"}
	case err != nil:
		missing.Msg, missing.Err = fmt.Sprintf("%s could not be started", program), err
		return nil, missing
	case json.Unmarshal(out.Bytes(), found) != nil:
		missing.Msg = program + " is not Python: it does not run Python code"
		return nil, missing
	case len(found.Version) < 2 || found.Version[0] < oldest()[0] ||
		found.Version[0] == oldest()[0] && found.Version[1] < oldest()[1]:
		missing.Msg = fmt.Sprintf("%s has version %v, and 3.9 is needed", program, found.Version)
		return nil, missing
	}
	if e.known == nil {
		e.known = make(map[string]*interpreter)
	}
	e.known[program] = found
	return found, nil
}
