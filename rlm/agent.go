package rlm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/dedupe"
)

// maxAgents bounds the profiles of a configuration.
const maxAgents = 100

// Agent is a profile that a task refers to by name: who does it, and how. What
// is not set is as for the tree.
type Agent struct {
	// Model answers; BaseURL is its endpoint.
	Model   string `json:"model,omitempty"`
	BaseURL string `json:"base_url,omitempty"`
	// System is sent before the prompt.
	System string `json:"system,omitempty"`
	// Temperature is 0 to 2.
	Temperature *float64 `json:"temperature,omitempty"`
	// MaxOutputTokens is the longest answer; it is sent as a limit.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Params and Headers are used in addition to those of the run, see [Config].
	Params  Fields `json:"params,omitempty"`
	Headers Fields `json:"headers,omitempty"`
}

// useAgent takes over from the tree's agent what the configuration leaves open.
func (c *Config) useAgent() {
	p, ok := c.Agents[c.Agent]
	if !ok {
		return
	}
	if p.Model != "" && c.Model == "" {
		c.BaseURL = cmp.Or(c.BaseURL, p.BaseURL)
	}
	c.Model = cmp.Or(c.Model, p.Model)
	c.System = cmp.Or(c.System, p.System)
	c.AnswerTokens = cmp.Or(c.AnswerTokens, p.MaxOutputTokens)
	c.Temperature = cmp.Or(c.Temperature, p.Temperature)
	c.Params, c.Headers = c.Params.Over(p.Params), c.Headers.Over(p.Headers)
}

// agentNames lists the profiles in order.
func agentNames(agents map[string]Agent) []string { return slices.Sorted(maps.Keys(agents)) }

// checkAgents says what is wrong with the profiles and the names of agents.
func (c *Config) checkAgents(bad func(field, format string, args ...any)) {
	if c.Agent != "" {
		if _, ok := c.Agents[c.Agent]; !ok {
			bad("agent", "%s", dedupe.NotOneOf(c.Agent, agentNames(c.Agents)))
		}
	}
	if len(c.Agents) > maxAgents {
		bad("agents", "there are %d, the limit is %d", len(c.Agents), maxAgents)
		return
	}
	for _, name := range agentNames(c.Agents) {
		p := c.Agents[name]
		field := func(f string) string { return "agents." + name + "." + f }
		if name == "" || len(name) > perdure.MaxAgentBytes ||
			strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			bad("agents", "%q is not a name of 1 to %d bytes", name, perdure.MaxAgentBytes)
		}
		checkText(bad, field("model"), p.Model, maxModelNameBytes)
		checkText(bad, field("system"), p.System, maxSystemBytes)
		checkEndpoint(bad, field("base_url"), p.BaseURL)
		checkFields(bad, field(""), p.Params, p.Headers)
		if p.Temperature != nil && !(*p.Temperature >= 0 && *p.Temperature <= 2) {
			bad(field("temperature"), "%g is not between 0 and 2", *p.Temperature)
		}
		if p.MaxOutputTokens < 0 || p.MaxOutputTokens > MaxContextWindow {
			bad(field("max_output_tokens"), "%d is not between 0 and %d", p.MaxOutputTokens, MaxContextWindow)
		}
	}
}

// resolveAgents finds the models of the profiles that have one. Those that are
// not available here are listed by name: only a task that uses one fails.
func resolveAgents(res Resolver, cfg *Config) (found map[string]*asked, missing map[string]error) {
	found, missing = make(map[string]*asked), make(map[string]error)
	for name, p := range cfg.Agents {
		if p.Model == "" {
			continue
		}
		opt := cfg.modelOptions()
		opt.BaseURL = cmp.Or(p.BaseURL, opt.BaseURL)
		opt.Params, opt.Headers = p.Params.Over(opt.Params), p.Headers.Over(opt.Headers)
		m, err := resolveModel(res, p.Model, opt)
		if err != nil {
			missing[name] = err
			continue
		}
		found[name] = m
	}
	return found, missing
}

// agentNames are the agents that a plan may name: those whose models are there.
func (r *run) agentNames() []string {
	return slices.DeleteFunc(agentNames(r.cfg.Agents), func(name string) bool { return r.unavailable[name] != nil })
}

// checkAgent refuses a task whose agent is not known, or has no model here.
func (a *attempt) checkAgent() error {
	name := a.l.Task.Agent
	if name == "" {
		return nil
	}
	if _, ok := a.run.cfg.Agents[name]; !ok {
		return failf(KindPlan, "use agent: %s", dedupe.NotOneOf(name, agentNames(a.run.cfg.Agents)))
	}
	if err := a.run.unavailable[name]; err != nil {
		retry := !errors.Is(err, perdure.ErrInvalid)
		return &attemptError{kind: KindUnavailable, retry: retry, err: fmt.Errorf("use agent %q: %w", name, err)}
	}
	return nil
}

// profile is the agent of this task when it is another than the tree's; else it
// is empty.
func (a *attempt) profile() Agent {
	if name := a.l.Task.Agent; name != a.run.cfg.Agent {
		return a.run.cfg.Agents[name]
	}
	return Agent{}
}

// system is what is sent before the prompts of this task.
func (a *attempt) system() string { return cmp.Or(a.profile().System, a.run.cfg.System) }

// temperature is how freely the model answers for this task.
func (a *attempt) temperature() *float64 {
	return cmp.Or(a.profile().Temperature, a.run.cfg.Temperature)
}

// answerLimit is the limit for answers that is sent; 0 sends none.
func (a *attempt) answerLimit() int {
	switch n := a.profile().MaxOutputTokens; {
	case n > 0:
		return n
	case a.limited():
		return int(a.run.plan.Answer)
	}
	return 0
}

// limited reports whether requests have a limit for the answer.
func (a *attempt) limited() bool {
	cfg := &a.run.cfg
	return a.run.plan.Limited || cfg.AnswerTokens > 0 || cfg.BudgetTokens > 0 || cfg.BudgetUSD > 0
}
