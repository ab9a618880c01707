package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

// Of is what a loop is to do: what its tree says, or what somebody changed
// that to.
func Of(tree *perdure.Tree, l *record.Loop) (Config, error) {
	if len(l.Config) > 0 {
		return Parse(l.Config)
	}
	return Parse(tree.Config)
}

// Resumed is a configuration with what is asked for, and with the settings where
// nobody asked for anything, neither now nor before.
func Resumed(old *Config, req *record.ResumeRequest) (Config, error) {
	var next Config
	raw, err := json.Marshal(old)
	if err == nil {
		err = json.Unmarshal(raw, &next) // shares nothing with the old one
	}
	if err != nil {
		return next, err
	}
	asked, err := next.Overlay(req.Config)
	if err != nil {
		return next, fmt.Errorf("config: %w", err)
	}
	set := Config{}
	said, err := set.Overlay(req.Settings)
	if err != nil {
		return next, fmt.Errorf("settings: %w", err)
	}
	if next.Given != nil {
		explicit := func(name string) bool { return slices.Contains(next.Given, name) || slices.Contains(asked, name) }
		next.Take(&set, slices.DeleteFunc(said, explicit)...)
		next.Given = slices.Compact(slices.Sorted(slices.Values(append(next.Given, asked...))))
	}
	if raw, err = json.Marshal(&next); err != nil {
		return next, err
	}
	if next, err = Parse(raw); err != nil {
		return next, err
	}
	for _, c := range Changes(old, &next) {
		if slices.Contains(fixedFields(), c.Field) {
			return next, fmt.Errorf("%s cannot be changed: what was measured so far says nothing of another one", c.Field)
		}
	}
	return next, nil
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
