package record

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
)

// EventClosed is appended when a loop was ended whose tree had ended without it.
const EventClosed perdure.EventKind = "loop.closed"

const (
	sqlLoopState = `SELECT state FROM loop WHERE tree = $1 AND status IN ` + dbOpen
	sqlCloseLoop = `UPDATE loop SET status = '` + string(Aborted) + `', wish = '', state = $2, version = version + 1,
		updated_at = $3 WHERE tree = $1`
)

// closedReason is the reason of a loop that was ended by closeLoop.
const closedReason = "its tree had ended without the loop; the files are as they were left, and were not checked"

// closeLoop ends the row of a loop whose tree has ended without it: the user completed or
// cancelled the tree, or the executor failed. No process executes such a loop any more. It refuses a
// loop whose tree is open: it was continued meanwhile.
func closeLoop(ctx context.Context, tx *perdure.WriteTx, key int64) error {
	switch state, err := tx.TreeState(ctx, key); {
	case err != nil:
		return err
	case !state.Terminal():
		return refuse(perdure.CodeConflict, "control loop", "repeat the command", "the loop was continued meanwhile")
	}
	var raw text
	if err := tx.QueryRow(ctx, sqlLoopState, key).Scan(&raw); err != nil {
		return err
	}
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal([]byte(raw), &members); err != nil {
		return err
	}
	reason, err := json.Marshal(closedReason)
	if err != nil {
		return err
	}
	members["reason"] = reason
	closed, err := json.Marshal(members)
	if err != nil {
		return err
	}
	logLoop, err := loopLogger(ctx, tx, key)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlCloseLoop, key, string(closed), tx.Now().UnixMicro()); err != nil {
		return err
	}
	logLoop()
	tx.LogRow(key, perdure.RowControl, 0)
	return tx.AppendEvent(key, 0, EventClosed, map[string]any{"reason": closedReason})
}

// askEnded carries out a control request of a loop whose tree has ended without the loop, which
// no process executes: only to end it.
func (r *Records) askEnded(ctx context.Context, tree *perdure.Tree, req Control) error {
	const op = "control loop"
	hint := "`perdure loop abort " + string(tree.ID) + "` ends it"
	switch req {
	case Abort:
	case Revert:
		return refuse(perdure.CodeConflict, op, hint+" and keeps the files",
			"the tree of the loop %s is %s although the loop has not ended, so no process restores files", tree.ID,
			tree.State)
	default:
		return refuse(perdure.CodeConflict, op, hint, "the tree of the loop %s is %s although the loop has not ended",
			tree.ID, tree.State)
	}
	return r.write(ctx, tree.ID, closeLoop)
}
