package record

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// EventWish is appended when something was asked of a loop.
const EventControl perdure.EventKind = "loop.asked"

const sqlAskLoop = `UPDATE loop SET wish = $2, updated_at = $3 WHERE tree = $1 AND status IN ` + dbOpen

// Ask sends a control request to the process that runs a loop, now or later. A loop that
// has ended is CodeConflict, an unknown request CodeInvalid.
func (r *Records) Ask(ctx context.Context, tree perdure.TreeID, control Control) error {
	const op = "ask loop"
	switch control {
	case Pause, PauseNow, Resume, Abort, Revert:
	default:
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%q is nothing to ask of a loop", control),
			Hint: "ask for pause, pause_now, resume, abort or revert"}
	}
	if _, err := r.Loop(ctx, tree); err != nil {
		return err
	}
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		return ask(ctx, tx, key, tree, control)
	})
}

func ask(ctx context.Context, tx *perdure.WriteTx, key int64, tree perdure.TreeID, control Control) error {
	n, err := tx.Exec(ctx, sqlAskLoop, key, string(control), tx.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "ask loop", Msg: fmt.Sprintf("the loop of %s has ended", tree)}
	}
	if err := tx.AppendEvent(key, 0, EventControl, map[string]any{"wish": control}); err != nil {
		return err
	}
	return tx.WakeParked(ctx, key)
}

const sqlCalled = `SELECT wish, status FROM loop WHERE tree = $1`

// Park releases the task of a loop until a time, or until a request wants
// something of the loop or answers its gate: also when that happened since the
// caller looked, which then wakes no task. atGate reports that the loop waits
// for its last gate. A paused loop only hears that it is to go on or to end.
func (r *Records) Park(ctx context.Context, l *perdure.Lease, until time.Time, atGate bool) error {
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, l.Tree.ID)
		if err != nil {
			return err
		}
		var control Control
		var status Status
		if err := tx.QueryRow(ctx, sqlCalled, key).Scan((*string)(&control), (*string)(&status)); err != nil {
			return err
		}
		called := control != NoControl
		if !called && atGate {
			if called, err = tx.LastGateAnswered(ctx, key); err != nil {
				return err
			}
		}
		if status == Paused { // an answer waits until the loop is resumed
			called = control == Resume || control == Abort || control == Revert
		}
		if called {
			until = time.Time{}
		}
		return tx.Park(ctx, l, until)
	})
}
