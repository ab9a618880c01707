// Package command makes an agent of any program: the prompt goes in, what the
// program writes is handed on while it arrives, and what came of it comes out.
//
// A plain program gets its prompt on standard input, as an argument or as a
// file; its last words are the result and its exit status says whether it
// failed. For Claude Code, Codex, OpenCode and Gemini CLI there are presets
// that know the command line of their headless modes and read their streams of
// JSON; see [Presets]. A preset does not trust exit statuses: what the stream
// says counts.
//
// The program runs under a guard process, so that neither it nor what it
// started outlives the turn or this program. A program that uses the package
// calls worker.EnterGuard first in main.
//
// No agent asks before its tool calls here: [agent.Turn].Decide is not called.
// What may be done is settled by [Config].Permission, [agent.Turn].Commands, the
// agent's own settings and its own hooks; the presets of Claude Code and Codex run
// [agent.Turn].Hook as one of these.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/background"
	"github.com/perdure/perdure/agent/internal/endpoint"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/model"
)

// Defaults of [Config].
const (
	DefaultGrace          = 5 * time.Second
	DefaultPatience       = 2 * time.Minute
	DefaultLinger         = time.Minute
	DefaultMaxCompactions = 5
	DefaultMaxLineBytes   = 8 << 20
	DefaultMaxErrorBytes  = 8 << 10
)

// Placeholders in [Config].Args of a plain program.
const (
	PlaceholderPrompt = "{prompt}"
	PlaceholderFile   = "{prompt_file}"
)

// Permission is what an agent of a preset may do without asking. What each means for a
// preset is in [Presets].
type Permission = agent.Permission

// The permissions; see [agent.Permission].
const (
	PermissionEdits = agent.PermissionEdits
	PermissionRead  = agent.PermissionRead
	PermissionAll   = agent.PermissionAll
	PermissionOwn   = agent.PermissionOwn
)

// Config configures [New].
type Config struct {
	// Preset is one of the names in [Presets]; empty is a plain program.
	Preset string
	// Program is a name looked up in PATH, or a path; a relative one starts at
	// the workspace. Required without a preset; with one it replaces the
	// preset's program.
	Program string
	// Args are the arguments. Those of a plain program may contain {prompt} for the
	// text of the prompt or {prompt_file} for the path of a file with it (mode
	// 0600, removed with the turn); without either the prompt goes to standard
	// input. With a preset they are further options for the agent, which takes
	// its prompt from standard input.
	Args []string
	// Model is the agent's name of a model; empty is the agent's own choice.
	// Presets only.
	Model string
	// Permission is what the agent may do. Presets only. Empty: PermissionEdits.
	Permission Permission
	// Env are further variables, "NAME=value". [agent.Turn].Env, which says what the agent
	// gets of this process's variables, wins over them.
	Env []string
	// ContextWindow is the size of the model's window in tokens; it overrides
	// the size that the agent reports. 0: the size that the agent reports.
	ContextWindow int64
	// Grace is how long the agent may take to end after it was asked with
	// SIGTERM, before its process group is killed. 0: DefaultGrace; negative: it
	// is killed at once.
	Grace time.Duration
	// Patience is how long an agent may wait for a limit of its provider by
	// itself, again and again without getting anywhere, before the turn is ended
	// as [agent.KindRateLimit] (or what the provider says it is). That time is
	// not idle time. 0: DefaultPatience; negative: for ever.
	Patience time.Duration
	// Linger is how long an agent may run silently after it has reported the
	// end of its turn. 0: DefaultLinger; negative: for ever.
	Linger time.Duration
	// Background is how long after the end of its turn an agent may wait silently for commands that
	// it runs in the background, in addition to Linger. 0: two minutes; negative: not at all.
	Background time.Duration
	// MaxCompactions is how often in a row, without a tool call in between, an
	// agent may shorten its context before the turn is ended as
	// [agent.KindOverflow]. 0: DefaultMaxCompactions; negative: no limit.
	MaxCompactions int
	// MaxLineBytes is the longest line of JSON that is read; longer ones are
	// left out, with a note. 0: DefaultMaxLineBytes.
	MaxLineBytes int
	// MaxErrorBytes is how much of the end of standard error is kept for errors.
	// 0: DefaultMaxErrorBytes.
	MaxErrorBytes int
	// TempDir is where files with prompts are made; empty is the system's.
	TempDir string
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.Linger = cmp.Or(c.Linger, DefaultLinger)
	c.Background = cmp.Or(c.Background, background.DefaultLimit)
	c.MaxCompactions = cmp.Or(c.MaxCompactions, DefaultMaxCompactions)
	c.MaxLineBytes = cmp.Or(c.MaxLineBytes, DefaultMaxLineBytes)
	c.MaxErrorBytes = cmp.Or(c.MaxErrorBytes, DefaultMaxErrorBytes)
	c.Permission = cmp.Or(c.Permission, PermissionEdits)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	check(c.MaxLineBytes > 0, "MaxLineBytes is below 0")
	check(c.MaxErrorBytes > 0, "MaxErrorBytes is below 0")
	check(c.ContextWindow >= 0, "ContextWindow is below 0")
	known := []Permission{PermissionRead, PermissionEdits, PermissionAll, PermissionOwn}
	check(slices.Contains(known, c.Permission), fmt.Sprintf("Permission is %q, must be one of read, edits, all, own",
		c.Permission))
	for _, text := range slices.Concat([]string{c.Program, c.Model}, c.Args, c.Env) {
		check(strings.IndexByte(text, 0) < 0, fmt.Sprintf("%.40q contains a NUL byte", model.Redact(text)))
	}
	if c.Preset == "" {
		check(c.Program != "", "Program is missing")
		check(c.Model == "", "Model is for presets; set the model of a plain program in Args")
	} else {
		check(!c.contains(PlaceholderPrompt) && !c.contains(PlaceholderFile),
			"Args of a preset contain a placeholder; presets pass the prompt on standard input")
	}
	return errors.Join(errs...)
}

// contains reports whether an argument contains a placeholder.
func (c Config) contains(placeholder string) bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

// options returns the arguments of a preset: those it always has, those of the
// permission, the model, the session, and the user's.
func (c Config) options(always string, permissions map[Permission]string, session ...string) []string {
	args := slices.Concat(strings.Fields(always), strings.Fields(permissions[c.Permission]))
	if c.Model != "" {
		args = append(args, "--model", c.Model)
	}
	if len(session) > 0 && session[len(session)-1] != "" {
		args = append(args, session...)
	}
	return append(args, c.Args...)
}

// Agent runs a program for each turn. It is safe for concurrent use.
type Agent struct {
	cfg    Config
	vendor vendor
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Watcher = (*Agent)(nil)
	_ agent.Hooked  = (*Agent)(nil)
	_ agent.Priced  = (*Agent)(nil)

	_ agent.Inheriting = (*Agent)(nil)
	_ agent.Metered    = (*Agent)(nil)
)

// New checks the configuration and, unless its path is relative to a workspace,
// that there is such a program. The error is an [*agent.Error].
func New(cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	v, err := vendorOf(cfg.Preset)
	if err == nil {
		err = cfg.validate()
	}
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Msg: "configure agent", Err: err}
	}
	cfg.Program = cmp.Or(cfg.Program, v.about.Program)
	a := &Agent{cfg: cfg, vendor: v}
	if filepath.IsAbs(cfg.Program) || !strings.ContainsAny(cfg.Program, `/\`) {
		if _, err := guard.Find(cfg.Program, ""); err != nil {
			return nil, a.startError(err)
		}
	}
	return a, nil
}

// Sight returns how the agent's tool calls are observed; see [Presets].
func (a *Agent) Sight() agent.Sight { return a.vendor.about.Sight }

// Hooked reports whether the agent runs [agent.Turn].Hook.
func (a *Agent) Hooked() bool { return a.vendor.hooks != nil }

// Priced reports whether the preset reports what a turn costs, and returns the configured model.
func (a *Agent) Priced() (reports bool, model string) { return a.vendor.costs, a.cfg.Model }

// Inherits returns the names of the variables of the preset's vendor; see [agent.Inheriting].
// A plain program has none.
func (a *Agent) Inherits() []string { return environ.Vendor(a.cfg.Preset, a.cfg.Model) }

// Endpoints returns the addresses of the preset's providers; see [agent.Metered]. Those of a plain
// program are not known.
func (a *Agent) Endpoints(dir string, inherit []string) (map[string]string, error) {
	env := a.environment(&agent.Turn{Inherit: inherit}, nil)
	return endpoint.Of(a.cfg.Preset, endpoint.Place{Dir: dir, Env: env, Args: a.cfg.Args, Model: a.cfg.Model})
}

// HooksOff returns why the preset runs no hooks; see [agent.HookChecker].
func (a *Agent) HooksOff(dir string, inherit []string) string {
	env := a.environment(&agent.Turn{Inherit: inherit}, nil)
	return endpoint.HooksOff(a.cfg.Preset, endpoint.Place{Dir: dir, Env: env, Args: a.cfg.Args})
}

// name is the name of the program in errors, without arguments, which may contain secrets.
func (a *Agent) name() string { return fmt.Sprintf("agent %q", a.cfg.Program) }

// Run does one turn. The session it returns carries the agent's running totals
// with its ID, so that they are not counted twice when another process
// continues it: hand on the last one as it is.
func (a *Agent) Run(ctx context.Context, turn *agent.Turn) (*agent.Result, error) {
	from := readSession(turn.Session)
	if err := a.check(turn, from); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, agent.Stopped(ctx)
	}
	in, err := a.input(turn, from)
	if err != nil {
		return nil, err
	}
	defer in.remove()

	child, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := newRun(a, turn, from, stop)
	r.rec.notes = append(r.rec.notes, in.notes...)
	start := time.Now()
	err = r.execute(child, guard.Config{
		Path: a.cfg.Program, Args: in.args, Dir: turn.Dir, Env: append(a.environment(turn, in.env), in.hookEnv...),
		Stdin: in.stdin(), Stdout: &r.stdout, Stderr: &r.stderr,
		Hold: turn.Hold, Grace: a.cfg.Grace, Sandbox: sandbox.Of(ctx),
	})
	a.cfg.Logger.Debug("agent ended", "duration_ms", time.Since(start).Milliseconds())
	return r.finish(ctx, child, err)
}

func (a *Agent) check(turn *agent.Turn, from session) error {
	invalid := func(err error, hint string) error {
		return &agent.Error{Kind: agent.KindInvalid, Msg: "start " + a.name(), Err: err, Hint: hint}
	}
	if !filepath.IsAbs(turn.Dir) {
		return invalid(fmt.Errorf("the workspace %q is not an absolute path", turn.Dir), "")
	}
	info, err := os.Stat(turn.Dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("the workspace %q is not a folder", turn.Dir)
	}
	if err != nil {
		return invalid(err, "name an existing folder as the workspace")
	}
	if turn.Prompt == "" {
		return invalid(errors.New("the prompt is empty"), "")
	}
	if from.id != "" && a.vendor.parse == nil {
		return &agent.Error{Kind: agent.KindSession, Msg: a.name() + " has no sessions"}
	}
	if strings.HasPrefix(from.id, "-") || strings.ContainsAny(from.id, "\x00\n") {
		return &agent.Error{Kind: agent.KindSession, Msg: fmt.Sprintf("%q is not a session of %s", from.id, a.name())}
	}
	return nil
}

// environment returns the agent's environment, with the variables of its preset first: of
// duplicate variables the last applies.
func (a *Agent) environment(turn *agent.Turn, preset []string) []string {
	own := environ.Base(os.Environ(), slices.Concat(a.Inherits(), turn.Inherit))
	own = slices.DeleteFunc(own, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(a.vendor.unset, name)
	})
	return slices.Concat(preset, own, a.cfg.Env, turn.Env)
}

// startError is the error of a program that could not be started.
func (a *Agent) startError(err error) *agent.Error {
	e := &agent.Error{Kind: agent.KindFailed, Msg: "start " + a.name(), Err: model.RedactError(err)}
	switch {
	case guard.Missing(err):
		e.Kind = agent.KindNotFound
		e.Hint = "check the spelling, that the program is installed, that it may be executed, and that its folder is in PATH"
		if a.vendor.about.Install != "" {
			e.Hint = "install it: " + a.vendor.about.Install + "; " + e.Hint
		}
	case errors.Is(err, syscall.E2BIG):
		e.Kind, e.Hint = agent.KindInvalid, hintTooLong
	case errors.Is(err, guard.ErrNotEntered):
		e.Hint = "this is an error in the program that uses the perdure library"
	}
	return e
}
