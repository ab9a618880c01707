package daemon

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
	agentcommand "github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/model/command"
)

// AgentConfig says how coding agents are reached.
type AgentConfig struct {
	// Permission is what agents may do without asking; empty is that of the
	// presets. Model is their own name for a model; empty is their choice.
	Permission string
	Model      string
	// Logger: nil discards.
	Logger *slog.Logger
}

// Agents finds coding agents by name: a preset for a headless mode (claude), one
// for the Agent Client Protocol (acp:claude), any program that speaks it
// (acp:COMMAND), or any program at all (exec:COMMAND). It is safe for concurrent
// use.
type Agents struct {
	cfg AgentConfig

	mu    sync.Mutex // guards found
	found map[string]agent.Agent
}

// NewAgents returns a resolver that has found nothing yet.
func NewAgents(cfg AgentConfig) *Agents {
	return &Agents{cfg: cfg, found: make(map[string]agent.Agent)}
}

// Agent returns the agent of a name, the same for the same name. The error is a
// *perdure.Error with a hint: the name is not known, there is no such program.
func (a *Agents) Agent(name string) (agent.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.found[name]; ok {
		return found, nil
	}
	found, err := a.find(name)
	if err != nil {
		return nil, agentError(name, err)
	}
	a.found[name] = found
	return found, nil
}

func (a *Agents) find(name string) (agent.Agent, error) {
	kind, rest, prefixed := strings.Cut(name, ":")
	switch {
	case prefixed && kind == "exec":
		words, err := command.Split(rest)
		if err != nil || len(words) == 0 {
			return nil, errors.Join(errors.New("exec: needs a command line"), err)
		}
		return agentcommand.New(agentcommand.Config{Program: words[0], Args: words[1:], Logger: a.cfg.Logger})
	case prefixed && kind == "acp":
		return a.findACP(rest)
	}
	known := func(p agentcommand.Preset) bool { return p.Name == name }
	if !slices.ContainsFunc(agentcommand.Presets(), known) {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: "there is no agent " + quote(name),
			Hint: "known are " + a.names()}
	}
	return agentcommand.New(agentcommand.Config{Preset: name, Model: a.cfg.Model,
		Permission: agentcommand.Permission(a.cfg.Permission), Logger: a.cfg.Logger})
}

func (a *Agents) findACP(rest string) (agent.Agent, error) {
	known := func(p acp.Preset) bool { return p.Name == rest }
	if slices.ContainsFunc(acp.Presets(), known) {
		return acp.New(acp.Config{Preset: rest, Model: a.cfg.Model, Logger: a.cfg.Logger})
	}
	words, err := command.Split(rest)
	if err != nil || len(words) == 0 {
		return nil, errors.Join(errors.New("acp: needs the name of an agent or a command line"), err)
	}
	return acp.New(acp.Config{Command: words, Model: a.cfg.Model, Logger: a.cfg.Logger})
}

// names lists what can be written.
func (a *Agents) names() string {
	var names []string
	for _, p := range agentcommand.Presets() {
		names = append(names, p.Name)
	}
	names = append(names, "exec:COMMAND")
	for _, p := range acp.Presets() {
		names = append(names, "acp:"+p.Name)
	}
	return strings.Join(append(names, "acp:COMMAND"), ", ")
}

// agentError is why there is no such agent, for people.
func agentError(name string, err error) error {
	var known *perdure.Error
	if errors.As(err, &known) {
		return err
	}
	var failure *agent.Error
	if !errors.As(err, &failure) {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: quote(name) + ": " + err.Error()}
	}
	code := perdure.CodeInvalid
	if failure.Kind == agent.KindNotFound {
		code = perdure.CodeUnavailable
	}
	return &perdure.Error{Code: code, Op: "find agent", Msg: quote(name) + ": " + failure.Error(), Hint: failure.Hint,
		Err: err}
}
