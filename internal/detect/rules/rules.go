// Package rules reads the settings of detection: disabled patterns and changed actions,
// custom patterns, protected files, and waivers. It defines the file in which a project
// keeps them, and takes waivers only from places that no agent can write.
package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/detect"
)

// Limits of settings.
const (
	maxList    = 200
	maxWaivers = 1000
	maxText    = 1000 // bytes of a path, a name, a reason
)

// Settings select the patterns and their effect. The YAML names are those of the section
// loop and of the project's file.
type Settings struct {
	// Types, if not empty, limit detection to these types.
	Types []detect.Type `json:"patterns_enabled,omitempty" yaml:"patterns_enabled"`
	// Off are the disabled patterns; Actions override the effect of others, by name.
	Off     []string                 `json:"patterns_off,omitempty" yaml:"patterns_off"`
	Actions map[string]detect.Action `json:"pattern_actions,omitempty" yaml:"pattern_actions"`
	// Patterns are the user's own patterns.
	Patterns []Pattern `json:"patterns,omitempty" yaml:"patterns"`
	// ActConfidence is the confidence from which a sign blocks in standard mode; 0 is the
	// default.
	ActConfidence float64 `json:"act_confidence,omitempty" yaml:"act_confidence"`
	// Protected are globs of further protected files.
	Protected []string `json:"protected_paths,omitempty" yaml:"protected_paths"`
}

// Pattern is a user's pattern. The defaults are tier 2, severity medium and confidence 1.
type Pattern struct {
	detect.Custom `yaml:",inline"`
	// Tokens replace Match: tokens separated by blanks that follow each other on one line
	// with any blanks between them.
	Tokens string `json:"tokens,omitempty" yaml:"tokens"`
}

// custom converts the pattern to the form of package detect. Either Match or Tokens is
// set.
func (p *Pattern) custom() (detect.Custom, error) {
	c := p.Custom
	c.Tier, c.Severity = cmp.Or(c.Tier, detect.Sign), cmp.Or(c.Severity, detect.Medium)
	switch tokens := strings.Fields(p.Tokens); {
	case len(tokens) > 0 && p.Match != "":
		return c, errors.New("match and tokens are both set: use one of them")
	case len(tokens) > 0:
		c.Match = sequence(tokens)
	case p.Match == "":
		return c, errors.New("match and tokens are both empty: set match to a regular expression, or tokens to words and " +
			"signs separated by blanks")
	}
	return c, nil
}

// sequence returns a regular expression for tokens that follow each other.
func sequence(tokens []string) string {
	word := func(r rune) bool { return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	var b strings.Builder
	last := rune(0)
	for i, t := range tokens {
		first, _ := utf8.DecodeRuneInString(t)
		switch {
		case i > 0 && word(last) && word(first):
			b.WriteString(`\s+`)
		case i > 0:
			b.WriteString(`\s*`)
		case word(first):
			b.WriteString(`\b`)
		}
		b.WriteString(regexp.QuoteMeta(t))
		last, _ = utf8.DecodeLastRuneInString(t)
	}
	if word(last) {
		b.WriteString(`\b`)
	}
	return b.String()
}

// From returns the settings that v holds, a value with the same JSON. Package
// loop/config has types of its own, because it is public and this one is not.
func From(v any) (Settings, error) {
	var s Settings
	raw, err := json.Marshal(v)
	if err != nil {
		return s, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return s, d.Decode(&s)
}

// To stores the settings in the value that v points to, the reverse of [From].
func (s *Settings) To(v any) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// Rules compiles the settings. The error lists all problems.
func (s *Settings) Rules() (*detect.Rules, error) {
	c := detect.Config{Types: s.Types, Off: s.Off, Actions: s.Actions, ActConfidence: s.ActConfidence}
	var errs []error
	for i := range s.Patterns {
		custom, err := s.Patterns[i].custom()
		if err != nil {
			errs = append(errs, fmt.Errorf("patterns[%d] %q: %w", i, s.Patterns[i].ID, err))
			custom.Match = "x" // so that the other problems are found, too
		}
		c.Patterns = append(c.Patterns, custom)
	}
	for name, n := range map[string]int{"patterns_enabled": len(s.Types), "patterns_off": len(s.Off),
		"pattern_actions": len(s.Actions), "patterns": len(s.Patterns),
		"protected_paths": len(s.Protected)} {
		if n > maxList {
			return nil, fmt.Errorf("%s has %d entries, limit %d", name, n, maxList)
		}
	}
	for i, g := range s.Protected {
		if !glob(g) {
			errs = append(errs, fmt.Errorf("protected_paths[%d]: invalid glob %q: use a pattern like deploy/**/*.yaml", i,
				g))
		}
	}
	rules, err := detect.NewRules(c)
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return rules, nil
}

func glob(g string) bool { return g != "" && len(g) <= maxText && doublestar.ValidatePattern(g) }

// Catalog returns all patterns: the built-in ones, then the user's own.
func (s *Settings) Catalog() []detect.Pattern {
	all := detect.Catalog()
	for i := range s.Patterns {
		if c, err := s.Patterns[i].custom(); err == nil {
			all = append(all, detect.Pattern{ID: c.ID, Type: c.Type, Tier: c.Tier, Severity: c.Severity, Title: c.Message})
		}
	}
	return all
}

// With returns the settings with below as defaults: where both set a value, s wins.
func (s *Settings) With(below *Settings) Settings {
	out := *s
	if len(out.Types) == 0 {
		out.Types = below.Types
	}
	out.ActConfidence = cmp.Or(s.ActConfidence, below.ActConfidence)
	out.Off = slices.Concat(below.Off, s.Off)
	out.Protected = slices.Concat(below.Protected, s.Protected)
	out.Actions = make(map[string]detect.Action)
	maps.Copy(out.Actions, below.Actions)
	maps.Copy(out.Actions, s.Actions)
	out.Patterns = slices.Clone(s.Patterns)
	for _, p := range below.Patterns {
		if !slices.ContainsFunc(s.Patterns, func(own Pattern) bool { return own.ID == p.ID }) {
			out.Patterns = append(out.Patterns, p)
		}
	}
	return out
}

// Equal reports whether both have the same settings.
func (s *Settings) Equal(other *Settings) bool {
	return slices.Equal(s.Types, other.Types) && slices.Equal(s.Off, other.Off) &&
		maps.Equal(s.Actions, other.Actions) && s.ActConfidence == other.ActConfidence &&
		slices.Equal(s.Protected, other.Protected) &&
		slices.EqualFunc(s.Patterns, other.Patterns, func(a, b Pattern) bool { return reflect.DeepEqual(a, b) })
}

// String summarizes the settings.
func (s Settings) String() string {
	var words []string
	list := func(what string, names ...string) {
		if len(names) > 0 {
			words = append(words, what+" "+strings.Join(names, " "))
		}
	}
	var types, own, actions []string
	for _, t := range s.Types {
		types = append(types, string(t))
	}
	for i := range s.Patterns {
		own = append(own, s.Patterns[i].ID)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Actions)) {
		actions = append(actions, name+"="+string(s.Actions[name]))
	}
	list("only", types...)
	list("without", s.Off...)
	list("actions", actions...)
	list("own patterns", own...)
	list("protected", s.Protected...)
	if s.ActConfidence > 0 {
		words = append(words, fmt.Sprintf("signs block from confidence %g", s.ActConfidence))
	}
	if len(words) == 0 {
		return "the defaults"
	}
	return strings.Join(words, ", ")
}
