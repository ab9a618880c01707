package record

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

// EventControl is appended when a control request was recorded, EventControlRefused when one
// was removed because it was not in the log.
const (
	EventControl        perdure.EventKind = "loop.asked"
	EventControlRefused perdure.EventKind = "loop.request_refused"
)

const sqlControlLoop = `UPDATE loop SET wish = $2, updated_at = $3 WHERE tree = $1 AND status IN ` + dbOpen

// Ask records a control request, which the process that executes the loop, now or
// later, carries out. It fails with CodeConflict when the loop has ended, and with
// CodeInvalid when there is no such request. If the tree has ended without the loop, Abort ends
// the loop at once, and the other requests fail with CodeConflict.
func (r *Records) Ask(ctx context.Context, tree perdure.TreeID, req Control) error {
	const op = "control loop"
	switch req {
	case Pause, PauseNow, Resume, Abort, Revert:
	default:
		return refuse(perdure.CodeInvalid, op, "the requests are pause, pause_now, resume, abort and revert",
			"%q is not a control request", req)
	}
	l, err := r.Loop(ctx, tree)
	if err != nil {
		return err
	}
	if !l.Status.Ended() {
		t, err := r.store.Tree(ctx, tree)
		if err != nil {
			return err
		}
		if t.State.Terminal() {
			return r.askEnded(ctx, &t, req)
		}
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
	tx.LogRow(key, perdure.RowControl, 0)
	if err := tx.AppendEvent(key, 0, EventControl, map[string]any{"wish": req}); err != nil {
		return err
	}
	return tx.WakeParked(ctx, key)
}

const (
	sqlWritten = `SELECT wish, updated_at FROM loop WHERE tree = $1`
	sqlRefuse  = `UPDATE loop SET wish = '' WHERE tree = $1 AND wish = $2 AND updated_at = $3`
)

// Request returns the control request that the process of the loop carries out next. One
// without its digest in the log was written by another program, which the check of the caller
// did not see: Request removes it and appends [EventControlRefused].
func (r *Records) Request(ctx context.Context, tree perdure.TreeID) (Control, error) {
	l, err := r.Loop(ctx, tree)
	if err != nil || l.Control == NoControl {
		return NoControl, err
	}
	var req Control
	var at, key int64
	logged := false
	err = r.store.ReadTx(ctx, func(ctx context.Context, tx *perdure.ReadTx) (err error) {
		if key, err = tx.TreeKey(ctx, tree); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sqlWritten, key).Scan((*string)(&req), &at); err != nil || req == NoControl {
			return err
		}
		logged, err = tx.RowLogged(ctx, key, perdure.RowControl, 0)
		return err
	})
	if err != nil || logged || req == NoControl {
		return req, err
	}
	return NoControl, r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		n, err := tx.Exec(ctx, sqlRefuse, key, string(req), at)
		if err != nil || n == 0 { // 0: the user has made a request meanwhile
			return err
		}
		tx.LogRow(key, perdure.RowControl, 0)
		return tx.AppendEvent(key, 0, EventControlRefused, map[string]any{"wish": req})
	})
}

// fulfilled logs that the request that is carried out is removed. Another one that was
// written meanwhile stays, and must be in the log itself.
func fulfilled(ctx context.Context, tx *perdure.WriteTx, key int64, req Control) error {
	if req == NoControl {
		return nil
	}
	var now Control
	var status Status
	err := tx.QueryRow(ctx, sqlRequest, key).Scan((*string)(&now), (*string)(&status))
	if err == nil && now == req {
		tx.LogRow(key, perdure.RowControl, 0)
	}
	return err
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
func (r *Records) ReplaceGateToken(ctx context.Context, l *perdure.Lease, number int, token string) (
	replaced bool, err error) {
	err = r.write(ctx, l.Tree.ID, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		if err := tx.CheckLease(ctx, l); err != nil {
			return err
		}
		var err error
		replaced, err = tx.ReplaceGateToken(ctx, key, number, token)
		return err
	})
	return replaced, err
}
