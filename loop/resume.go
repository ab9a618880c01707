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

// Resume requests that a loop continues, with a changed configuration. A running loop
// applies the change at its next iteration. A failed loop continues if it gets more
// iterations than before; for one that ended otherwise the error is CodeConflict. For
// a field that cannot be changed and for an invalid value it is CodeInvalid, for a
// missing agent the error of [Agents]. With an error nothing is changed.
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
	next, kept, err := config.Resumed(&old, &req, row.Step != stepBegin && row.Step != stepBaseline)
	if err != nil {
		return record.Resumed{}, invalidResume(err)
	}
	if !slices.Equal(old.Agents(), next.Agents()) {
		if err := e.available(&next); err != nil {
			return record.Resumed{}, err
		}
	}
	if err := checkCommits(ctx, &next); err != nil && !old.Commit {
		return record.Resumed{}, err
	}
	if err := e.checkPrices(&next); err != nil && next.BudgetUSD > old.BudgetUSD {
		return record.Resumed{}, err
	}
	if err := e.checkCountsAgain(&row, &old, &next); err != nil {
		return record.Resumed{}, err
	}
	if err := e.keepHeldOut(&next, &old); err != nil {
		return record.Resumed{}, err
	}
	if next.Permission != old.Permission || !slices.Equal(old.Agents(), next.Agents()) {
		if err := e.checkHooks(&next); err != nil {
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

// reopen continues a failed loop if it may do more iterations now. It first marks the
// loop as running, then queues its root: if the process dies in between, the loop is
// running in a tree that has ended, and the next call completes the change.
func (e *Engine) reopen(ctx context.Context, tree *perdure.Tree, row *record.Loop, req *record.ResumeRequest) (
	record.Resumed, error) {
	old, err := config.Of(tree, row)
	if err != nil {
		return record.Resumed{}, err
	}
	next, kept, err := config.Resumed(&old, req, true)
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
		return record.Resumed{}, e.withWorktree(err, tree, &next)
	}
	if err := e.keepHeldOut(&next, &old); err != nil {
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
		Hint: "`perdure loop run` starts another loop"}
}

// ended returns the error of resuming a loop that has ended, with a hint.
func ended(tree *perdure.Tree, row *record.Loop) error {
	if !row.Status.Ended() {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "resume loop",
			Msg: fmt.Sprintf("the tree of %s is %s although the loop has not ended, so it cannot continue", ID(tree),
				tree.State),
			Hint: "`perdure loop abort " + ID(tree) + "` ends it; `perdure loop run` starts another loop in the folder"}
	}
	hint := "`perdure loop run` starts another loop in the same folder"
	if row.Status == record.Failed {
		hint = "resume it with a higher --max-iterations"
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "resume loop",
		Msg: fmt.Sprintf("%s has ended: %s after %s", ID(tree), row.Status,
			human.Count(int64(row.Iteration), "iteration")),
		Hint: hint}
}

// enrol starts with the first agent if the agents have changed.
func (r *run) enrol() {
	if names := r.cfg.Agents(); !slices.Equal(names, r.state.Agents) {
		if r.state.Agents != nil {
			r.state.Agent = 0
		}
		r.state.Agents = names
	}
}
