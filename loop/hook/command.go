package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// Variables that programs get in their environment.
const (
	VarHook      = "PERDURE_HOOK"
	VarLoop      = "PERDURE_LOOP"
	VarIteration = "PERDURE_ITERATION"
)

// ExitBlock is the exit status with which a program says BLOCK.
const ExitBlock = 2

// DefaultGrace is how long a program may take to end after SIGTERM.
const DefaultGrace = 500 * time.Millisecond

// maxStderrBytes is how much of the end of standard error is kept.
const maxStderrBytes = 8 << 10

// CommandConfig configures [NewCommand].
type CommandConfig struct {
	// Program is a name looked up in PATH, or a path with a separator, relative to
	// Dir; Args are its arguments. It is run without a shell.
	Program string
	Args    []string
	// Shell, instead of Program, is a command line for "sh -c" (on Windows
	// "cmd /c"), as coding agents take for their hooks.
	Shell string
	// Dir is the folder the program runs in; empty is this process's.
	Dir string
	// Env are further variables, "NAME=value"; the program also gets those of
	// this process. VarHook, VarLoop and VarIteration cannot be overridden.
	Env []string
	// Hold are files that stay open until the program and its descendants are
	// gone: another process that waits for a lock on one of them can then take over.
	Hold []*os.File
	// Grace is how long the program may take to end after SIGTERM. 0:
	// DefaultGrace; negative: it is killed at once.
	Grace time.Duration
	// MaxReply is the most it may write to standard output, in bytes; with more
	// it is killed. 0: MaxReplyBytes, which is also the most.
	MaxReply int
}

func (c CommandConfig) withDefaults() CommandConfig {
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.MaxReply = cmp.Or(c.MaxReply, MaxReplyBytes)
	if c.Shell == "" {
		return c
	}
	shell, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/c"
	}
	c.Program, c.Args = shell, []string{flag, c.Shell}
	return c
}

func (c CommandConfig) validate() error {
	var errs []error
	switch {
	case c.Shell == "" && c.Program == "":
		errs = append(errs, errors.New("command: is missing"))
	case c.Shell != "" && (c.Program != "" || len(c.Args) > 0):
		errs = append(errs, errors.New("command: Shell and Program exclude each other"))
	case strings.TrimSpace(c.Shell+c.Program) == "":
		errs = append(errs, errors.New("command: is empty"))
	}
	if strings.IndexByte(c.Program+c.Shell+strings.Join(c.Args, ""), 0) >= 0 {
		errs = append(errs, errors.New("command: contains a NUL byte"))
	}
	return errors.Join(append(errs, checkMaxReply(c.MaxReply))...)
}

func checkMaxReply(n int) error {
	if n < 0 || n > MaxReplyBytes {
		return fmt.Errorf("max reply: is %d; it is 1 to %d", n, MaxReplyBytes)
	}
	return nil
}

// Command is a [Handler] that runs a program for each message; see the package
// comment for what passes between the two. The program runs under a guard
// process: when its time is over it is ended together with everything it
// started, and nothing it started outlives the reply. A program that uses it
// calls worker.EnterGuard first in main.
type Command struct {
	cfg CommandConfig
}

// NewCommand checks the configuration. It does not look for the program, which
// may be made later: one that is missing is a [FaultError] of kind [FaultStart].
func NewCommand(cfg CommandConfig) (*Command, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure handler: %w", err)
	}
	return &Command{cfg: cfg.withDefaults()}, nil
}

// Handle runs the program. The error is a [*FaultError].
func (c *Command) Handle(ctx context.Context, m Message) (Reply, error) {
	doc, err := m.Encode()
	if err != nil {
		return Reply{}, &FaultError{Kind: FaultMessage, Msg: "the program was not run", Err: err}
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	out := &capped{limit: c.cfg.MaxReply, full: stop}
	said := &clip.Tail{Limit: maxStderrBytes}
	err = guard.Run(run, guard.Config{
		Path: c.cfg.Program, Args: c.cfg.Args, Dir: c.cfg.Dir, Env: c.environ(m),
		Stdin: bytes.NewReader(append(doc, '\n')), Stdout: out, Stderr: said,
		Hold: c.cfg.Hold, Grace: c.cfg.Grace,
	})
	stderr := clip.End(clean(said.String()), maxStderrBytes)
	switch {
	case out.over:
		return Reply{}, &FaultError{
			Kind: FaultTooLarge, Msg: "the program was stopped", Detail: stderr,
			Err: &LimitError{What: "standard output", Limit: c.cfg.MaxReply},
		}
	case ctx.Err() != nil:
		fault := stopped(ctx)
		fault.Detail = stderr
		return Reply{}, fault
	case err != nil:
		return exited(err, stderr)
	}
	return readReply(out.kept, stderr)
}

func (c *Command) environ(m Message) []string {
	return slices.Concat(os.Environ(), c.cfg.Env, []string{
		VarHook + "=" + string(m.Metadata.HookName),
		VarLoop + "=" + m.Metadata.LoopID,
		VarIteration + "=" + strconv.Itoa(m.Metadata.Iteration),
	})
}

// exited is the reply of a program that did not end with status 0.
func exited(err error, stderr string) (Reply, error) {
	var exit *guard.ExitError
	if !errors.As(err, &exit) {
		kind := FaultStart
		if errors.Is(err, guard.ErrGuardLost) {
			kind = FaultExit
		}
		return Reply{}, &FaultError{Kind: kind, Msg: "run the program", Detail: stderr, Err: model.RedactError(err)}
	}
	if exit.Code == ExitBlock {
		return NewReply(Block, clip.Bytes(cmp.Or(stderr, "the handler gave no reason"), MaxContentBytes)), nil
	}
	last := clip.LastLine(stderr)
	return Reply{}, &FaultError{Kind: FaultExit, Msg: strings.TrimPrefix(last+": the program ended", ": "),
		Detail: stderr, Err: exit}
}

// readReply parses the reply of a program or an endpoint; empty text is ALLOW.
// diagnostics is the detail of a fault, such as the program's standard error.
func readReply(text []byte, diagnostics string) (Reply, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return NewReply(Allow, ""), nil
	}
	reply, err := DecodeReply(text)
	if err == nil {
		return reply, nil
	}
	kind := FaultReply
	if _, ok := errors.AsType[*LimitError](err); ok {
		kind = FaultTooLarge
	}
	detail := cmp.Or(diagnostics, clip.Bytes(clean(string(text)), maxFaultBytes))
	return reply, &FaultError{Kind: kind, Msg: "invalid reply", Detail: detail, Err: model.RedactError(err)}
}

// capped keeps what is written to it up to a limit, and beyond it calls full.
type capped struct {
	limit int
	kept  []byte
	over  bool
	full  func()
}

// Write keeps p, or fails when that would be too much.
func (c *capped) Write(p []byte) (int, error) {
	if len(c.kept)+len(p) > c.limit {
		c.over = true
		c.full()
		return 0, &LimitError{What: "standard output", Limit: c.limit}
	}
	c.kept = append(c.kept, p...)
	return len(p), nil
}
