package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
	agentcommand "github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/command"
)

// AgentConfig configures coding agents.
type AgentConfig struct {
	// Permission is what agents may do without asking; empty: the default of the preset.
	Permission string
	// Model is the agent's own name for a model; empty: its default.
	Model string
	// Logger: nil discards.
	Logger *slog.Logger
}

// Agents finds coding agents by name: a preset for a headless mode (claude) or for the
// Agent Client Protocol (acp:claude), a program that supports this protocol
// (acp:COMMAND), or any program (exec:COMMAND). It is safe for concurrent use.
type Agents struct {
	cfg AgentConfig

	mu    sync.Mutex // guards found
	found map[string]agent.Agent
}

// NewAgents returns a resolver of agents.
func NewAgents(cfg AgentConfig) *Agents {
	return &Agents{cfg: cfg, found: make(map[string]agent.Agent)}
}

// Agent returns the agent of a name, one value for each name. The error is a
// *perdure.Error: the name is unknown, or the program was not found.
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
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: fmt.Sprintf("unknown agent %q", name),
			Hint: "the agents are " + agentNames()}
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

// costOf returns what a usage of an agent costs, by the table of
// prices. The agent's name of the model is one at its vendor, or PROVIDER/MODEL.
func (m *Models) costOf(agentName, named string, u agent.Usage) (micros int64, known bool) {
	name, baseURL := modelOf(agentName, named)
	rate, err := m.prices.Rate(name, baseURL)
	if err != nil || name == "" {
		return 0, false
	}
	return rate.Price(model.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CachedTokens: u.CachedTokens, CacheWriteTokens: u.CacheWriteTokens})
}

// geminiURL is the endpoint of Gemini's models in the table of prices.
const geminiURL = "https://generativelanguage.googleapis.com/v1beta/openai"

// modelOf returns the model of an agent as the table of prices names it; empty if unknown.
func modelOf(agentName, named string) (name, baseURL string) {
	vendor := map[string]string{"claude": "anthropic", "codex": "openai", "gemini": "google"}[strings.TrimPrefix(agentName,
		"acp:")]
	if before, after, ok := strings.Cut(named, "/"); ok && vendor == "" {
		vendor, named = before, after
	}
	switch {
	case named == "":
	case vendor == "anthropic", vendor == "openai":
		return vendor + ":" + named, ""
	case vendor == "google":
		return "openai:" + named, geminiURL
	}
	return "", ""
}

// agentNames lists the known names and forms of names.
func agentNames() string {
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

// agentError returns the error of an agent that was not found as a *perdure.Error.
func agentError(name string, err error) error {
	if perdure.CodeOf(err) != perdure.CodeInternal {
		return err
	}
	e := &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: fmt.Sprintf("%q: %s", name, err)}
	if failure, ok := errors.AsType[*agent.Error](err); ok {
		e.Hint, e.Err = failure.Hint, err
		if failure.Kind == agent.KindNotFound {
			e.Code = perdure.CodeUnavailable
		}
	}
	return e
}
