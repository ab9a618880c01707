package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

// Of is what a loop is to do: what its tree says, or what was changed
// that to.
func Of(tree *perdure.Tree, l *record.Loop) (Config, error) {
	if len(l.Config) > 0 {
		return Parse(l.Config)
	}
	return Parse(tree.Config)
}

// Resumed is a configuration with what is asked for, and with the settings where
// nothing was given explicitly, neither now nor before. Settings that would make the
// supervision weaker are kept as they were, and listed, unless that was asked for: an
// agent can write the file that they come from. measured is set if the baseline was measured.
func Resumed(old *Config, req *record.ResumeRequest, measured bool) (next Config, kept []record.FieldChange,
	err error) {
	raw, err := json.Marshal(old)
	if err == nil {
		err = json.Unmarshal(raw, &next) // shares nothing with the old one
	}
	if err != nil {
		return next, nil, err
	}
	asked, err := next.Overlay(req.Config)
	if err != nil {
		return next, nil, fmt.Errorf("config: %w", err)
	}
	if slices.Contains(asked, "env") && len(next.Env) > 0 { // further ones; an empty list removes all
		next.Env = slices.Concat(old.Env, slices.DeleteFunc(next.Env, func(name string) bool {
			return slices.Contains(old.Env, name)
		}))
	}
	if slices.Contains(asked, "allow") && len(next.Allow) > 0 {
		next.Allow = slices.Concat(old.Allow, slices.DeleteFunc(next.Allow, func(glob string) bool {
			return slices.Contains(old.Allow, glob)
		}))
	}
	set := Config{}
	said, err := set.Overlay(req.Settings)
	if err != nil {
		return next, nil, fmt.Errorf("settings: %w", err)
	}
	if next.Given != nil {
		explicit := func(name string) bool { return slices.Contains(next.Given, name) || slices.Contains(asked, name) }
		taken := slices.DeleteFunc(said, explicit)
		if !req.Weaker {
			kept = notWeakened(&next, &set, taken)
			taken = slices.DeleteFunc(taken, func(name string) bool {
				return slices.ContainsFunc(kept, func(k record.FieldChange) bool { return k.Field == name })
			})
		}
		next.Take(&set, taken...)
		given := append(next.Given, asked...)
		slices.Sort(given)
		next.Given = slices.Compact(given) // never nil, which means all of them
	}
	if next.Agent != old.Agent && !slices.Contains(asked, "model") {
		next.Model = "" // it is one of the old agent
	}
	if raw, err = json.Marshal(&next); err != nil {
		return next, nil, err
	}
	if next, err = Parse(raw); err != nil {
		return next, nil, err
	}
	for _, c := range Changes(old, &next) {
		if slices.Contains(fixedFields(measured), c.Field) {
			return next, nil, fmt.Errorf("%s cannot be changed: measurements so far apply to the old value only", c.Field)
		}
	}
	return next, kept, nil
}

// notWeakened lists the fields in which the settings would weaken the supervision.
func notWeakened(now, set *Config, names []string) []record.FieldChange {
	with := set.WithDefaults()
	from, to := now.Fields(names...), with.Fields(names...)
	var kept []record.FieldChange
	for _, name := range names {
		if weaker(name, now, &with) {
			kept = append(kept, record.FieldChange{Field: name, From: shown(from[name]), To: shown(to[name])})
		}
	}
	return kept
}

// Overlay reads a JSON object of fields over the configuration and returns their
// names. A field that there is not is an error.
func (c *Config) Overlay(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range names {
		if name == "given" || !slices.Contains(FieldNames(), name) {
			return nil, fmt.Errorf("there is no field %.80q to change", name)
		}
	}
	return names, json.Unmarshal(raw, c)
}
