package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

// The kinds of events of loops.
const (
	EventStarted    perdure.EventKind = "loop.started"
	EventIteration  perdure.EventKind = "loop.iteration_started"
	EventMeasured   perdure.EventKind = "loop.iteration_ended"
	EventRegression perdure.EventKind = "loop.regression"
	EventReverted   perdure.EventKind = "loop.iteration_reverted"
	EventWaiting    perdure.EventKind = "loop.waiting"
	EventPaused     perdure.EventKind = "loop.paused"
	EventResumed    perdure.EventKind = "loop.resumed"
	EventSelected   perdure.EventKind = "loop.best_selected"
	EventEnded      perdure.EventKind = "loop.ended"
	// EventRestored reports that files were restored, all of them or some.
	EventRestored perdure.EventKind = "loop.files_restored"
	// EventLeft reports that an unattended loop left its best files while a gate waits.
	EventLeft       perdure.EventKind = "loop.best_left"
	EventAgentError perdure.EventKind = "loop.agent_error"
	EventRecovery   perdure.EventKind = "loop.recovery"
	EventWarning    perdure.EventKind = "loop.warning"
	EventReassigned perdure.EventKind = "loop.reassigned"
	EventRisky      perdure.EventKind = "loop.risky_call"
	EventLevel      perdure.EventKind = "loop.reinforcement"
	EventContext    perdure.EventKind = "loop.context"
	// EventDenied reports a call that the agent's own permissions denied. It is written while
	// the turn goes on.
	EventDenied perdure.EventKind = "loop.call_denied"
	// EventAgentWaits reports that the agent retries a request to its provider by itself, after
	// a wait. It is written while the turn goes on.
	EventAgentWaits perdure.EventKind = "loop.agent_waits"
	// EventCheck reports that the turn of an agent ended, and that the check begins.
	EventCheck perdure.EventKind = "loop.check"
	// EventCleanCopy reports that the check of an iteration begins in a clean copy.
	EventCleanCopy perdure.EventKind = "loop.clean_copy"
	// EventWithheld reports variables of the environment that agents and checks do not get.
	EventWithheld perdure.EventKind = "loop.environment"
	// EventWorktree reports that the worktree of a loop was made.
	EventWorktree perdure.EventKind = "loop.worktree"
	// EventCommitted reports that the files of an iteration, or those at the end of the loop,
	// were committed.
	EventCommitted perdure.EventKind = "loop.committed"
	// EventHandoff reports that the work of an iteration was recorded for the agent that
	// continues it; its data says why.
	EventHandoff perdure.EventKind = "loop.handoff"
)

// farAway is when nothing but an answer wakes a loop.
func farAway() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

// park parks the loop until a time, or until it is woken.
func (r *run) park(until time.Time) { r.parked = &until }

// pause stops the loop until a person has fixed a problem and resumes it. Handlers
// are called at the end of the step.
func (r *run) pause(format string, args ...any) {
	r.halt(format, args...)
	r.needy = true
}

// halt stops the loop until it is resumed.
func (r *run) halt(format string, args ...any) {
	r.loop.Status = record.Paused
	r.state.Reason = fmt.Sprintf(format, args...)
	if r.change.Fulfilled == record.NoControl { // it was resumed, until here
		r.change.Fulfilled = record.Resume
	}
	r.note(EventPaused, map[string]any{"reason": r.state.Reason})
	r.park(farAway())
}

// parkIfPaused parks a paused loop, unless a control request resumes or ends it.
func (r *run) parkIfPaused(ctx context.Context, root bool) (bool, error) {
	if r.loop.Status != record.Paused {
		return false, nil
	}
	req, err := r.e.records.Request(ctx, r.l.Tree.ID)
	if err != nil {
		return false, err
	}
	switch req {
	case record.NoControl, record.Pause, record.PauseNow:
		return true, r.e.records.Park(ctx, r.l, farAway(), r.loop.Step == stepGate)
	case record.Resume:
		r.change.Fulfilled = req
		r.note(EventResumed, map[string]any{})
	case record.Abort, record.Revert: // an iteration leaves that to the root
		if root {
			r.change.Fulfilled = req
			r.loop.Step = r.abort(req == record.Revert)
		}
	}
	r.loop.Status = record.Running
	r.state.Run.WaitUntil = time.Time{}
	if r.state.Verdict == "" {
		r.state.Reason = ""
	}
	return false, r.save(ctx)
}

// obeyControl fulfils a control request before the next iteration. It reports whether there was one
// that decides what comes next.
func (r *run) obeyControl(ctx context.Context) (next string, decided bool, err error) {
	req, err := r.e.records.Request(ctx, r.l.Tree.ID)
	if err != nil {
		return "", false, err
	}
	switch req {
	case record.NoControl:
		return "", false, nil
	case record.Pause, record.PauseNow:
		r.change.Fulfilled = req
		r.halt("asked to")
		return r.loop.Step, true, nil
	case record.Resume:
		r.change.Fulfilled = req
		return "", false, nil
	case record.Abort, record.Revert:
		r.change.Fulfilled = req
		return r.abort(req == record.Revert), true, nil
	}
	return "", false, nil
}

// ending reports whether a control request ends the loop.
func (r *run) ending(ctx context.Context) (bool, error) {
	req, err := r.e.records.Request(ctx, r.l.Tree.ID)
	return req == record.Abort || req == record.Revert, err
}

// obeyInTurn reads control requests before the agent's turn. What ends the iteration is
// left to the root, which hears it after the iteration.
func (r *run) obeyInTurn(ctx context.Context) (next string, decided bool, err error) {
	t := &r.state.Run
	req, err := r.e.records.Request(ctx, r.l.Tree.ID)
	if err != nil {
		return "", false, err
	}
	switch req {
	case record.Pause, record.PauseNow:
		if t.Working { // the turn was interrupted; it is undone when the loop is resumed
			r.change.Fulfilled = req
			r.halt("stopped by the user")
			return stepAct, true, nil
		}
		t.Failure = (&controlError{req}).Error()
		return stepMeasure, true, nil
	case record.Abort, record.Revert:
		t.Failure = (&controlError{req}).Error()
		return stepMeasure, true, nil
	case record.Resume: // do not wait any longer
		r.change.Fulfilled = req
		t.WaitUntil = time.Time{}
	case record.NoControl:
	}
	if t.WaitUntil.After(time.Now()) {
		r.park(t.WaitUntil)
		return stepAct, true, nil
	}
	return "", false, nil
}

// abort decides that the loop ends without being done.
func (r *run) abort(revert bool) (next string) {
	r.state.Verdict, r.state.Reason = string(record.Aborted), "the files are as they were left"
	r.state.Selected, r.state.SelectedReason = 0, "" // it may have been about to bring back the best
	if revert {
		r.state.Reason, r.state.Verdict = "the files from before the loop are being restored", verdictRevert
		if r.state.Baseline == "" { // it never went on, since it was imported
			r.state.Reason = "there is no snapshot from before the loop; the files are as they were left"
		}
	}
	return stepFinish
}

// verdictRevert is an end that brings back the files of the beginning.
const verdictRevert = "reverted"

// controlError is the cause of an agent's context that ended by a control request.
type controlError struct{ control record.Control }

// Error says what was asked.
func (e *controlError) Error() string { return "asked to " + string(e.control) }

// lookEvery is how often control requests are read while an agent works, in addition
// to changes of the store.
const lookEvery = 2 * time.Second

// watched returns a context that ends when a control request stops the agent, and
// a function that ends the watch and waits for it.
func (r *run) watched(ctx context.Context) (context.Context, func()) {
	return r.watchedFor(ctx, record.PauseNow, record.Abort, record.Revert)
}

// watchedFor is watched for other control requests.
func (r *run) watchedFor(ctx context.Context, controls ...record.Control) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			changed := r.e.cfg.Store.Changed()
			req, err := r.e.records.Request(ctx, r.l.Tree.ID)
			if err == nil && slices.Contains(controls, req) {
				cancel(&controlError{req})
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-tick.C:
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
