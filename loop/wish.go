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
	EventAgentError perdure.EventKind = "loop.agent_error"
	EventRecovery   perdure.EventKind = "loop.recovery"
	EventWarning    perdure.EventKind = "loop.warning"
	EventReassigned perdure.EventKind = "loop.reassigned"
	EventRisky      perdure.EventKind = "loop.risky_call"
	EventLevel      perdure.EventKind = "loop.reinforcement"
	EventContext    perdure.EventKind = "loop.context"
	// EventHandoff tells that the work of an iteration was recorded for whoever
	// continues it; its data says why.
	EventHandoff perdure.EventKind = "loop.handoff"
)

// farAway is when nothing but an answer wakes a loop.
func farAway() time.Time { return time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) }

// park leaves the loop alone until a time, or until somebody wakes it.
func (r *run) park(until time.Time) { r.parked = &until }

// pause stops the loop until somebody has mended something and resumes it. The
// handlers are told with the end of the step.
func (r *run) pause(format string, args ...any) {
	r.halt(format, args...)
	r.needy = true
}

// halt stops the loop until somebody resumes it.
func (r *run) halt(format string, args ...any) {
	r.loop.Status = record.Paused
	r.state.Reason = fmt.Sprintf(format, args...)
	if r.change.Heard == record.NoWish { // it did go on, until here
		r.change.Heard = record.Resume
	}
	r.note(EventPaused, map[string]any{"reason": r.state.Reason})
	r.park(farAway())
}

// rests parks a loop that is paused, unless somebody wants it to go on or to end.
func (r *run) rests(ctx context.Context, root bool) (bool, error) {
	if r.loop.Status != record.Paused {
		return false, nil
	}
	now, err := r.e.records.Loop(ctx, r.l.Tree.ID)
	if err != nil {
		return false, err
	}
	switch now.Wish {
	case record.NoWish, record.Pause, record.PauseNow:
		return true, r.e.records.Park(ctx, r.l, farAway(), r.loop.Step == stepGate)
	case record.Resume:
		r.change.Heard = now.Wish
		r.note(EventResumed, map[string]any{})
	case record.Abort, record.Revert: // an iteration leaves that to the root
		if root {
			r.change.Heard = now.Wish
			r.loop.Step = r.abort(now.Wish == record.Revert)
		}
	}
	r.loop.Status = record.Running
	r.state.Run.WaitUntil = time.Time{}
	if r.state.Verdict == "" {
		r.state.Reason = ""
	}
	return false, r.save(ctx)
}

// heard fulfils a wish before the next iteration. It reports whether there was one
// that decides what comes next.
func (r *run) heard(ctx context.Context) (next string, decided bool, err error) {
	now, err := r.e.records.Loop(ctx, r.l.Tree.ID)
	if err != nil {
		return "", false, err
	}
	switch now.Wish {
	case record.NoWish:
		return "", false, nil
	case record.Pause, record.PauseNow:
		r.change.Heard = now.Wish
		r.halt("asked to")
		return r.loop.Step, true, nil
	case record.Resume:
		r.change.Heard = now.Wish
		return "", false, nil
	case record.Abort, record.Revert:
		r.change.Heard = now.Wish
		return r.abort(now.Wish == record.Revert), true, nil
	}
	return "", false, nil
}

// ending reports whether somebody wants the loop to end.
func (r *run) ending(ctx context.Context) (bool, error) {
	now, err := r.e.records.Loop(ctx, r.l.Tree.ID)
	return now.Wish == record.Abort || now.Wish == record.Revert, err
}

// heardWithin looks for wishes before the agent's turn. What ends the iteration is
// left to the root, which hears it after the iteration.
func (r *run) heardWithin(ctx context.Context) (next string, decided bool, err error) {
	t := &r.state.Run
	now, err := r.e.records.Loop(ctx, r.l.Tree.ID)
	if err != nil {
		return "", false, err
	}
	switch now.Wish {
	case record.Pause, record.PauseNow, record.Abort, record.Revert:
		t.Failure = (&wishError{now.Wish}).Error()
		return stepMeasure, true, nil
	case record.Resume: // do not wait any longer
		r.change.Heard = now.Wish
		t.WaitUntil = time.Time{}
	case record.NoWish:
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
		r.state.Reason = "the files are those of the beginning"
		r.state.Verdict = verdictRevert
	}
	return stepFinish
}

// verdictRevert is an end that brings back the files of the beginning.
const verdictRevert = "reverted"

// errWish is the cause of an agent's context that ended by a person's wish.
type wishError struct{ wish record.Wish }

// Error says what was asked.
func (e *wishError) Error() string { return "asked to " + string(e.wish) }

// lookEvery is how often wishes are looked for while an agent works, besides
// when the store tells of a change.
const lookEvery = 2 * time.Second

// watched returns a context that ends when somebody wants the agent to stop, and
// a function that ends the watch and waits for it.
func (r *run) watched(ctx context.Context) (context.Context, func()) {
	return r.watchedFor(ctx, record.PauseNow, record.Abort, record.Revert)
}

// watchedFor is watched for other wishes.
func (r *run) watchedFor(ctx context.Context, wishes ...record.Wish) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			changed := r.e.cfg.Store.Changed()
			now, err := r.e.records.Loop(ctx, r.l.Tree.ID)
			if err == nil && slices.Contains(wishes, now.Wish) {
				cancel(&wishError{now.Wish})
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
