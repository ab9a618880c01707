package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/model/price"
)

// Agents finds agents. It is called from many goroutines. An error is an
// *perdure.Error with a hint: the name is not known, the program is missing.
type Agents interface {
	Agent(spec AgentSpec) (agent.Agent, error)
}

// AgentSpec is an agent as the configuration of a loop names it.
type AgentSpec struct {
	// Name is a preset or a command that the resolver accepts.
	Name string
	// Model is the agent's own name for a model; empty is the agent's default.
	Model string
	// Permission is what the agent may do without asking.
	Permission agent.Permission
}

// agentSpec returns the agent at index i of the loop's agents. The model of the configuration
// is one of its first agent: others may not have it.
func (e *Engine) agentSpec(cfg *config.Config, i int) AgentSpec {
	spec := AgentSpec{Name: cfg.AgentAt(i), Permission: cmp.Or(cfg.Permission, e.cfg.Permission)}
	if i <= 0 {
		spec.Model = cfg.Model
	}
	return spec
}

// EngineConfig says what an [Engine] works with.
type EngineConfig struct {
	// Store holds the loops. Required.
	Store *perdure.Store
	// Agents finds the agents. Required.
	Agents Agents
	// Permission is what agents may do without asking, for loops that do not say. Empty: the
	// default of the resolver, and a call for which an agent asks is allowed.
	Permission agent.Permission
	// Price, when set, returns what a usage of an agent costs, in millionths of a US dollar,
	// by the agent's name of the model; known is false if the price is not known. It is
	// called from many goroutines.
	Price func(agent, model string, u agent.Usage) (micros int64, known bool)
	// Dir is the folder below which each loop keeps its snapshots and its hook
	// log, in a folder of its own. Required.
	Dir string
	// Copies is a folder outside of all workspaces in which each loop keeps copies of its files in
	// Dir, in a folder of its own. Empty: removing Dir loses the loops.
	Copies string
	// HeldOut is a folder outside of all workspaces and of the store for the held-out checks of loops
	// and their results. Empty: loops with such a check are refused.
	HeldOut string
	// Sockets are folders outside of all workspaces for the sockets at which the hooks of agents ask,
	// in order of preference. A socket for whose path all are too long is in a folder for temporary
	// files.
	Sockets []string
	// Worktrees is the folder of the worktrees of loops that work in one. Empty: such loops
	// are refused.
	Worktrees string
	// Ended, when set, receives a loop that ended, and the folder of its files,
	// to write its report there. It is called once, or again after a crash.
	Ended func(ctx context.Context, tree *perdure.Tree, dir string) error
	// Reminders is a folder with templates of the reminders of the
	// rules: minimal.md.tmpl, standard.md.tmpl, aggressive.md.tmpl, exit.md.tmpl. Those
	// that are missing, and all of them when it is empty, are the built-in ones.
	Reminders string
	// Handoff says how work is handed over between sessions and agents.
	Handoff HandoffConfig
	// Handlers are asked at hooks, in this order.
	Handlers []hook.Registration
	// Hook is the command line of "perdure hook": agents that run hooks of their own
	// run it around their calls of tools. Empty: such calls are only seen.
	Hook []string
	// Rate returns what is known of a model at an address, for the costs of loops with a meter
	// (see [github.com/perdure/perdure/model/price.Table.Rate]). Nil: costs are as the agents report them.
	Rate func(name, baseURL string) (price.Rate, error)
	// Hold are files that agents and commands keep open until they are gone.
	Hold []*os.File
	// TokenReplaced, when set, is called when a loop that waits at a gate got a new token,
	// because an earlier process made the one before; GateToken returns it. Nil: this
	// process can show no tokens, and leaves those of earlier ones valid.
	TokenReplaced func(ctx context.Context, tree *perdure.Tree, g *perdure.Gate)
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c *EngineConfig) validate() error {
	var errs []error
	check := func(ok bool, err error) {
		if !ok {
			errs = append(errs, fmt.Errorf("create engine: %w", err))
		}
	}
	check(c.Store != nil, errors.New("Store is missing"))
	check(c.Agents != nil, errors.New("Agents is missing"))
	check(c.Dir != "", errors.New("Dir is missing"))
	check(guard.Entered(), guard.ErrNotEntered)
	return errors.Join(errs...)
}

// Engine launches loops and does the work of their tasks. Its methods may be
// called from many goroutines; its Handle is what a worker needs for trees of
// kind [perdure.KindLoop].
type Engine struct {
	cfg     EngineConfig
	texts   func() (reinforce.Templates, error) // of reminders
	records *record.Records
	tokens  tokens
	// copies is done when the copy of the store was begun: beginning it puts copies of another store
	// aside, which was in the same place.
	copies sync.Once
}

// New checks the configuration and returns an engine, which does not keep ctx: it only ends
// the reading of the reminders.
func New(ctx context.Context, cfg EngineConfig) (*Engine, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	texts, err := reminders(ctx, cfg.Reminders)
	if err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg, texts: texts, records: record.New(cfg.Store)}, nil
}

// reminders reads the templates in a folder. The built-in ones are read when they are needed,
// because most programs that open a store remind of nothing.
func reminders(ctx context.Context, dir string) (func() (reinforce.Templates, error), error) {
	if dir == "" {
		ctx := context.WithoutCancel(ctx)
		return sync.OnceValues(func() (reinforce.Templates, error) { return reinforce.LoadTemplates(ctx, nil) }), nil
	}
	texts, err := reinforce.LoadTemplates(ctx, os.DirFS(dir))
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read reminders in " + dir, Err: err,
			Hint: "the setting loop.reminders names the folder; without it the built-in templates are used"}
	}
	return func() (reinforce.Templates, error) { return texts, nil }, nil
}

// LaunchRequest asks for a loop.
type LaunchRequest struct {
	Config config.Config
	// Owner, when set, is the only session that runs the loop while it lives.
	Owner *perdure.Session
	// IdempotencyKey, when set, makes a second launch with the same key return the loop of the
	// first.
	IdempotencyKey string
	// Request is that of [perdure.TreeSpec].
	Request string
}

// Launch checks a request and creates the loop. What cannot work is refused
// before anything exists: a configuration that is wrong, an agent that is not
// there, a folder that is not a workspace, commits without a git repository, another loop
// in the folder that has not ended.
func (e *Engine) Launch(ctx context.Context, req LaunchRequest) (perdure.Tree, error) {
	raw, err := json.Marshal(req.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	cfg, err := config.Parse(raw)
	if err != nil {
		return perdure.Tree{}, err
	}
	if cfg.GateTimeout < 0 { // stored ones stand for no limit
		return perdure.Tree{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop",
			Msg: fmt.Sprintf("gate_timeout is %s, must be 0 (no limit) or longer", cfg.GateTimeout)}
	}
	if err := e.available(&cfg); err != nil {
		return perdure.Tree{}, err
	}
	if err := errors.Join(e.checkPrices(&cfg), e.checkCounts(&cfg), e.checkHooks(&cfg)); err != nil {
		return perdure.Tree{}, err
	}
	place, err := e.place(&cfg)
	if err != nil {
		return perdure.Tree{}, err
	}
	if err := checkCommits(ctx, &cfg); err != nil {
		return perdure.Tree{}, err
	}
	if raw, err = e.withHeldOut(&cfg, nil, raw); err != nil {
		return perdure.Tree{}, err
	}
	begin := stepBegin
	if cfg.Worktree {
		begin = stepWorktree
		if err := e.planWorktree(ctx, &cfg); err != nil {
			return perdure.Tree{}, err
		}
		place = e.cfg.Store.Placement().Host + ":" + cfg.Workspace
		if raw, err = json.Marshal(&cfg); err != nil {
			return perdure.Tree{}, err
		}
	}
	first := record.Beginning{Loop: record.Loop{Place: place, Status: record.Running, Step: begin,
		State: json.RawMessage(`{"counts":true}`)}}
	spec := e.spec(&cfg, raw, req.Owner, first.InTx)
	spec.IdempotencyKey, spec.Request = req.IdempotencyKey, req.Request
	return e.cfg.Store.CreateTree(ctx, spec)
}

// spec returns the tree of a loop; inTx writes the loop's first rows.
func (e *Engine) spec(cfg *config.Config, raw json.RawMessage, owner *perdure.Session,
	inTx func(context.Context, *perdure.WriteTx, *perdure.Tree) error) perdure.TreeSpec {
	return perdure.TreeSpec{Kind: perdure.KindLoop, Name: Slug(cfg.Task), Config: raw, Owner: owner, Limits: cfg.Limits(),
		InTx:      inTx,
		Placement: perdure.Placement{Host: e.cfg.Store.Placement().Host, Workspace: cfg.Workspace},
		Root: perdure.TaskSpec{Prompt: cfg.Task, Agent: cfg.Agent,
			Work: &perdure.Work{Open: 1}}} // the number of iterations is not known
}

// available returns an error if an agent is unknown, or if the program of none is there.
func (e *Engine) available(cfg *config.Config) error {
	var missing error
	found := false
	for i := range cfg.Agents() {
		_, err := e.cfg.Agents.Agent(e.agentSpec(cfg, i))
		switch {
		case err == nil:
			found = true
		case perdure.CodeOf(err) != perdure.CodeUnavailable:
			return err
		case missing == nil:
			missing = err
		}
	}
	if found {
		return nil
	}
	return missing
}

// place names the workspace, and refuses a folder that is none.
func (e *Engine) place(cfg *config.Config) (string, error) {
	if err := os.MkdirAll(e.cfg.Dir, 0o700); err != nil {
		return "", err
	}
	probe, err := os.MkdirTemp(e.cfg.Dir, ".probe-")
	if err != nil {
		return "", err
	}
	w, err := workspace.Open(workspace.Config{Root: cfg.Workspace, Dir: probe})
	if err := errors.Join(refusal(err), os.RemoveAll(probe)); err != nil {
		return "", err
	}
	return e.cfg.Store.Placement().Host + ":" + w.Root(), nil
}

// CheckWorkspace reports whether loops can work in a folder, as Launch does: before a
// store is made there, in a home folder for one.
func CheckWorkspace(dir string) error { return refusal(workspace.Check(dir)) }

// refusal is an error of a workspace with its hint.
func refusal(err error) error {
	if w, ok := errors.AsType[*workspace.Error](err); ok {
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: w.Error(), Hint: w.Hint, Err: err} // which names what was tried
	}
	return err
}

// Check reports whether a loop can be run here: its agents are there.
func (e *Engine) Check(ctx context.Context, tree *perdure.Tree) error {
	row, err := e.records.Loop(ctx, tree.ID)
	if err != nil && !errors.Is(err, perdure.ErrNotFound) { // it may not have begun
		return err
	}
	cfg, err := config.Of(tree, &row)
	if err != nil {
		return err
	}
	return e.available(&cfg)
}

// maxSlug bounds the words of a loop's ID.
const maxSlug = 40

// Slug makes a name of a task: words in lower case with dashes.
func Slug(task string) string {
	words := strings.FieldsFunc(strings.ToLower(task),
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	slug := ""
	for _, w := range words {
		if len(slug)+1+len(w) > maxSlug {
			break
		}
		slug = strings.TrimPrefix(slug+"-"+w, "-")
	}
	return cmp.Or(slug, "loop")
}

// ID is what people call a loop: words of its task and the digits of its tree.
func ID(tree *perdure.Tree) string {
	_, digits, _ := strings.Cut(string(tree.ID), "-")
	return tree.Name + "-" + digits
}

// TreeOf returns the tree of a loop by its ID.
func TreeOf(id string) perdure.TreeID {
	return perdure.TreeID("tree-" + id[strings.LastIndexByte(id, '-')+1:])
}

// dir is the loop's own folder.
func (e *Engine) dir(tree *perdure.Tree) string { return filepath.Join(e.cfg.Dir, ID(tree)) }

// fail is an error that ends the attempt of a task for good.
func fail(kind, format string, args ...any) error {
	return &attemptError{perdure.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}}
}

// attemptError is the error that reports to a worker how an attempt ends.
type attemptError struct{ f perdure.Failure }

// Error returns the message.
func (e *attemptError) Error() string { return e.f.Message }

// Failure returns how the attempt ends.
func (e *attemptError) Failure() perdure.Failure { return e.f }
