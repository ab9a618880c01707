package config

import (
	"encoding/json"
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
	// Params and Headers are JSON objects of further parameters and headers of requests.
	Params, Headers string
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
		{key: key("params"), help: "further parameters of requests, as JSON", at: &a.Params,
			check: optional(jsonObject), acts: acts(effectParams)},
		{key: key("headers"), help: "further headers of requests, as JSON", at: &a.Headers,
			check: optional(jsonObject), acts: acts(effectHeaders)},
	}
}

// The effects of parameters and headers of a file.
const (
	effectParams  = "adds parameters to the requests to models"
	effectHeaders = "sends environment variables to the endpoints of models"
)

func jsonObject(text string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil {
		return `is not a JSON object; write for example '{"top_p": 0.9}'`
	}
	return ""
}

func temperature(value any) string {
	if x := **value.(**float64); !(x >= 0 && x <= 2) {
		return fmt.Sprintf("%v is not between 0 and 2", x)
	}
	return ""
}

// entryName returns the entry of a section of named entries in the key of the entry or of its
// field, as "agents.NAME" or "tools.NAME"; else "".
func entryName(key string) string {
	section, rest, _ := strings.Cut(key, ".")
	name, _, _ := strings.Cut(rest, ".")
	if section != agentSection && section != toolSection || name == "" {
		return ""
	}
	return section + "." + name
}

// entrySettings returns the settings of an entry of c, which it creates.
func entrySettings(c *Config, entry string) []setting {
	section, name, _ := strings.Cut(entry, ".")
	if section == toolSection {
		return toolSettings(c, name)
	}
	return agentSettings(c, name)
}

// isEntrySection reports whether key is a section of named entries or one of its entries.
func isEntrySection(key string) bool {
	return key == agentSection || key == toolSection || key == entryName(key) && key != ""
}

// loadEntries sets the profiles and tools of the file.
func (l *Loaded) loadEntries(file map[string]given) []error {
	var problems []error
	for _, key := range sortedKeys(file) {
		if entryName(key) == "" {
			continue
		}
		if s, ok := find(&l.Config, key); ok {
			problems = append(problems, l.apply(s, file[key])...)
		}
	}
	return problems
}

// all returns the settings of the table, of the profiles and of the tools.
func (l *Loaded) all() []setting {
	all := settings(&l.Config)
	var entries []string
	for _, name := range sortedKeys(l.Agents) {
		entries = append(entries, agentSection+"."+name)
	}
	for _, name := range sortedKeys(l.Tools) {
		entries = append(entries, toolSection+"."+name)
	}
	for _, entry := range entries {
		for _, s := range entrySettings(&l.Config, entry) {
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
