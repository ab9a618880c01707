package record

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

// EventControl is appended when a control request was recorded.
const EventControl perdure.EventKind = "loop.asked"

const sqlControlLoop = `UPDATE loop SET wish = $2, updated_at = $3 WHERE tree = $1 AND status IN ` + dbOpen

// Ask records a control request, which the process that executes the loop, now or
// later, carries out. It fails with CodeConflict when the loop has ended, and with
// CodeInvalid when there is no such request.
func (r *Records) Ask(ctx context.Context, tree perdure.TreeID, req Control) error {
	const op = "control loop"
	switch req {
	case Pause, PauseNow, Resume, Abort, Revert:
	default:
		return refuse(perdure.CodeInvalid, op, "the requests are pause, pause_now, resume, abort and revert",
			"%q is not a control request", req)
	}
	if _, err := r.Loop(ctx, tree); err != nil {
		return err
	}
	return r.write(ctx, tree, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		return control(ctx, tx, key, tree, req)
	})
}

func control(ctx context.Context, tx *perdure.WriteTx, key int64, tree perdure.TreeID, req Control) error {
	n, err := tx.Exec(ctx, sqlControlLoop, key, string(req), tx.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return refuse(perdure.CodeConflict, "control loop", "", "the loop of %s has ended", tree)
	}
	if err := tx.AppendEvent(key, 0, EventControl, map[string]any{"wish": req}); err != nil {
		return err
	}
	return tx.WakeParked(ctx, key)
}

const sqlRequest = `SELECT wish, status FROM loop WHERE tree = $1`

// Park gives the task of a loop back until a time, or until a control request or an
// answer to its gate arrives. It returns the task for an immediate claim when one
// arrived since the caller read the loop. atGate says that the loop waits at its last
// gate. Only requests to resume or to end wake a paused loop.
func (r *Records) Park(ctx context.Context, l *perdure.Lease, until time.Time, atGate bool) error {
	return r.write(ctx, l.Tree.ID, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		var req Control
		var status Status
		err := tx.QueryRow(ctx, sqlRequest, key).Scan((*string)(&req), (*string)(&status))
		if err != nil {
			return err
		}
		wake := req != NoControl
		if !wake && atGate {
			if wake, err = tx.LastGateAnswered(ctx, key); err != nil {
				return err
			}
		}
		if status == Paused { // an answer waits until the loop is resumed
			wake = req == Resume || req == Abort || req == Revert
		}
		if wake {
			until = time.Time{}
		}
		return tx.Park(ctx, l, until)
	})
}

// ReplaceGateToken replaces the token of an open gate of the lease's loop, see
// [perdure.WriteTx.ReplaceGateToken].
func (r *Records) ReplaceGateToken(ctx context.Context, l *perdure.Lease, number int, token string) error {
	return r.write(ctx, l.Tree.ID, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		if err := tx.CheckLease(ctx, l); err != nil {
			return err
		}
		return tx.ReplaceGateToken(ctx, key, number, token)
	})
}
