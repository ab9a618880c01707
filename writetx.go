package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// WriteTx is a write transaction, see [Store.WriteTx]. It is valid until the
// function that received it returns, and only in that function's goroutine.
type WriteTx struct{ b *batch }

// WriteTx runs write in a transaction: when WriteTx returns nil, all changes by write are
// durable; when write returns an error, none is made. Packages that keep rows of their own
// in the store use it to change them together with tasks and events.
//
// write may be called again if the database was busy, so it must not change anything
// else. It shares its transaction with other changes of this process, which wait while it
// runs.
//
// Statements are prepared once and kept: use constants, with $1, $2, … for
// arguments, in SQL that both SQLite and PostgreSQL understand. The tables of the
// store itself change with its versions; other modules should use only tables of
// their own.
func (s *Store) WriteTx(ctx context.Context, write func(context.Context, *WriteTx) error) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return undoing(write(ctx, &WriteTx{b})) }))
}

// Exec runs a statement and returns the number of rows that it changed.
func (tx *WriteTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return tx.b.tx.Exec(ctx, query, args...)
}

// Query runs a statement that returns rows, see [Querier].
func (tx *WriteTx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return tx.b.tx.Query(ctx, query, args...)
}

// QueryRow runs a statement that returns one row, see [Querier].
func (tx *WriteTx) QueryRow(ctx context.Context, query string, args ...any) Row {
	return rowFunc(func(dest ...any) error { return tx.b.tx.QueryRow(ctx, query, args, dest...) })
}

// Now returns the time of the transaction.
func (tx *WriteTx) Now() time.Time { return micros(tx.b.now) }

// TreeKey returns the number under which the rows of a tree are kept. It fails
// with CodeNotFound when the store has no such tree.
func (tx *WriteTx) TreeKey(ctx context.Context, id TreeID) (int64, error) {
	return treeKey(ctx, tx, id)
}

// TreeState returns the state of a tree, by its key, with what the transaction has changed.
func (tx *WriteTx) TreeState(ctx context.Context, key int64) (State, error) {
	stat, err := tx.b.stat(ctx, key)
	if err != nil {
		return "", err
	}
	return treeStateOf(stat.state, stat.partial), nil
}

// NextID returns a number for a row of another package. It is larger than all earlier ones
// in the store; rows of other kinds use numbers of the same sequence.
func (tx *WriteTx) NextID() int64 {
	tx.b.cache.seq.mutation++
	return tx.b.cache.seq.mutation
}

// CheckLease fails with CodeLeaseLost when the lease was lost.
func (tx *WriteTx) CheckLease(ctx context.Context, l *Lease) error { return tx.b.held(ctx, l, "write") }

// AppendEvent appends an event. data is encoded as a JSON object. A task of 0
// means the tree itself.
func (tx *WriteTx) AppendEvent(tree int64, task TaskID, kind EventKind, data any) error {
	raw, err := eventData(data)
	if err == nil {
		tx.b.event(tree, int64(task), kind, raw)
	}
	return err
}

// eventData encodes the data of an event.
func eventData(data any) (string, error) {
	const op = "append event"
	raw, err := json.Marshal(data)
	if err != nil {
		return "", &Error{Code: CodeInvalid, Op: op, Err: err}
	}
	return string(raw), validateObject(op, "data", raw, MaxMetadataBytes)
}

// AddBlobRef records that a tree refers to a blob, which keeps the blob as long as
// the tree. It fails with CodeNotFound if the blob was removed.
func (tx *WriteTx) AddBlobRef(ctx context.Context, tree int64, ref BlobRef) error {
	return tx.b.refBlob(ctx, tree, ref)
}

// SetLimits replaces the limits of a tree. Warning events are appended again.
func (tx *WriteTx) SetLimits(ctx context.Context, tree int64, limits Limits) error {
	st, err := tx.b.stat(ctx, tree)
	if err == nil {
		st.limits, st.rawLimits, st.warned = limits, "", st.warned&overran
	}
	return err
}

// Park does what [Lease.Park] does.
func (tx *WriteTx) Park(ctx context.Context, l *Lease, until time.Time) error {
	return (&suspend{l: l, to: stQueued, until: until}).apply(ctx, tx.b)
}

const sqlWakeParked = `UPDATE task_hot SET ready_at = $2
	WHERE tree = $1 AND ready_at IS NOT NULL AND ready_at > $2 AND state = ` + dbQueued

// WakeParked makes the tree's parked tasks, see [Lease.Park], and those that wait for a
// retry claimable now.
func (tx *WriteTx) WakeParked(ctx context.Context, tree int64) error {
	n, err := tx.b.tx.Exec(ctx, sqlWakeParked, tree, tx.b.now)
	if n > 0 {
		tx.b.ready[tree] = true
	}
	return err
}

// SetVars sets variables of the state of the lease's own task and deletes others. Variables to
// delete that are missing, read-only ones, and new ones beyond [MaxVariables] are left as they
// are. Unlike changes by [Lease.SetVar], these are not undone when the task is run again: the
// caller keeps rows that say what was done. Values have at most [MaxPayloadBytes] as JSON. It
// fails with CodeInvalid for the variables prompt and Final.
func (tx *WriteTx) SetVars(ctx context.Context, l *Lease, set []VarSpec, gone []string) error {
	const op = "set variables"
	ref := l.Var()
	key, err := ref.key(op)
	if err != nil {
		return err
	}
	change := func(c *varChange) error {
		if c.spec.Name == VarFinal || c.spec.Name == VarPrompt {
			return invalidf(op, "variable %q is not for this", c.spec.Name)
		}
		c.l, c.kept, c.ref, c.key, c.spec.Source = l, true, ref, key, l.Task.ID.String()
		if err := c.check(op); err != nil {
			return err
		}
		if len(c.value) > MaxPayloadBytes {
			return invalidf(op, "the value of %q has %d bytes, the limit is %d", c.spec.Name, len(c.value), MaxPayloadBytes)
		}
		if c.kind == changeSet {
			var err error
			if c.stored, err = tx.b.s.storedRow(c.value); err != nil {
				return err
			}
		}
		return c.apply(ctx, tx.b)
	}
	for _, spec := range set {
		err := change(&varChange{spec: spec, kind: changeSet})
		if err != nil && (CodeOf(err) != CodeConflict || spec.IfVersion != nil) {
			return err
		}
	}
	for _, name := range gone {
		err := change(&varChange{spec: VarSpec{Name: name}, kind: changeDelete})
		if code := CodeOf(err); err != nil && code != CodeNotFound && code != CodeConflict {
			return err
		}
	}
	return nil
}
