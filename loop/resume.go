package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Resume asks that a loop goes on, and changes its configuration before that. A
// loop that runs takes the change over with its next iteration. One that failed goes
// on when it is given more iterations than it had; one that ended otherwise is
// CodeConflict. A field that cannot be changed, or a value that cannot be, is
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
		return e.reopen(ctx, &tree, &row, &req)
	}
	if row.Status.Ended() { // but for its last word
		return record.Resumed{Loop: row, Changes: []record.FieldChange{}}, nil
	}
	old, err := config.Of(&tree, &row)
	if err != nil {
		return record.Resumed{}, err
	}
	next, kept, err := config.Resumed(&old, &req)
	if err != nil {
		return record.Resumed{}, invalidResume(err)
	}
	if !slices.Equal(old.Agents(), next.Agents()) {
		if err := e.available(&next); err != nil {
			return record.Resumed{}, err
		}
	}
	c, err := reconfiguration(&row, &old, &next)
	if err != nil {
		return record.Resumed{}, err
	}
	if len(c.Changes) == 0 && slices.Equal(old.Given, next.Given) {
		err = e.records.Ask(ctx, id, record.Resume)
	} else {
		err = e.records.Reconfigure(ctx, id, c)
	}
	if err != nil {
		return record.Resumed{}, err
	}
	failpoint.Hit("loop.resumed")
	row, err = e.records.Loop(ctx, id)
	return record.Resumed{Loop: row, Changes: c.Changes, Kept: kept}, err
}

// reconfiguration is what is written of a change.
func reconfiguration(row *record.Loop, old, next *config.Config) (record.Reconfiguration, error) {
	raw, err := json.Marshal(next)
	c := record.Reconfiguration{Before: row.Config, After: raw, Changes: config.Changes(old, next)}
	if limits := next.Limits(); limits != old.Limits() {
		c.Limits = &limits
	}
	return c, err
}

// reopen lets a loop go on that failed, when it may do more iterations now. Its row
// says first that it runs, then its root is queued: who dies in between has left a
// loop that runs in a tree that has ended, which the next call finishes.
func (e *Engine) reopen(ctx context.Context, tree *perdure.Tree, row *record.Loop, req *record.ResumeRequest) (
	record.Resumed, error) {
	old, err := config.Of(tree, row)
	if err != nil {
		return record.Resumed{}, err
	}
	next, kept, err := config.Resumed(&old, req)
	if err != nil {
		return record.Resumed{}, invalidResume(err)
	}
	half := !row.Status.Ended()
	if tree.State != perdure.Failed || !half && (row.Status != record.Failed || next.MaxIterations <= row.Iteration) {
		return record.Resumed{}, ended(tree, row)
	}
	if err := e.available(&next); err != nil {
		return record.Resumed{}, err
	}
	if _, err := e.place(&next); err != nil {
		return record.Resumed{}, err
	}
	c, err := reconfiguration(row, &old, &next)
	if err != nil {
		return record.Resumed{}, err
	}
	if half {
		err = e.records.Reconfigure(ctx, row.Tree, c)
	} else {
		err = e.begunAgain(ctx, row, c)
	}
	if err != nil {
		return record.Resumed{}, err
	}
	failpoint.Hit("loop.reopened")
	if err := e.cfg.Store.RetryTask(ctx, tree.Root); err != nil {
		return record.Resumed{}, err
	}
	now, err := e.records.Loop(ctx, tree.ID)
	return record.Resumed{Loop: now, Changes: c.Changes, Kept: kept}, err
}

// begunAgain writes the row of a loop that failed as one that runs.
func (e *Engine) begunAgain(ctx context.Context, row *record.Loop, c record.Reconfiguration) error {
	s, err := state.Read(row.State)
	if err != nil {
		return err
	}
	if s.Selected > 0 && s.Selected != s.Run.Number {
		s.FilesOf = s.Selected
		s.Reverted = fmt.Sprintf("The workspace is that of iteration %d, which was the best one.", s.Selected)
	}
	s.Verdict, s.Reason, s.Selected, s.SelectedReason, s.Verified = "", "", 0, "", false
	raw, err := json.Marshal(&s)
	if err != nil {
		return err
	}
	again := *row
	again.Status, again.Step, again.State = record.Running, stepNext, raw
	return e.records.Reopen(ctx, &again, c)
}

func invalidResume(err error) error {
	if perdure.CodeOf(err) == perdure.CodeInvalid {
		return err
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "resume loop", Msg: err.Error(),
		Hint: "`perdure loop run` begins another loop"}
}

// ended refuses to go on with a loop that is over, and says how to.
func ended(tree *perdure.Tree, row *record.Loop) error {
	hint := "`perdure loop run` begins another one in the same folder, with the files as they are now"
	if row.Status == record.Failed {
		hint = "resume it with a higher --max-iterations"
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "resume loop",
		Msg: fmt.Sprintf("%s has ended: it is %s after %s", ID(tree), row.Status,
			human.Count(int64(row.Iteration), "iteration")),
		Hint: hint}
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
