package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// Limits of what is kept, in bytes.
const (
	MaxStateBytes     = 1 << 20
	MaxIterationBytes = 256 << 10
	MaxReasonBytes    = 4 << 10
)

// Status is the status of a loop. There is none for crashed: a loop has crashed when
// it is running and no process holds a lease of its tasks.
type Status string

// The statuses.
const (
	Running    Status = "running"
	Paused     Status = "paused"
	Completing Status = "completing" // the work is done, the final check is not
	Completed  Status = "completed"
	Failed     Status = "failed"
	Aborted    Status = "aborted"
)

// Ended reports whether the status is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Aborted }

// Control is a request to a loop, which another process may be executing.
type Control string

// The control requests.
const (
	NoControl Control = ""
	// Pause stops the loop before its next iteration; PauseNow stops the agent, too.
	Pause    Control = "pause"
	PauseNow Control = "pause_now"
	// Resume continues a paused loop.
	Resume Control = "resume"
	// Abort ends the loop and keeps the files as they are; Revert ends it and
	// restores those of the beginning.
	Abort  Control = "abort"
	Revert Control = "revert"
)

// Loop is the row of a loop.
type Loop struct {
	Tree perdure.TreeID `json:"tree_id"`
	// Place is the machine and the workspace on it.
	Place   string  `json:"place"`
	Status  Status  `json:"status"`
	Control Control `json:"wish,omitempty"`
	// Step is the next step, or the one that was interrupted.
	Step string `json:"step"`
	// Iteration is the highest number of an iteration so far.
	Iteration int `json:"iteration"`
	// State is a document of the engine.
	State json.RawMessage `json:"state"`
	// Config is the configuration since it was changed, see [Records.Reconfigure];
	// empty: that of the tree.
	Config    json.RawMessage `json:"config,omitempty"`
	Version   int64           `json:"version"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// IterationStatus is the status of an iteration.
type IterationStatus string

// The statuses of iterations.
const (
	IterationRunning IterationStatus = "running"
	// IterationKept: its changes are kept in the workspace.
	IterationKept IterationStatus = "kept"
	// IterationReverted: its changes were reverted.
	IterationReverted IterationStatus = "reverted"
	// IterationFailed: the agent's turn failed.
	IterationFailed IterationStatus = "failed"
)

// The statuses as SQL text: those of loops that have not ended, as a list, and those
// of iterations.
const (
	dbOpen = `('` + string(Running) + `', '` + string(Paused) + `', '` + string(Completing) + `')`

	dbRunning  = `'` + string(IterationRunning) + `'`
	dbKept     = `'` + string(IterationKept) + `'`
	dbReverted = `'` + string(IterationReverted) + `'`
	dbFailed   = `'` + string(IterationFailed) + `'`
)

// Iteration is the row of an iteration. Number 0 is the baseline.
type Iteration struct {
	Number int             `json:"iteration"`
	Task   perdure.TaskID  `json:"task_id"`
	Status IterationStatus `json:"status"`
	// Quality is in percent; nil when it was not measured.
	Quality *int `json:"quality"`
	// Data is the engine's record.
	Data      json.RawMessage `json:"data"`
	StartedAt time.Time       `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
}

// Event is an event to append.
type Event struct {
	Kind perdure.EventKind
	Data any
}

// Change is what a step of a loop saves, all of it or nothing.
type Change struct {
	Loop *Loop // its Version is that of the row that was read
	// Fulfilled is the control request that this step carried out; another one stays.
	Fulfilled Control
	// Iteration, when set, replaces the row of the iteration.
	Iteration *Iteration
	// Gate, when set, is opened, see [perdure.WriteTx.OpenGate].
	Gate *perdure.Gate
	// FalseAlarms are recorded as marked.
	FalseAlarms []FalseAlarm
	// Blobs are those that the records refer to.
	Blobs []perdure.BlobRef
	// Limits, when set, are the new limits of the tree.
	Limits *perdure.Limits
	Events []Event
}

// Records reads and writes the rows of loops in a store. Its methods may be called
// from several goroutines at once.
type Records struct{ store *perdure.Store }

// New returns the records of a store.
func New(store *perdure.Store) *Records { return &Records{store} }

const (
	sqlAddLoop = `INSERT INTO loop (tree, place, status, wish, step, iteration, state, version, updated_at, briefs)
		VALUES ($1, $2, $3, '', $4, $5, $6, 1, $7, $8) ON CONFLICT (tree) DO NOTHING`
	sqlSaveLoop = `UPDATE loop SET status = $3, step = $4, iteration = $5, state = $6,
		wish = CASE WHEN wish = $7 THEN '' ELSE wish END,
		version = version + 1, updated_at = $8 WHERE tree = $1 AND version = $2`
	loopColumns = `l.place, l.status, l.wish, l.step, l.iteration, l.state, l.version, l.updated_at, l.config`
	sqlLoop     = `SELECT ` + loopColumns + ` FROM tree t JOIN loop l ON l.tree = t.id WHERE t.name = $1`
	sqlLoops    = `SELECT ` + loopColumns + `, t.name FROM loop l JOIN tree t ON t.id = l.tree
		WHERE l.tree < $1 ORDER BY l.tree DESC LIMIT $2 + 0`
)

// Create inserts the row of a loop whose tree exists. It does nothing when the loop
// has a row. See [Beginning.InTx] for the errors.
func (r *Records) Create(ctx context.Context, l Loop) error {
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		return (&Beginning{Loop: l}).write(ctx, tx)
	})
}

// Save saves the result of a step in one transaction and updates the loop's Version
// and UpdatedAt. It fails with CodeLeaseLost when the lease was lost, and with
// CodeConflict when the loop was saved since it was read, which does not happen to a
// correct caller.
func (r *Records) Save(ctx context.Context, lease *perdure.Lease, c Change) error {
	const op = "save loop"
	if err := c.check(op); err != nil {
		return err
	}
	err := r.write(ctx, c.Loop.Tree, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		if err := tx.CheckLease(ctx, lease); err != nil {
			return err
		}
		if err := addBlobs(ctx, tx, key, c.Blobs); err != nil {
			return err
		}
		if err := saveLoop(ctx, tx, key, c.Loop, c.Fulfilled); err != nil {
			return err
		}
		if err := saveIteration(ctx, tx, key, c.Iteration); err != nil {
			return err
		}
		if c.Gate != nil {
			if err := tx.OpenGate(ctx, key, c.Gate); err != nil {
				return err
			}
		}
		if _, err := markFalse(ctx, tx, key, c.FalseAlarms); err != nil {
			return err
		}
		if c.Limits != nil {
			if err := tx.SetLimits(ctx, key, *c.Limits); err != nil {
				return err
			}
		}
		return appendEvents(tx, key, lease.Task.ID, c.Events)
	})
	if err == nil {
		c.Loop.Version++
	}
	return err
}

// Report writes events of a loop at once, while its lease is held.
func (r *Records) Report(ctx context.Context, lease *perdure.Lease, events ...Event) error {
	return r.write(ctx, lease.Tree.ID, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		if err := tx.CheckLease(ctx, lease); err != nil {
			return err
		}
		return appendEvents(tx, key, lease.Task.ID, events)
	})
}

// write runs do in a transaction, with the key of a tree.
func (r *Records) write(ctx context.Context, tree perdure.TreeID,
	do func(ctx context.Context, tx *perdure.WriteTx, key int64) error) error {
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		return do(ctx, tx, key)
	})
}

func addBlobs(ctx context.Context, tx *perdure.WriteTx, key int64, refs []perdure.BlobRef) error {
	for _, ref := range refs {
		if err := tx.AddBlobRef(ctx, key, ref); err != nil {
			return err
		}
	}
	return nil
}

func appendEvents(tx *perdure.WriteTx, key int64, task perdure.TaskID, events []Event) error {
	for _, e := range events {
		if err := tx.AppendEvent(key, task, e.Kind, e.Data); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) check(op string) error {
	if c.Loop == nil {
		return refuse(perdure.CodeInvalid, op, "", "the change names no loop")
	}
	if err := fits(op, "state", c.Loop.State, MaxStateBytes); err != nil {
		return err
	}
	if c.Iteration != nil {
		if err := fits(op, "iteration", c.Iteration.Data, MaxIterationBytes); err != nil {
			return err
		}
	}
	return nil
}

func fits(op, what string, raw json.RawMessage, limit int) error {
	switch {
	case !json.Valid(raw):
		return refuse(perdure.CodeInvalid, op, "", "%s is not JSON", what)
	case len(raw) > limit:
		return refuse(perdure.CodeInvalid, op, "", "%s has %d bytes, the limit is %d", what, len(raw), limit)
	}
	return nil
}

// loopLogger returns the function that logs the row of a loop after a change. It is called
// before: a row that another program changed keeps its earlier digest, which shows that.
func loopLogger(ctx context.Context, tx *perdure.WriteTx, key int64) (log func(), err error) {
	changed, err := tx.RowChanged(ctx, key, perdure.RowLoop, 0)
	if changed {
		return func() {}, err
	}
	return func() { tx.LogRow(key, perdure.RowLoop, 0) }, err
}

func saveLoop(ctx context.Context, tx *perdure.WriteTx, key int64, l *Loop, done Control) error {
	if err := fulfilled(ctx, tx, key, done); err != nil {
		return err
	}
	logLoop, err := loopLogger(ctx, tx, key)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, sqlSaveLoop, key, l.Version, string(l.Status), l.Step, l.Iteration, string(l.State),
		string(done), tx.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return refuse(perdure.CodeConflict, "save loop", "", "%s was saved by another process meanwhile", l.Tree)
	}
	logLoop()
	l.UpdatedAt = tx.Now()
	return nil
}

// Loop returns the row of a loop. It fails with CodeNotFound when the tree is none.
func (r *Records) Loop(ctx context.Context, tree perdure.TreeID) (Loop, error) {
	l := Loop{Tree: tree}
	err := r.store.Reader().QueryRow(ctx, sqlLoop, string(tree)).Scan(l.dest()...)
	if errors.Is(err, perdure.ErrUnavailable) {
		// When the files of the database were removed, a new connection fails and
		// the one that writes stays open.
		again := r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
			return tx.QueryRow(ctx, sqlLoop, string(tree)).Scan(l.dest()...)
		})
		if again == nil || errors.Is(again, sql.ErrNoRows) {
			err = again
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return l, refuse(perdure.CodeNotFound, "read loop", "", "tree %q is not a loop", tree)
	}
	return l, wrap("read loop", err)
}

// dest returns the fields for the columns.
func (l *Loop) dest() []any {
	return []any{&l.Place, (*string)(&l.Status), (*string)(&l.Control), &l.Step, &l.Iteration, (*text)(&l.State),
		&l.Version, (*micros)(&l.UpdatedAt), (*text)(&l.Config)}
}

// Loops lists loops, the newest first, at most limit of them.
func (r *Records) Loops(ctx context.Context, limit int) ([]Loop, error) {
	list := []Loop{}
	err := perdure.EachRow(ctx, r.store.Reader(), func(row perdure.Row) error {
		var l Loop
		err := row.Scan(append(l.dest(), (*string)(&l.Tree))...)
		list = append(list, l)
		return err
	}, sqlLoops, int64(1)<<62, limit)
	return list, wrap("list loops", err)
}

// refuse returns an error for the caller of this package.
func refuse(code perdure.Code, op, hint, format string, args ...any) *perdure.Error {
	return &perdure.Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeOf(err), Op: op, Err: err}
}
