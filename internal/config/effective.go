package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Where a value came from.
const (
	OriginDefault = "default"
	OriginFile    = "file"
	OriginEnv     = "env"
	OriginFlag    = "flag"
)

// Setting is one effective value, for people and as JSON.
type Setting struct {
	// Key is the name in the file, for example "retention.completed".
	Key string `json:"key"`
	// Value is a number, a truth, or text; durations are text, and null is no
	// limit. Passwords are hidden.
	Value any `json:"value"`
	// Origin is default, file, env or flag; Where names the place: file and
	// line, the variable, the flag; empty for defaults.
	Origin string `json:"origin"`
	Where  string `json:"where,omitempty"`
	// Text is the value as the file would hold it.
	Text string `json:"-"`
}

// Effective lists every setting with its value and origin, in the order of the
// template.
func (l *Loaded) Effective() []Setting {
	var all []Setting
	for _, s := range l.all() {
		from := l.origins[s.key]
		all = append(all, Setting{
			Key: s.key, Value: s.value(&l.Config), Text: s.shown(&l.Config),
			Origin: from.kind, Where: from.where,
		})
	}
	return all
}

// Set tells whether somebody gave a setting, as against its default.
func (l *Loaded) Set(key string) bool { return l.origins[key].kind != OriginDefault }

// Folder tells where the .perdure folder is and why, in the form of a setting.
func (l *Loaded) Folder() Setting {
	return Setting{Key: "dir", Value: l.Dir, Text: l.Dir, Origin: l.dirFrom.kind, Where: l.dirFrom.where}
}

// Key describes a setting for whoever offers it: a flag, a page of the manual.
type Key struct {
	// Name is the key in the file; Variable the environment's; Flag the
	// flag's, without dashes.
	Name, Variable, Flag string
	// Default is the built-in value as text; Help is one line.
	Default, Help string
	// Truth: the value is true or false.
	Truth bool
}

// Keys lists all settings in the order of the template.
func Keys() []Key {
	table, some := settings(), new(Config)
	all := make([]Key, len(table))
	for i, s := range table {
		all[i] = Key{
			Name: s.key, Variable: s.variable(), Flag: strings.TrimPrefix(s.flag(), "--"),
			Default: s.def, Help: s.help, Truth: s.kindIn(some) == truthKind,
		}
	}
	return all
}

// Template is the text of a new settings file: every key with its help and
// default, commented out.
func Template() string {
	c := Default()
	var b strings.Builder
	b.WriteString(templateHead)
	for _, s := range settings() {
		fmt.Fprintf(&b, "\n# %s\n# %s: %s\n", s.help, s.key, s.yaml(&c))
	}
	b.WriteString(agentTemplate)
	b.WriteString(hookTemplate)
	b.WriteString(metricTemplate)
	b.WriteString(detectionTemplate)
	return b.String()
}

const templateHead = `# Settings of perdure for this project. Everything is optional; what is
# commented out is the built-in default. A flag wins over the environment
# (PERDURE_MODEL, …), and that over this file. "perdure config" shows what is
# in effect and where it came from.
#
# Keys of model providers do not belong here: set OPENAI_API_KEY or
# ANTHROPIC_API_KEY in the environment.
`

// YAML is the effective configuration as the text of a settings file, each
// line with its origin. A value whose password is hidden is commented out.
func (l *Loaded) YAML() string {
	var b strings.Builder
	for _, s := range l.all() {
		if s.shown(&l.Config) != s.text(&l.Config) {
			b.WriteString("# ")
		}
		from := l.origins[s.key]
		fmt.Fprintf(&b, "%s: %s # %s\n", s.key, s.yaml(&l.Config), cmp.Or(from.where, from.kind))
	}
	return b.String()
}

// bare matches texts that YAML reads as text without quotes.
var bare = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*$`)
})

// yaml is the value as YAML.
func (s setting) yaml(c *Config) string {
	text := s.shown(c)
	if s.kind() != textKind {
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
