// Package command makes a model of any program: the prompt and the documents
// go to its standard input as plain text, its standard output is the answer.
//
// An exit status other than 0 is a failure; the end of what the program wrote
// to its standard error is kept. The program runs under a guard process, so
// that neither it nor what it started outlives the call or this program. A program
// that uses the package calls worker.EnterGuard first in main.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

// Defaults of [Config].
const (
	// DefaultGrace is short, because a cancelled call has to end within a
	// second.
	DefaultGrace         = 500 * time.Millisecond
	DefaultMaxErrorBytes = 8 << 10
)

// The status with which a shell says that there is no such program, or that it
// cannot be run.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
)

// PromptVariable is the variable of the environment in which a program that reads text only, see
// [model.TextOnly], finds the prompt if it has at most 100,000 bytes.
const PromptVariable = "PERDURE_PROMPT"

// maxPromptVariable bounds it: Linux takes no variable of 128 KiB.
const maxPromptVariable = 100_000

// Config configures [New].
type Config struct {
	// Command is the command line. It is split into words as [Split] does, or
	// given to the shell as it is. Required.
	Command string
	// Shell runs Command with "sh -c" (on Windows "cmd /c").
	Shell bool
	// Dir is the folder the program runs in; empty is this process's.
	Dir string
	// Env are further variables, "NAME=value"; the program also gets those of
	// this process and those given with [WithEnv], which win in this order.
	Env []string
	// Hold are files that the guard process keeps open, and the program does not
	// get, until the program and everything it started are gone: a lock on one of
	// them tells another process when it may take over.
	Hold []*os.File
	// Grace is how long the program may take to end after SIGTERM.
	// 0: DefaultGrace; negative: it is killed at once.
	Grace time.Duration
	// MaxResponseBytes is the largest answer accepted; a program that writes
	// more is killed. 0: model.DefaultMaxResponseBytes.
	MaxResponseBytes int
	// MaxErrorBytes is how much of the end of standard error is kept.
	// 0: DefaultMaxErrorBytes.
	MaxErrorBytes int
	// Window is how many tokens a request may hold; 0 means no limit.
	Window int
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.MaxResponseBytes = cmp.Or(c.MaxResponseBytes, model.DefaultMaxResponseBytes)
	c.MaxErrorBytes = cmp.Or(c.MaxErrorBytes, DefaultMaxErrorBytes)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// words returns the program and its arguments.
func (c Config) words() ([]string, error) {
	if strings.TrimSpace(c.Command) == "" {
		return nil, errors.New("the command is empty")
	}
	if strings.IndexByte(c.Command, 0) >= 0 {
		return nil, errors.New("the command contains a NUL byte")
	}
	switch {
	case c.Shell && runtime.GOOS == "windows":
		return []string{"cmd", "/c", c.Command}, nil
	case c.Shell:
		return []string{"sh", "-c", c.Command}, nil
	}
	words, err := Split(c.Command)
	if err != nil {
		return nil, err
	}
	if words[0] == "" {
		return nil, errors.New("the name of the program is empty")
	}
	return words, nil
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, field string) {
		if !ok {
			errs = append(errs, errors.New(field+" is below 0"))
		}
	}
	check(c.MaxResponseBytes > 0, "MaxResponseBytes")
	check(c.MaxErrorBytes > 0, "MaxErrorBytes")
	check(c.Window >= 0, "Window")
	return errors.Join(errs...)
}

// Model asks a program. It is safe for concurrent use: each call is a process
// of its own.
type Model struct {
	cfg   Config
	words []string
}

// New checks the command and that there is such a program. The error is a
// [*model.Error].
func New(cfg Config) (*Model, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "configure command model", Err: err}
	}
	words, err := cfg.words()
	if err != nil {
		return nil, &model.Error{
			Kind: model.KindInvalid,
			Msg:  fmt.Sprintf("read command %q", model.Redact(cfg.Command)),
			Hint: "the command is split into words without a shell; ask for a shell to use pipes and variables",
			Err:  err,
		}
	}
	m := &Model{cfg: cfg, words: words}
	if _, err := guard.Find(words[0], cfg.Dir); err != nil {
		return nil, m.startError(err)
	}
	return m, nil
}

// Window returns the configured limit of a request in tokens, 0 for none.
func (m *Model) Window() int { return m.cfg.Window }

// Verbatim returns model.TextPrinted: a program can print a file as well as the reply of a model.
func (m *Model) Verbatim() model.TextKind { return model.TextPrinted }

// Generate runs the program once. Usage is estimated.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	input := model.RenderAll(req)
	out := &limited{stop: stop, to: model.Collector{Limit: m.cfg.MaxResponseBytes, OnText: req.OnText}}
	errs := &clip.Tail{Limit: m.cfg.MaxErrorBytes}
	env := slices.Concat(os.Environ(), m.cfg.Env, envOf(ctx))
	if req.Layout == model.TextOnly && len(req.Prompt) <= maxPromptVariable {
		env = append(env, PromptVariable+"="+req.Prompt)
	}
	start := time.Now()
	err := guard.Run(ctx, guard.Config{
		Path: m.words[0], Args: m.words[1:], Dir: m.cfg.Dir,
		Env:   env,
		Stdin: strings.NewReader(input), Stdout: out, Stderr: errs,
		Hold: m.cfg.Hold, Grace: m.cfg.Grace,
	})
	m.cfg.Logger.Debug("program ended", "duration_ms", time.Since(start).Milliseconds(), "bytes", out.to.Len())
	if err != nil {
		return nil, m.failure(ctx, out, errs, err)
	}
	resp := wire.Response(&out.to, len(input), model.Usage{})
	resp.StopReason = "stop"
	return resp, nil
}

// failure says why a call that ended with err gave no answer.
func (m *Model) failure(ctx context.Context, out *limited, errs *clip.Tail, err error) *model.Error {
	stderr, _ := model.Clean(errs.String())
	stderr = model.Redact(stderr)
	exit, exited := errors.AsType[*guard.ExitError](err)
	switch {
	case out.full != nil:
		out.full.Msg = m.name() + ": " + out.full.Msg
		return out.full
	case ctx.Err() != nil:
		e := model.Canceled(ctx)
		e.Detail = stderr
		return e
	case exited:
		return m.exitError(exit, stderr)
	case errors.Is(err, guard.ErrGuardLost):
		return &model.Error{Kind: model.KindCut, Msg: m.name(), Detail: stderr, Err: err}
	}
	return m.startError(err)
}

func (m *Model) exitError(exit *guard.ExitError, stderr string) *model.Error {
	e := &model.Error{
		Kind: model.KindFailed, Status: exit.Code, Detail: stderr, Err: exit,
		Msg: m.name(), Hint: "run the command by itself to see what it needs; it reads the prompt from its standard input",
	}
	if last := clip.LastLine(stderr); last != "" {
		e.Msg += ": " + last
	}
	if exit.Code == statusNotFound || exit.Code == statusNotExecutable { // of a shell, or of a script without shell
		e.Kind, e.Hint = model.KindNotFound, hintMissing
	}
	return e
}

const hintMissing = "check the spelling, that the program is installed, that it may be executed, and that PATH " +
	"holds its folder"

func (m *Model) startError(err error) *model.Error {
	e := &model.Error{Kind: model.KindFailed, Msg: "start " + m.name(), Err: model.RedactError(err)}
	switch {
	case guard.Missing(err):
		e.Kind, e.Hint = model.KindNotFound, hintMissing
	case errors.Is(err, guard.ErrNotEntered):
		e.Hint = "this is an error in the program that uses the perdure library"
	}
	return e
}

// name is how errors call the program; arguments may hold secrets.
func (m *Model) name() string {
	if m.cfg.Shell {
		return "shell command"
	}
	return fmt.Sprintf("program %q", m.words[0])
}

type envKey struct{}

// WithEnv returns a context whose calls give the program these variables too,
// "NAME=value", on top of those already given.
func WithEnv(ctx context.Context, env []string) context.Context {
	return context.WithValue(ctx, envKey{}, slices.Concat(envOf(ctx), env))
}

func envOf(ctx context.Context) []string {
	env, _ := ctx.Value(envKey{}).([]string)
	return env
}

// limited collects the answer and stops the program when it is too large.
type limited struct {
	to   model.Collector
	stop context.CancelCauseFunc
	full *model.Error
}

func (l *limited) Write(p []byte) (int, error) {
	n, err := l.to.Write(p)
	if err != nil {
		errors.As(err, &l.full)
		l.stop(err)
	}
	return n, err
}
