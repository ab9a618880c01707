package perdure

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Within is a rare change of the store while it is made: for packages of this
// module that keep rows of their own beside the core's (loop/record), so that
// these change together with tasks and events. It is of use only until the
// function returns that it was given to.
type Within struct{ b *batch }

// Write makes a rare change: what write does is durable together when Write
// returns, or nothing of it is. Write may be called again when the database was
// busy, so it must change nothing but the database. An error of it undoes all.
// Its argument is of use only within the module.
func (s *Store) Write(ctx context.Context, write func(context.Context, *Within) error) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		if err := write(ctx, &Within{b}); err != nil {
			return &undo{err}
		}
		return nil
	}))
}

// Reader is the database, for packages of this module to read rows of their own
// from. It is of use only within the module.
func (s *Store) Reader() *sqldb.DB { return s.db }

// Tx is where the change is made.
func (w *Within) Tx() *sqldb.Tx { return w.b.tx }

// Now is the time of the change.
func (w *Within) Now() time.Time { return micros(w.b.now) }

// Held is an error with CodeLeaseLost when the lease was lost.
func (w *Within) Held(ctx context.Context, l *Lease) error { return w.b.held(ctx, l, "write") }

// Key returns the number under which rows of a tree are kept.
func (w *Within) Key(ctx context.Context, id TreeID) (int64, error) {
	var key, at int64
	err := w.b.tx.QueryRow(ctx, sqlTreeKey, []any{string(id)}, &key, &at)
	if err != nil && ignoreNoRows(err) == nil {
		return 0, notFoundf("read tree", "there is no tree %q", id)
	}
	return key, err
}

// Note appends an event; data is encoded as a JSON object. A task of 0 is the
// tree itself.
func (w *Within) Note(tree int64, task TaskID, kind EventKind, data any) error {
	raw, err := json.Marshal(data)
	if err == nil {
		err = validateObject("note event", "data", raw, MaxMetadataBytes)
	}
	if err != nil {
		return &Error{Code: CodeInvalid, Op: "note event", Err: err}
	}
	w.b.event(tree, int64(task), kind, string(raw))
	return nil
}

// Refer makes a tree keep a blob.
func (w *Within) Refer(ctx context.Context, tree int64, ref BlobRef) error {
	return w.b.refBlob(ctx, tree, ref)
}

// SetLimits gives a tree other limits. Warnings of what is used come anew.
func (w *Within) SetLimits(ctx context.Context, tree int64, limits Limits) error {
	raw, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	st, err := w.b.stat(ctx, tree)
	if err == nil {
		st.limits, st.rawLimits, st.warned = limits, string(raw), 0
	}
	return err
}

// Park gives a task back, see [Lease.Park].
func (w *Within) Park(ctx context.Context, l *Lease, until time.Time) error {
	return (&suspend{l: l, to: stQueued, until: until}).apply(ctx, w.b)
}

// Hold gives a task back that waits for a person: nobody claims it before
// [Within.Free], and whoever does then continues the same attempt.
func (w *Within) Hold(ctx context.Context, l *Lease) error {
	return (&suspend{l: l, to: stWaiting, gate: true}).apply(ctx, w.b)
}

const sqlFree = `UPDATE task_hot SET state = 1, ready_at = $2 WHERE id = $1 AND state = 3 AND pending = 0`

// Free lets a task of a tree be claimed that waits for a person, see [Within.Hold].
func (w *Within) Free(ctx context.Context, tree int64, task TaskID) error {
	st, err := w.b.stat(ctx, tree)
	if err != nil {
		return err
	}
	n, err := w.b.tx.Exec(ctx, sqlFree, int64(task), w.b.now)
	if n == 1 {
		st.move(stWaiting, stQueued)
		w.b.event(tree, int64(task), EventTaskReleased, "")
		w.b.readied(tree)
	}
	return err
}

const sqlRouse = `UPDATE task_hot SET ready_at = $2 WHERE tree = $1 AND ready_at IS NOT NULL AND ready_at > $2 AND state = 1`

// Rouse lets the parked tasks of a tree be claimed, see [Lease.Park], and those
// that wait before they are tried again.
func (w *Within) Rouse(ctx context.Context, tree int64) error {
	n, err := w.b.tx.Exec(ctx, sqlRouse, tree, w.b.now)
	if n > 0 {
		w.b.readied(tree)
	}
	return err
}
