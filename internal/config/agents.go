package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// agentSection begins the keys of profiles: agents.NAME.FIELD.
const agentSection = "agents"

// Agent is a profile of the section agents. What is not set is as for the run.
type Agent struct {
	// Model answers; BaseURL is its endpoint.
	Model   string
	BaseURL string
	// System is sent before the prompt; it may have several lines.
	System string
	// Temperature is 0 to 2; nil when it is not set.
	Temperature *float64
	// MaxOutputTokens is the longest answer; 0 when it is not set.
	MaxOutputTokens int
}

// agent returns a profile to fill in.
func (c *Config) agent(name string) *Agent {
	if c.Agents == nil {
		c.Agents = make(map[string]*Agent)
	}
	if c.Agents[name] == nil {
		c.Agents[name] = new(Agent)
	}
	return c.Agents[name]
}

// agentSettings are the settings of one profile. They exist in the file only.
func agentSettings(name string) []setting {
	key := func(field string) string { return agentSection + "." + name + "." + field }
	return []setting{
		{key: key("model"), help: "what answers", at: func(c *Config) any { return &c.agent(name).Model }, check: notEmpty},
		{key: key("base_url"), help: "endpoint of the model", at: func(c *Config) any { return &c.agent(name).BaseURL },
			check: httpURL, secret: withoutPassword},
		{key: key("system"), help: "what is sent before the prompt", lines: true,
			at: func(c *Config) any { return &c.agent(name).System }},
		{key: key("temperature"), help: "0 to 2", check: temperature, at: func(c *Config) any {
			a := c.agent(name)
			if a.Temperature == nil {
				a.Temperature = new(float64)
			}
			return a.Temperature
		}},
		{key: key("max_output_tokens"), help: "the longest answer",
			at: func(c *Config) any { return &c.agent(name).MaxOutputTokens }, check: between(1, 100_000_000)},
	}
}

func temperature(value any) string {
	if x := *value.(*float64); math.IsNaN(x) || x < 0 || x > 2 {
		return fmt.Sprintf("is %v, but must be between 0 and 2", x)
	}
	return ""
}

// agentName returns the name in a key of a profile, or of one of its fields.
func agentName(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, agentSection+".")
	if !ok {
		return "", false
	}
	name, _, _ = strings.Cut(rest, ".")
	return name, name != ""
}

// findAgentSetting finds a field of a profile.
func findAgentSetting(key string) (setting, bool) {
	name, ok := agentName(key)
	if !ok {
		return setting{}, false
	}
	all := agentSettings(name)
	i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return all[i], true
}

// isAgentSection tells of "agents" and "agents.NAME".
func isAgentSection(key string) bool {
	name, ok := agentName(key)
	return key == agentSection || ok && key == agentSection+"."+name
}

// loadAgents takes the profiles over from the file.
func (l *Loaded) loadAgents(file map[string]given) []error {
	var problems []error
	for _, key := range sortedKeys(file) {
		if s, ok := findAgentSetting(key); ok {
			problems = append(problems, l.apply(s, file[key])...)
		}
	}
	return problems
}

// all are the settings there are: the table, and what profiles have.
func (l *Loaded) all() []setting {
	all := settings()
	for _, name := range sortedKeys(l.Agents) {
		for _, s := range agentSettings(name) {
			if _, set := l.origins[s.key]; set {
				all = append(all, s)
			}
		}
	}
	return all
}

// agentTemplate shows in a new file how profiles are written.
const agentTemplate = `
# Profiles that --agent and the tasks of a plan refer to by name, each with what
# it does differently:
# agents:
#   reviewer:
#     model: openai:gpt-4o
#     system: You review code. Name the file and the line of each fault.
#     temperature: 0.2
#     max_output_tokens: 2000
`
