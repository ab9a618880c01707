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

// Status is where a loop stands. Crashed is not among them: a loop that is
// running and whose tasks no process holds has crashed.
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

// Ended reports whether nothing follows any more.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Aborted }

// Control is a request to a loop that may be running elsewhere.
type Control string

// The control requests.
const (
	NoControl Control = ""
	// Pause: stop before the next iteration; PauseNow: stop the agent, too.
	Pause    Control = "pause"
	PauseNow Control = "pause_now"
	// Resume: go on.
	Resume Control = "resume"
	// Abort: stop, and keep the files as they are; Revert: stop, and bring back
	// those of the beginning.
	Abort  Control = "abort"
	Revert Control = "revert"
)

// Loop is where a loop stands.
type Loop struct {
	Tree perdure.TreeID `json:"tree_id"`
	// Place is the workspace and the machine it is on.
	Place   string  `json:"place"`
	Status  Status  `json:"status"`
	Control Control `json:"wish,omitempty"`
	// Step is the step that is to be done next, or was interrupted.
	Step string `json:"step"`
	// Iteration is the highest number given so far.
	Iteration int `json:"iteration"`
	// State is the engine's own document.
	State json.RawMessage `json:"state"`
	// Config is the changed configuration of the loop, see
	// [Records.Reconfigure]; empty: the configuration of its tree.
	Config    json.RawMessage `json:"config,omitempty"`
	Version   int64           `json:"version"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// IterationStatus is what became of an iteration.
type IterationStatus string

// What becomes of iterations.
const (
	IterationRunning IterationStatus = "running"
	// IterationKept: its changes stay in the workspace.
	IterationKept IterationStatus = "kept"
	// IterationReverted: its changes were taken back.
	IterationReverted IterationStatus = "reverted"
	// IterationFailed: the agent did not do its turn.
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

// Iteration is one repetition. Number 0 is the baseline.
type Iteration struct {
	Number int             `json:"iteration"`
	Task   perdure.TaskID  `json:"task_id"`
	Status IterationStatus `json:"status"`
	// Quality is in percent; nil when it was not measured.
	Quality *int `json:"quality"`
	// Data is the record as the engine makes it.
	Data      json.RawMessage `json:"data"`
	StartedAt time.Time       `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
}

// Event is an event to append.
type Event struct {
	Kind perdure.EventKind
	Data any
}

// Change is what a step of a loop writes down, all or nothing.
type Change struct {
	Loop *Loop // its Version is the one that was read
	// Fulfilled is the control request that is fulfilled now; another one stays.
	Fulfilled Control
	// Iteration, when set, is written whole.
	Iteration *Iteration
	// Gate, when set, is opened, see [perdure.WriteTx.OpenGate].
	Gate *perdure.Gate
	// FalseAlarms are marked.
	FalseAlarms []FalseAlarm
	// Blobs are what the records refer to.
	Blobs []perdure.BlobRef
	// Limits, when set, are what the tree is bounded by from now on.
	Limits *perdure.Limits
	Events []Event
}

// Records reads and writes them. Its methods may be called from many goroutines.
type Records struct{ store *perdure.Store }

// New returns the records of a store.
func New(store *perdure.Store) *Records { return &Records{store} }

const (
	sqlAddLoop = `INSERT INTO loop (tree, place, status, wish, step, iteration, state, version, updated_at, briefs)
		VALUES ($1, $2, $3, '', $4, $5, $6, 1, $7, $8) ON CONFLICT (tree) DO NOTHING`
	sqlSaveLoop = `UPDATE loop SET status = $3, step = $4, iteration = $5, state = $6, wish = CASE WHEN wish = $7 THEN '' ELSE wish END,
		version = version + 1, updated_at = $8 WHERE tree = $1 AND version = $2`
	loopColumns = `l.place, l.status, l.wish, l.step, l.iteration, l.state, l.version, l.updated_at, l.config`
	sqlLoop     = `SELECT ` + loopColumns + ` FROM tree t JOIN loop l ON l.tree = t.id WHERE t.name = $1`
	sqlLoops    = `SELECT ` + loopColumns + `, t.name FROM loop l JOIN tree t ON t.id = l.tree
		WHERE l.tree < $1 ORDER BY l.tree DESC LIMIT $2 + 0`
)

// Create begins the record of a loop whose tree is there. That there is one
// already is no error. See [Beginning] for the errors.
func (r *Records) Create(ctx context.Context, l Loop) error {
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		return (&Beginning{Loop: l}).write(ctx, tx)
	})
}

// Save writes down what a step of a loop came to, in one transaction. It is
// refused with CodeLeaseLost when the lease was lost, and with CodeConflict when
// the loop was saved since it was read, which a correct caller never meets. The
// loop's Version and UpdatedAt are brought up to date.
func (r *Records) Save(ctx context.Context, lease *perdure.Lease, c Change) error {
	const op = "save loop"
	if err := c.check(op); err != nil {
		return err
	}
	err := r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		if err := tx.CheckLease(ctx, lease); err != nil {
			return err
		}
		key, err := tx.TreeKey(ctx, c.Loop.Tree)
		if err != nil {
			return err
		}
		for _, ref := range c.Blobs {
			if err := tx.AddBlobRef(ctx, key, ref); err != nil {
				return err
			}
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
		for _, e := range c.Events {
			if err := tx.AppendEvent(key, lease.Task.ID, e.Kind, e.Data); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.Loop.Version++
	}
	return err
}

func (c *Change) check(op string) error {
	if c.Loop == nil {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: "there is no loop"}
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
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: what + " is not JSON"}
	case len(raw) > limit:
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%s has %d bytes, the limit is %d", what, len(raw), limit)}
	}
	return nil
}

func saveLoop(ctx context.Context, tx *perdure.WriteTx, key int64, l *Loop, fulfilled Control) error {
	n, err := tx.Exec(ctx, sqlSaveLoop, key, l.Version, string(l.Status), l.Step, l.Iteration, string(l.State), string(fulfilled), tx.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "save loop", Msg: fmt.Sprintf("%s was saved by another process meanwhile", l.Tree)}
	}
	l.UpdatedAt = tx.Now()
	return nil
}

// Loop returns the record of a loop; CodeNotFound when the tree has none.
func (r *Records) Loop(ctx context.Context, tree perdure.TreeID) (Loop, error) {
	l := Loop{Tree: tree}
	err := r.store.Reader().QueryRow(ctx, sqlLoop, string(tree)).Scan(l.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return l, &perdure.Error{Code: perdure.CodeNotFound, Op: "read loop", Msg: fmt.Sprintf("%q is no loop", tree)}
	}
	return l, wrap("read loop", err)
}

// dest are where the columns go.
func (l *Loop) dest() []any {
	return []any{&l.Place, (*string)(&l.Status), (*string)(&l.Control), &l.Step, &l.Iteration, (*text)(&l.State), &l.Version, (*micros)(&l.UpdatedAt), (*text)(&l.Config)}
}

// Loops lists loops, the newest first, at most limit of them.
func (r *Records) Loops(ctx context.Context, limit int) ([]Loop, error) {
	list := []Loop{}
	err := each(ctx, r.store.Reader(), func(scan scanFunc) error {
		var l Loop
		err := scan(append(l.dest(), (*string)(&l.Tree))...)
		list = append(list, l)
		return err
	}, sqlLoops, int64(1)<<62, limit)
	return list, wrap("list loops", err)
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeOf(err), Op: op, Err: err}
}
