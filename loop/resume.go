package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

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
	old, err := config.Of(&tree, &row)
	if err != nil {
		return record.Resumed{}, err
	}
	next, err := config.Resumed(&old, &req)
	if err != nil {
		return record.Resumed{}, invalidResume(err)
	}
	changes := config.Changes(&old, &next)
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
func (e *Engine) reconfigure(ctx context.Context, row *record.Loop, old, next *config.Config) error {
	if !slices.Equal(old.Agents(), next.Agents()) {
		if err := e.available(next); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	c := record.Reconfiguration{Before: row.Config, After: raw, Changes: config.Changes(old, next)}
	if limits := next.Limits(); limits != old.Limits() {
		c.Limits = &limits
	}
	return e.records.Reconfigure(ctx, row.Tree, c)
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
	if names := r.cfg.Agents(); !slices.Equal(names, r.state.Agents) {
		if r.state.Agents != nil {
			r.state.Agent = 0
		}
		r.state.Agents = names
	}
}
