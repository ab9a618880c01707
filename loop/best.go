package loop

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/heldout"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// complete runs the check once more on what is there: what passed once by chance
// does not end the loop.
func complete(ctx context.Context, r *run) (string, error) {
	r.noteUnset()
	check, err := r.compareWork(ctx)
	if err != nil {
		return "", err
	}
	if !check.Passed {
		r.loop.Status = record.Running
		r.note(EventMeasured, map[string]any{"iteration": r.state.Run.Number, "final": true, "passed": false,
			"failing": len(check.Failing)})
		return stepNext, nil
	}
	r.state.Run.Check = &check
	r.noteCleanCopy(r.state.Run.Number)
	return stepSeal, nil
}

// best is the iteration that the loop should leave; nil when there is none. One
// that was undone, or has a regression that was not accepted, is not a candidate.
func (r *run) best(ctx context.Context) (*state.Outcome, error) {
	list, err := r.candidates(ctx)
	if err != nil {
		return nil, err
	}
	held := r.heldOutResults()
	var found *state.Outcome
	for i := range list {
		o, err := state.ReadOutcome(&list[i])
		if err != nil {
			return nil, err
		}
		o.Iteration, o.Quality = list[i].Number, list[i].Quality
		if o.Eligible(&list[i]) && heldout.Prefers(&r.cfg, held, &o, found) {
			found = &o
		}
	}
	return found, nil
}

// candidates lists the iterations from which the best one is chosen.
func (r *run) candidates(ctx context.Context) ([]record.Iteration, error) {
	if r.holdsOut() {
		return r.heldOutCandidates(ctx)
	}
	return r.e.records.Candidates(ctx, r.l.Tree.ID, r.cfg.QualityThreshold)
}

// leaveBest restores the best iteration of an unattended loop that stops at a gate, or the
// files from before the loop if no iteration can be kept. The files that the gate asks about
// stay in a snapshot. It can be interrupted and called again.
func (r *run) leaveBest(ctx context.Context) error {
	if r.cfg.Plain || r.cfg.KeepLast {
		return nil
	}
	shown, why := r.state.Baseline, "no iteration can be kept: the files from before the loop are restored"
	subject, selected := restoreFirst, 0
	best, err := r.best(ctx)
	if err != nil {
		return err
	}
	if best != nil {
		shown, why = best.After, fmt.Sprintf("iteration %d is restored, the best so far (quality %d%%)", best.Iteration,
			*best.Quality)
		subject, selected = restoreBest(best.Iteration), best.Iteration
	}
	if r.state.AtGate == nil {
		left, _, err := r.files.Snapshot(ctx)
		if err != nil {
			return refusal(err)
		}
		r.state.AtGate = &state.GateFiles{Left: left, Shown: shown}
		if err := r.save(ctx); err != nil { // before the files are gone
			return err
		}
	}
	failpoint.Hit("loop.gate.leave")
	done, err := r.files.Restore(ctx, shown)
	if err == nil && len(done.Changes) > 0 {
		r.note(EventLeft, map[string]any{"reason": why, "files": len(done.Changes), "snapshot": r.state.AtGate.Left})
	}
	if err != nil {
		return refusal(err)
	}
	return r.commitLeft(ctx, subject, why, selected)
}

// takeBack restores the files that an answered gate asked about, unless the answer leaves
// the files as they are.
func (r *run) takeBack(ctx context.Context, g *perdure.Gate) error {
	at := r.state.AtGate
	r.state.AtGate = nil
	if at == nil || g.Answer == answerAbort || g.Answer == answerManual {
		return nil
	}
	changes, err := r.files.DiffNow(ctx, at.Shown)
	if err != nil {
		return refusal(err)
	}
	done, err := r.files.Restore(ctx, at.Left)
	if err == nil && len(changes) > 0 && len(done.Changes) > 0 {
		r.note(EventWarning, map[string]any{"iteration": r.state.Run.Number, "kind": "files", "message": fmt.Sprintf(
			"%s changed while the gate waited; they are in snapshot %s", human.Count(len(changes), "file"), done.Before[0])})
	}
	return refusal(err)
}

// restoreSelected brings back the files of the best iteration. A last one that passes is
// never replaced by one that does not.
func restoreSelected(ctx context.Context, r *run) (string, error) {
	last := r.state.Run.Number
	if r.cfg.Plain {
		r.state.Selected, r.state.SelectedReason = last, "Final iteration; none is selected, the supervision is off"
		return stepFinish, nil
	}
	best, err := r.best(ctx)
	if err != nil {
		return "", err
	}
	if best == nil || r.cfg.RequireVerification && !best.Check.Passed {
		r.state.SelectedReason = "no iteration can be kept; the files are as the last one left them"
		if r.state.Reverted != "" && r.state.FilesOf == 0 { // it was reverted
			r.state.SelectedReason = "no iteration can be kept; " + r.comparedWithBefore(ctx, last)
		}
		return stepFinish, nil
	}
	final, err := r.outcome(ctx, last)
	if err != nil {
		return "", err
	}
	below := ""
	if *best.Quality < r.cfg.QualityThreshold {
		below = ", below threshold"
	}
	switch {
	case r.cfg.KeepLast:
		r.state.Selected, r.state.SelectedReason = last, fmt.Sprintf(
			"Final iteration, as asked; the best is iteration %d (%d %%%s)", best.Iteration, *best.Quality, below)
		return stepFinish, nil
	case best.Iteration == last, final.Check.Passed && !best.Check.Passed:
		r.state.Selected, r.state.SelectedReason = last, "Final iteration was also best"+below
		return stepFinish, nil
	}
	r.state.Selected = best.Iteration
	r.state.SelectedReason = fmt.Sprintf("Highest quality (%d %%) at iteration %d, not final%s", *best.Quality,
		best.Iteration, below)
	if r.holdsOut() { // the quality alone did not decide
		r.state.SelectedReason = fmt.Sprintf("Iteration %d (quality %d %%) is left, not the final one%s", best.Iteration,
			*best.Quality, below)
	}
	done, err := r.files.Restore(ctx, best.After)
	if err != nil {
		return "", refusal(err)
	}
	r.noteRestored(done, fmt.Sprintf("of iteration %d", best.Iteration))
	if len(done.Changes) > 0 || len(r.state.WayBack) == 0 {
		r.state.WayBack = done.Before
	}
	if best.CleanCopy == nil && best.Check.Passed {
		r.noteCleanCopy(best.Iteration)
	}
	return stepVerify, nil
}

// comparedWithBefore compares the files with those from before an iteration that was reverted, and
// says what it found.
func (r *run) comparedWithBefore(ctx context.Context, iteration int) string {
	out, err := r.outcome(ctx, iteration)
	if err != nil || out.Before == "" {
		return fmt.Sprintf("the files were not compared with those from before iteration %d", iteration)
	}
	changes, err := r.files.DiffNow(ctx, out.Before)
	switch {
	case err != nil:
		return fmt.Sprintf("the files could not be compared with those from before iteration %d: %s", iteration, err)
	case len(changes) == 0:
		return fmt.Sprintf("the files are those from before iteration %d", iteration)
	}
	return fmt.Sprintf("the workspace differs from before iteration %d in %s: %s", iteration,
		human.Count(len(changes), "file"), few(names(changes, len(changes))))
}

// verify runs the check on what was brought back. When it passed then and does
// not now, the last iteration comes back.
func verify(ctx context.Context, r *run) (string, error) {
	best, err := r.outcome(ctx, r.state.Selected)
	if err != nil {
		return "", err
	}
	check, err := r.checkWork(ctx, nil, false)
	if err != nil {
		return "", err
	}
	why := ""
	if !check.Passed {
		why = fmt.Sprintf("did not pass again (exit status %d)", check.Exit)
	} else if why, err = r.sealBest(ctx, best, &check.Check); err != nil {
		return "", err
	}
	r.state.Verified = why == ""
	if best.Check.Passed && why != "" && len(r.state.WayBack) > 0 {
		if _, err := r.files.Restore(ctx, r.state.WayBack[0]); err != nil {
			return "", refusal(err)
		}
		r.state.SelectedReason = fmt.Sprintf("iteration %d %s; the files are as the last one left them", best.Iteration, why)
		r.state.Selected = r.state.Run.Number
	}
	return stepFinish, nil
}

// finish ends the loop: the handlers are called, and its status is stored.
func finish(ctx context.Context, r *run) (string, error) {
	s := &r.state
	reverted := s.Verdict == verdictRevert
	if reverted {
		if s.Baseline != "" {
			if _, err := r.files.Restore(ctx, s.Baseline); err != nil {
				return "", refusal(err)
			}
			s.Reason = "the files from before the loop were restored"
		}
		s.Verdict = string(record.Aborted)
	}
	if err := r.commitEnd(ctx, reverted); err != nil {
		return "", err
	}
	r.noteChanged(ctx)
	r.loop.Status = record.Status(s.Verdict)
	if err := r.withMissing(ctx); err != nil {
		return "", err
	}
	_, err := r.ask(ctx, hook.LoopComplete, s.Reason,
		map[string]any{"status": s.Verdict, "total_iterations": r.loop.Iteration,
			"selected_iteration": s.Selected, "selection_reason": s.SelectedReason})
	if err != nil {
		return "", err
	}
	if s.Selected > 0 {
		r.note(EventSelected, map[string]any{"iteration": s.Selected, "reason": s.SelectedReason})
	}
	r.note(EventEnded, map[string]any{"status": s.Verdict, "reason": s.Reason, "iterations": r.loop.Iteration})
	return stepEnded, nil
}

// noteChanged compares the files with those from before the loop.
func (r *run) noteChanged(ctx context.Context) {
	if r.fault != nil || r.state.Baseline == "" {
		return
	}
	if changes, err := r.files.DiffNow(ctx, r.state.Baseline); err == nil { // else they are not known
		r.state.Changed = &state.Changed{Count: len(changes), Names: names(changes, fewNamed)}
	}
}

// settle ends the root as the loop ended. What cannot be written or removed then
// is not a reason to begin anything again.
func (r *run) settle(ctx context.Context) error {
	if r.e.cfg.Ended != nil {
		if err := r.e.cfg.Ended(ctx, &r.l.Tree, r.e.dir(&r.l.Tree)); err != nil {
			r.e.cfg.Logger.Warn("report of loop not written", "tree_id", string(r.l.Tree.ID), "error", err)
		}
	}
	r.sweep(ctx, 0)
	if dir := r.e.copyDir(&r.l.Tree); dir != "" && r.loop.Status == record.Aborted {
		if err := os.RemoveAll(dir); err != nil {
			r.e.cfg.Logger.Warn("copies of loop not removed", "tree_id", string(r.l.Tree.ID), "error", err)
		}
	}
	switch r.loop.Status {
	case record.Completed:
		return r.l.Complete(ctx, perdure.Result{Text: r.summary()})
	case record.Aborted:
		return fail("aborted", "%s", r.state.Reason)
	case record.Failed, record.Running, record.Paused, record.Completing:
	}
	return fail("unfinished", "%s", r.summary())
}

// summary says in a line or two how far the loop is.
func (r *run) summary() string {
	text := cmp.Or(r.state.Reason, fmt.Sprintf("iteration %d", r.state.Run.Number))
	if r.state.SelectedReason != "" {
		text += ". " + r.state.SelectedReason
	}
	return text
}

const (
	// sweepEvery is after how many iterations old snapshots are removed, and
	// keptSnapshots how many of those that nothing refers to stay.
	sweepEvery    = 10
	keptSnapshots = 20
)

// sweep removes snapshots: those of the baseline, of the best and the last
// iteration, and from before a restore stay, and the newest of the others. What
// cannot be removed stays, too.
func (r *run) sweep(ctx context.Context, newest int) {
	if r.fault != nil {
		return
	}
	keep := append([]workspace.ID{r.state.Baseline, r.state.Checked, r.trusted(), r.state.Metering.At, r.state.Run.Before,
		r.state.Run.After}, r.state.WayBack...)
	if at := r.state.AtGate; at != nil {
		keep = append(keep, at.Left, at.Shown)
	}
	if at := r.state.Branch; at != nil {
		keep = append(keep, at.Snapshot)
	}
	best, err := r.best(ctx)
	if err == nil {
		if best != nil {
			keep = append(keep, best.After)
		}
		keep = slices.DeleteFunc(keep, func(id workspace.ID) bool { return id == "" })
		_, err = r.files.Sweep(ctx, workspace.Retain{Keep: keep, Newest: newest})
	}
	if err != nil {
		r.e.cfg.Logger.Warn("snapshots of loop not removed", "tree_id", string(r.l.Tree.ID), "error", err)
	}
}
