package config

import (
	"fmt"
	"strings"
)

// agentSection is the section of the profiles, whose keys are agents.NAME.FIELD.
const agentSection = "agents"

// Agent is a profile of the section agents. Fields that are not set are those of the
// run.
type Agent struct {
	// Model is the model, BaseURL its endpoint.
	Model   string
	BaseURL string
	// System is the system prompt; it can have several lines.
	System string
	// Temperature is between 0 and 2; nil if it is not set.
	Temperature *float64
	// MaxOutputTokens bounds an answer; 0 if it is not set.
	MaxOutputTokens int
}

// agent returns the profile of a name and creates it if it does not exist.
func (c *Config) agent(name string) *Agent {
	if c.Agents == nil {
		c.Agents = make(map[string]*Agent)
	}
	if c.Agents[name] == nil {
		c.Agents[name] = new(Agent)
	}
	return c.Agents[name]
}

// agentSettings returns the settings of a profile of c, which it creates. They exist in the
// file only.
func agentSettings(c *Config, name string) []setting {
	a := c.agent(name)
	key := func(field string) string { return agentSection + "." + name + "." + field }
	return []setting{
		{key: key("model"), help: "model", at: &a.Model, check: notEmpty, acts: ModelEffect},
		{key: key("base_url"), help: "endpoint of the model", at: &a.BaseURL,
			check: optional(httpURL), secret: withoutPassword, acts: acts(effectBaseURL)},
		{key: key("system"), help: "system prompt", lines: true,
			at: &a.System},
		{key: key("temperature"), help: "temperature, 0 to 2", check: temperature, at: &a.Temperature},
		{key: key("max_output_tokens"), help: "maximum tokens of an answer",
			at: &a.MaxOutputTokens, check: between(1, 100_000_000)},
	}
}

func temperature(value any) string {
	if x := **value.(**float64); !(x >= 0 && x <= 2) {
		return fmt.Sprintf("%v is not between 0 and 2", x)
	}
	return ""
}

// agentName returns the profile's name in the key of a profile or of its field, or "".
func agentName(key string) string {
	rest, _ := strings.CutPrefix(key, agentSection+".")
	if rest == key {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// isAgentSection reports whether key is "agents" or "agents.NAME".
func isAgentSection(key string) bool {
	name := agentName(key)
	return key == agentSection || name != "" && key == agentSection+"."+name
}

// loadAgents sets the profiles of the file.
func (l *Loaded) loadAgents(file map[string]given) []error {
	var problems []error
	for _, key := range sortedKeys(file) {
		if agentName(key) == "" {
			continue
		}
		if s, ok := find(&l.Config, key); ok {
			problems = append(problems, l.apply(s, file[key])...)
		}
	}
	return problems
}

// all returns the settings of the table and of the profiles.
func (l *Loaded) all() []setting {
	all := settings(&l.Config)
	for _, name := range sortedKeys(l.Agents) {
		for _, s := range agentSettings(&l.Config, name) {
			if _, set := l.origins[s.key]; set {
				all = append(all, s)
			}
		}
	}
	return all
}

// agentTemplate is the part of a new file on profiles.
const agentTemplate = `
# Profiles for --agent and for the tasks of a plan, with the settings in which they
# differ:
# agents:
#   reviewer:
#     model: openai:gpt-4o
#     system: You review code. Name the file and the line of each fault.
#     temperature: 0.2
#     max_output_tokens: 2000
`
