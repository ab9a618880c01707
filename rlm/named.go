package rlm

import (
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/model"
)

// nameSubModels makes a profile of each sub-model that has a name: tasks refer to it like to one.
func (c *Config) nameSubModels() {
	if len(c.SubModels) == 0 {
		return
	}
	agents := maps.Clone(c.Agents)
	if agents == nil {
		agents = make(map[string]Agent)
	}
	for name, m := range c.SubModels {
		if _, there := agents[name]; !there {
			agents[name] = Agent{Model: m}
		}
	}
	c.Agents = agents
}

// maxNameBytes bounds the names of sub-models and tools.
const maxNameBytes = 64

// checkSubModels reports what is wrong with the sub-models that have names.
func (c *Config) checkSubModels(bad func(field, format string, args ...any)) {
	if len(c.SubModels) > 0 && c.Planner != PlannerRepl {
		bad("sub_models", "only the code of planner repl asks models by name; use --planner repl, or --sub-model "+
			"without a name")
	}
	for _, name := range sortedNames(c.SubModels) {
		field := "sub_models." + name
		switch m := c.SubModels[name]; {
		case name == "" || len(name) > maxNameBytes || strings.Trim(name, nameLetters) != "":
			bad("sub_models", "%q is not a name of 1 to %d letters, digits, dots, hyphens and underscores", name, maxNameBytes)
		case m == "":
			bad(field, "the model is missing")
		case c.Agents[name] != Agent{Model: m}:
			bad(field, "there is a profile (agents) with this name")
		case onlyRanks(m):
			bad(field, "model %q quotes passages and answers no prompt", m)
		}
	}
}

// nameLetters are the letters of the names of sub-models.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Models returns the names of all models and programs that a configuration can have called, each
// of a chain by itself.
func (c *Config) Models() []string {
	chains := []string{c.Model, c.SubModel, c.Judge, c.EscalateModel, c.MergeCommand()}
	for _, name := range sortedNames(c.Agents) {
		chains = append(chains, c.Agents[name].Model)
	}
	for _, name := range sortedNames(c.SubModels) {
		chains = append(chains, c.SubModels[name])
	}
	for _, name := range sortedNames(c.Tools) {
		chains = append(chains, c.Tools[name].Command)
	}
	var all []string
	for _, chain := range chains {
		if chain != "" {
			all = append(all, model.ChainNames(chain)...)
		}
	}
	return all
}

// Endpoints returns the addresses that a configuration names.
func (c *Config) Endpoints() []string {
	urls := []string{c.BaseURL}
	for _, name := range sortedNames(c.Agents) {
		urls = append(urls, c.Agents[name].BaseURL)
	}
	return slices.DeleteFunc(urls, func(url string) bool { return url == "" })
}
