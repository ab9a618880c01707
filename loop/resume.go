package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/loop/record"
)

// ConfigOf is what a loop is to do: what its tree says, or what somebody changed
// that to.
func ConfigOf(tree *perdure.Tree, l *record.Loop) (Config, error) {
	if len(l.Config) > 0 {
		return ParseConfig(l.Config)
	}
	return ParseConfig(tree.Config)
}

// Resume asks that a loop goes on, and changes its configuration before that. A
// loop that runs takes the change over with its next iteration. One that has ended
// is CodeConflict; a field that cannot be changed, or a value that cannot be, is
// CodeInvalid, and an agent that is not there the error of [Agents]. Then nothing
// is changed.
func (e *Engine) Resume(ctx context.Context, id perdure.TreeID, req record.ResumeRequest) (record.Resumed, error) {
	tree, err := e.cfg.Store.Tree(ctx, id)
	if err != nil {
		return record.Resumed{}, err
	}
	row, err := e.records.Loop(ctx, id)
	if err != nil {
		return record.Resumed{}, err
	}
	if tree.State.Terminal() {
		return record.Resumed{}, ended(&tree, &row)
	}
	if row.Status.Ended() { // but for its last word
		return record.Resumed{Loop: row, Changes: []record.FieldChange{}}, nil
	}
	old, err := ConfigOf(&tree, &row)
	if err != nil {
		return record.Resumed{}, err
	}
	next, err := resumed(&old, &req)
	if err != nil {
		return record.Resumed{}, invalidResume(err)
	}
	changes := Changes(&old, &next)
	if len(changes) == 0 && slices.Equal(old.Given, next.Given) {
		err = e.records.Ask(ctx, id, record.Resume)
	} else {
		err = e.reconfigure(ctx, &row, &old, &next)
	}
	if err != nil {
		return record.Resumed{}, err
	}
	failpoint.Hit("loop.resumed")
	row, err = e.records.Loop(ctx, id)
	return record.Resumed{Loop: row, Changes: changes}, err
}

// reconfigure writes the wish to go on, with another configuration.
func (e *Engine) reconfigure(ctx context.Context, row *record.Loop, old, next *Config) error {
	if !slices.Equal(old.agents(), next.agents()) {
		if err := e.available(next); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	c := record.Reconfiguration{Before: row.Config, After: raw, Changes: Changes(old, next)}
	if limits := next.limits(); limits != old.limits() {
		c.Limits = &limits
	}
	return e.records.Reconfigure(ctx, row.Tree, c)
}

// resumed is a configuration with what is asked for, and with the settings where
// nobody asked for anything, neither now nor before.
func resumed(old *Config, req *record.ResumeRequest) (Config, error) {
	var next Config
	raw, err := json.Marshal(old)
	if err == nil {
		err = json.Unmarshal(raw, &next) // shares nothing with the old one
	}
	if err != nil {
		return next, err
	}
	asked, err := overlay(&next, req.Config)
	if err != nil {
		return next, fmt.Errorf("config: %w", err)
	}
	set := Config{}
	said, err := overlay(&set, req.Settings)
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
	if next, err = ParseConfig(raw); err != nil {
		return next, err
	}
	for _, c := range Changes(old, &next) {
		if slices.Contains(fixedFields(), c.Field) {
			return next, fmt.Errorf("%s cannot be changed: what was measured so far says nothing of another one", c.Field)
		}
	}
	return next, nil
}

// overlay reads a JSON object of fields over a configuration and returns their
// names.
func overlay(c *Config, raw json.RawMessage) ([]string, error) {
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
			return nil, fmt.Errorf("there is no field %q to change", clip(name, 80))
		}
	}
	return names, json.Unmarshal(raw, c)
}

func invalidResume(err error) error {
	if perdure.CodeOf(err) == perdure.CodeInvalid {
		return err
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "resume loop", Msg: err.Error(), Hint: "`perdure loop run` begins another loop"}
}

// ended refuses to go on with a loop that is over, and says how to.
func ended(tree *perdure.Tree, row *record.Loop) error {
	return &perdure.Error{Code: perdure.CodeConflict, Op: "resume loop", Msg: fmt.Sprintf("%s has ended: it is %s after %s", ID(tree), row.Status,
		counted(row.Iteration, "iteration", "iterations")),
		Hint: "`perdure loop run` begins another one in the same folder, with the files as they are now; --max-iterations gives it more"}
}

// enrol begins with the first agent when there are others than before.
func (r *run) enrol() {
	if names := r.cfg.agents(); !slices.Equal(names, r.state.Agents) {
		if r.state.Agents != nil {
			r.state.Agent = 0
		}
		r.state.Agents = names
	}
}
