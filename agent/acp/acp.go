// Package acp drives coding agents over the Agent Client Protocol: JSON-RPC
// 2.0, one message a line, on the standard input and output of a program that
// this package starts.
//
// Each turn is a separate process: it is started, asked for protocol version 1,
// receives a new or an earlier session and the prompt, and is ended. So no process
// of an agent outlives a turn, turns can run concurrently, and an agent keeps
// between turns only what its own session store keeps.
//
// The client offers neither files nor terminals nor forms: agents use their
// own, in the workspace. Requests it does not know are refused as unknown.
// Updates it does not know are passed on unchanged.
//
// A program that uses the package calls worker.EnterGuard first in main: agents
// run below a guard process that ends them when this process dies.
//
// # Limits of permission requests
//
// Agents differ in the tool calls for which they request permission; [Agent.Sight]
// reports what is known of them, and [Preset] on what that is based. No agent is a
// sandbox.
package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/background"
	"github.com/perdure/perdure/internal/jsonrpc"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/model"
)

// ErrFrameTooLarge is the cause of the error of a turn whose agent sent a
// message over [Config].MaxFrameBytes that could not be left out.
var ErrFrameTooLarge = jsonrpc.ErrFrameTooLarge

// Defaults of [Config].
const (
	DefaultStartTimeout  = 2 * time.Minute
	DefaultGrace         = 5 * time.Second
	DefaultMaxFrameBytes = 32 << 20
	DefaultMaxErrorBytes = 8 << 10
)

// Config configures [New].
type Config struct {
	// Preset names an agent that is known, see [Presets]; empty is any other,
	// given by Command.
	Preset string
	// Command is the program and its arguments; it has to speak the protocol on
	// its standard input and output. Empty is the preset's.
	Command []string
	// Env are further variables, "NAME=value", in addition to those of the preset.
	// [agent.Turn].Env, which says what the agent gets of this process's variables, wins
	// over them.
	Env []string
	// Model and Mode are the agent's own names for a model and for a mode of
	// permissions. Empty is the agent's default; for Mode, the preset's.
	// A turn fails with [agent.KindInvalid] when the agent offers no such thing.
	Model, Mode string
	// Permission is what the agent may do without asking, as far as the preset has a mode or
	// variables for it; what an agent asks for is decided by [agent.Turn].Decide. Empty:
	// PermissionAll, in the preset's mode.
	Permission agent.Permission
	// Ask makes an agent ask before its tool calls, one that does so only when
	// it is instructed to: the preset's [Preset.AskEnv]. That replaces rules of its
	// own configuration, those that deny among them, by asking.
	Ask bool
	// Options are further options of sessions that the agent offers, by name,
	// for example "effort"; "true" and "false" for those that are switches.
	Options map[string]string
	// AuthMethod is the method to log in with before the session begins, by the
	// agent's name for it. Empty: agents are logged in already.
	AuthMethod string
	// StartTimeout is how long an agent may take to begin or load a session.
	// 0: DefaultStartTimeout; negative: no limit.
	StartTimeout time.Duration
	// Grace is how long an agent may take to stop when it was asked over the
	// protocol, to end when its input was closed, and again when it got SIGTERM,
	// before it is killed. 0: DefaultGrace; negative: it is killed at once.
	Grace time.Duration
	// Background is how long commands are waited for that the agent left running in the background
	// when its prompt ended. 0: two minutes; negative: not at all.
	Background time.Duration
	// MaxFrameBytes is the largest message accepted. A larger notification is
	// left out, with a note in the result; any other message ends the turn with
	// an error that wraps [ErrFrameTooLarge]. 0: DefaultMaxFrameBytes.
	MaxFrameBytes int
	// MaxErrorBytes is how much of the end of standard error is kept for
	// errors. 0: DefaultMaxErrorBytes.
	MaxErrorBytes int
	// Sight is how the agent's tool calls are seen; empty is what the preset
	// says, [agent.SightObserved] without one.
	Sight agent.Sight
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults(p Preset) Config {
	if len(c.Command) == 0 {
		c.Command = p.Command
	}
	c.StartTimeout = cmp.Or(c.StartTimeout, DefaultStartTimeout)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.Background = cmp.Or(c.Background, background.DefaultLimit)
	c.MaxFrameBytes = cmp.Or(c.MaxFrameBytes, DefaultMaxFrameBytes)
	c.MaxErrorBytes = cmp.Or(c.MaxErrorBytes, DefaultMaxErrorBytes)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c Config) validate() error {
	var errs []error
	if len(c.Command) == 0 || c.Command[0] == "" {
		errs = append(errs, errors.New("neither Command nor Preset is given"))
	}
	if slices.ContainsFunc(slices.Concat(c.Command, c.Env), func(s string) bool { return strings.IndexByte(s, 0) >= 0 }) {
		errs = append(errs, errors.New("Command or Env contains a NUL byte"))
	}
	if c.MaxFrameBytes < 0 {
		errs = append(errs, errors.New("MaxFrameBytes is below 0"))
	}
	if c.MaxErrorBytes < 0 {
		errs = append(errs, errors.New("MaxErrorBytes is below 0"))
	}
	switch c.Sight {
	case "", agent.SightNative, agent.SightObserved, agent.SightNone:
	default:
		errs = append(errs, fmt.Errorf("there is no Sight %q", c.Sight))
	}
	return errors.Join(errs...)
}

// Agent is an agent that speaks the protocol. It is safe for concurrent use:
// each turn is a process of its own.
type Agent struct {
	cfg    Config
	preset Preset
	// start starts the agent of a turn; tests put something else in its place.
	start func(ctx context.Context, r *run) (*peer, error)
	costs costs
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Watcher = (*Agent)(nil)
	_ agent.Priced  = (*Agent)(nil)
	_ agent.Hooked  = (*Agent)(nil)
	_ agent.Metered = (*Agent)(nil)
)

// New checks the configuration and that there is such a program. The error is
// an [*agent.Error] of kind [agent.KindInvalid] or [agent.KindNotFound].
func New(cfg Config) (*Agent, error) {
	preset, known := presetNamed(cfg.Preset)
	if !known {
		return nil, &agent.Error{
			Kind: agent.KindInvalid, Msg: fmt.Sprintf("there is no agent %q", cfg.Preset),
			Hint: "known are " + strings.Join(presetNames(), ", ") + "; any other is given by its command",
		}
	}
	cfg = cfg.withDefaults(preset)
	if err := cfg.validate(); err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Msg: "configure agent", Err: err}
	}
	a := &Agent{cfg: cfg, preset: preset}
	a.start = a.startProcess
	if _, err := guard.Find(cfg.Command[0], ""); err != nil {
		return nil, startError(cfg.Command[0], err)
	}
	return a, nil
}

// Sight returns how the agent's tool calls are seen: what was configured, else
// what is known of the preset in the configured mode, asking or not.
func (a *Agent) Sight() agent.Sight {
	if a.cfg.Sight != "" {
		return a.cfg.Sight
	}
	mode := a.cfg.Mode
	if mode == "" {
		mode = a.preset.mode(a.cfg.Permission)
	}
	return a.preset.sight(mode, a.cfg.Ask)
}

// Priced reports whether the preset reports what a turn costs, and returns the configured model.
func (a *Agent) Priced() (reports bool, model string) { return a.preset.Costs, a.cfg.Model }

// Run does one turn. See [agent.Agent].
func (a *Agent) Run(ctx context.Context, turn *agent.Turn) (*agent.Result, error) {
	if err := checkTurn(turn); err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Msg: "check turn", Err: err}
	}
	if ctx.Err() != nil {
		return nil, agent.Stopped(ctx)
	}
	r := newRun(a, turn)
	steering, err := a.preset.steer(turn, a.environment(turn))
	defer steering.remove()
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Msg: "configure agent", Err: err}
	}
	r.steering = steering
	p, err := a.start(context.WithoutCancel(ctx), r)
	if err != nil {
		return nil, startError(a.cfg.Command[0], err)
	}
	begun := time.Now()
	failure := r.serve(ctx, p)
	a.cfg.Logger.Debug("agent ended", "duration_ms", time.Since(begun).Milliseconds(), "session", r.session)
	if failure != nil {
		return r.result(), failure
	}
	return r.result(), nil
}

func checkTurn(t *agent.Turn) error {
	var errs []error
	if t.Prompt == "" {
		errs = append(errs, errors.New("no Prompt"))
	}
	if !utf8.ValidString(t.Prompt) {
		errs = append(errs, errors.New("the Prompt is not valid UTF-8"))
	}
	if !filepath.IsAbs(t.Dir) {
		errs = append(errs, fmt.Errorf("the Dir %q is not absolute", t.Dir))
	}
	if t.IdleTimeout < 0 {
		errs = append(errs, errors.New("the IdleTimeout is below 0"))
	}
	return errors.Join(errs...)
}

// peer is an agent that was started.
type peer struct {
	in  io.WriteCloser
	out io.ReadCloser
	// stop asks the agent to end and kills it when it has not within the grace;
	// kill kills it. Neither waits.
	stop, kill func()
	// pid is the number of its process; 0 without one.
	pid int
	// wait waits until the agent and everything it started is gone.
	wait func() error
}

// Inherits returns the names of the variables of the preset's vendor; see [agent.Inheriting].
// An agent without a preset has none.
func (a *Agent) Inherits() []string { return environ.Vendor(a.cfg.Preset, a.cfg.Model) }

// startProcess starts the agent's program under a guard.
func (a *Agent) startProcess(ctx context.Context, r *run) (*peer, error) {
	turn, args, env := r.turn, a.cfg.Command[1:], a.environment(r.turn)
	if r.events != nil {
		args, env = slices.Concat(args, r.events.args()), slices.Concat(env, r.events.env())
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		_ = inR.Close()
		_ = inW.Close()
		return nil, err
	}
	p, err := guard.Start(ctx, guard.Config{
		Path: a.cfg.Command[0], Args: args, Dir: turn.Dir,
		Env:   append(env, r.steering.env...),
		Stdin: inR, Stdout: outW, Stderr: r.stderr,
		Hold: turn.Hold, Grace: a.cfg.Grace, Sandbox: sandbox.Of(ctx),
	})
	_ = inR.Close()
	_ = outW.Close()
	if err != nil {
		_ = inW.Close()
		_ = outR.Close()
		return nil, model.RedactError(err)
	}
	return &peer{in: inW, out: outR, stop: p.Stop, kill: p.Kill, pid: p.Pid(), wait: p.Wait}, nil
}

// maxCosts is the number of sessions whose cost is stored.
const maxCosts = 1024

// costs stores the cost of sessions: agents report the total of a session, and the
// cost of a turn is the difference to the total before it.
type costs struct {
	mu   sync.Mutex // guards the following
	last map[string]int64
}

func (c *costs) of(session string) *int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if total, ok := c.last[session]; ok {
		return &total
	}
	return nil
}

func (c *costs) set(session string, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || len(c.last) >= maxCosts {
		c.last = make(map[string]int64)
	}
	c.last[session] = total
}
