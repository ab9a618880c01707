package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop/hook"
)

// The origins of a value.
const (
	OriginDefault = "default"
	OriginFile    = "file"
	OriginEnv     = "env"
	OriginFlag    = "flag"
)

// Setting is an effective value.
type Setting struct {
	// Key is the name in the file, for example "retention.completed".
	Key string `json:"key"`
	// Value is a number, a boolean or text. Durations are text, null means no limit.
	// Passwords are hidden.
	Value any `json:"value"`
	// Origin is default, file, env or flag. Where is the file and line, the variable
	// or the flag; empty for defaults.
	Origin string `json:"origin"`
	Where  string `json:"where,omitempty"`
	// Text is the value as in the file.
	Text string `json:"-"`
}

// Effective returns all settings with their values and origins, in the order of
// the settings file.
func (l *Loaded) Effective() []Setting {
	var all []Setting
	for _, s := range l.all() {
		from := l.origins[s.key]
		all = append(all, Setting{
			Key: s.key, Value: s.jsonValue(), Text: s.shown(),
			Origin: from.kind, Where: from.where,
		})
	}
	return all
}

// Set reports whether a setting has a value other than its default.
func (l *Loaded) Set(key string) bool { return l.origins[key].kind != OriginDefault }

// Folder returns the .perdure folder and its origin as a setting.
func (l *Loaded) Folder() Setting {
	return Setting{Key: "dir", Value: l.Dir, Text: l.Dir, Origin: l.dirFrom.kind, Where: l.dirFrom.where}
}

// Key describes a setting.
type Key struct {
	// Name is the key in the file, Variable the environment variable, Flag the flag
	// without dashes.
	Name, Variable, Flag string
	// Default is the built-in value as text, Help one line. Value is the value's
	// name in the help; empty for true and false.
	Default, Help, Value string
	// Lines is set if the value has several lines, which a repeated flag adds.
	Lines bool
}

// Keys returns all settings in the order of the settings file.
func Keys() []Key {
	table := settings(new(Config))
	all := make([]Key, len(table))
	for i, s := range table {
		all[i] = Key{
			Name: s.key, Variable: s.variable(), Flag: strings.TrimPrefix(s.flag(), "--"),
			Default: s.def, Help: s.help, Value: s.value, Lines: s.lines,
		}
	}
	return all
}

// Section is a part of the settings file that no flag and no variable sets.
type Section struct{ Key, Help string }

// Sections returns the sections of the file that are not in [Keys], except those on detection.
func Sections() []Section {
	return []Section{
		{agentSection, "profiles for --agent and for tasks of a plan: model, base_url, system, temperature, " +
			"max_output_tokens, by name"},
		{toolSection, "tools of the models of planners repl and search: command, description, parameters, by name"},
		{hook.SettingsKey, "commands and URLs that loops call: hook, command or url, name, timeout, on_fault (continue or " +
			"block)"},
		{chainsKey, "agents and their fallbacks, by the type of task"},
		{metricsKey, "numbers that loops measure, by name: a command, or command and better (up or down)"},
		{risksKey, "what happens with risky tool calls, by pattern, and commands that need an answer"},
	}
}

// Template returns the text of a new settings file: all keys with help and
// default, commented out.
func Template() string {
	c := Default()
	var b strings.Builder
	b.WriteString(templateHead)
	for _, s := range settings(&c) {
		fmt.Fprintf(&b, "\n# %s\n# %s: %s\n", s.help, s.key, s.yaml())
	}
	b.WriteString(agentTemplate + toolTemplate + hookTemplate + metricTemplate + detectionTemplate)
	return b.String()
}

const templateHead = `# Settings of perdure for this project. All are optional; the commented-out
# values are the defaults. Flags override the environment (PERDURE_MODEL, …),
# which overrides this file. "perdure config" prints the effective values and
# their origins.
#
# API keys are not allowed here: set OPENAI_API_KEY or ANTHROPIC_API_KEY in the
# environment.
`

// bare matches text that needs no quotes in YAML.
var bare = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*$`)

// yaml returns the value as YAML.
func (s setting) yaml() string {
	text := s.shown()
	if !s.isText() {
		return text
	}
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if bare().MatchString(text) && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	// A JSON string is a double-quoted YAML string.
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
