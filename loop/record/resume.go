package record

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
)

// EventConfigured is appended when a loop was resumed with another configuration.
const EventConfigured perdure.EventKind = "loop.configured"

// ResumeRequest asks to resume a loop. Config and Settings are JSON objects with
// fields of the loop's configuration; nil changes nothing.
type ResumeRequest struct {
	// Config has the fields that are given explicitly. Settings are the current
	// settings of the caller: they apply to fields that were never given explicitly.
	Config   json.RawMessage `json:"config,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	// Weaker also applies settings that accept what the loop would have reported,
	// refused or asked about. Config may contain such fields without it.
	Weaker bool `json:"weaker,omitempty"`
}

// FieldChange is the change of one field of a configuration, for people.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// String returns the change in short: "max_iterations 10 -> 20".
func (c FieldChange) String() string { return fmt.Sprintf("%s %s -> %s", c.Field, c.From, c.To) }

// Resumed is the result of a [ResumeRequest].
type Resumed struct {
	Loop    Loop          `json:"loop"`
	Changes []FieldChange `json:"changes"`
	// Kept are settings that were not applied because they are weaker.
	Kept []FieldChange `json:"kept,omitempty"`
}

// Reconfiguration is another configuration of a loop.
type Reconfiguration struct {
	// Before is the Config of the row that was read, After the new one.
	Before, After json.RawMessage
	Changes       []FieldChange
	// Limits, when set, are the new limits of the tree.
	Limits *perdure.Limits
}

const sqlConfigure = `UPDATE loop SET config = $2 WHERE tree = $1 AND config = $3`

// Reconfigure changes the configuration of a loop and requests [Resume], both or
// nothing. It fails with CodeConflict when the configuration was changed since it was
// read.
func (r *Records) Reconfigure(ctx context.Context, tree perdure.TreeID, c Reconfiguration) error {
	const op = "resume loop"
	if err := fits(op, "configuration", c.After, MaxStateBytes); err != nil {
		return err
	}
	return r.write(ctx, tree, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		if err := c.write(ctx, tx, key, tree); err != nil {
			return err
		}
		return control(ctx, tx, key, tree, Resume)
	})
}

func (c *Reconfiguration) write(ctx context.Context, tx *perdure.WriteTx, key int64, tree perdure.TreeID) error {
	logLoop, err := loopLogger(ctx, tx, key)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, sqlConfigure, key, string(c.After), string(c.Before))
	if err != nil {
		return err
	}
	if n == 0 {
		return refuse(perdure.CodeConflict, "resume loop", "try again",
			"the configuration of %s was changed by another process meanwhile", tree)
	}
	logLoop()
	if err := tx.AppendEvent(key, 0, EventConfigured, map[string]any{"changes": c.Changes}); err != nil {
		return err
	}
	if c.Limits == nil {
		return nil
	}
	return tx.SetLimits(ctx, key, *c.Limits)
}

// EventReopened is appended when a loop that had ended was resumed.
const EventReopened perdure.EventKind = "loop.reopened"

// sqlReopenLoop also drops a control request from before the end.
const sqlReopenLoop = `UPDATE loop SET status = $3, step = $4, state = $5, wish = '', version = version + 1,
	updated_at = $6 WHERE tree = $1 AND version = $2`

// Reopen replaces the row of a loop that had ended by l, whose Version is that of the
// row that was read, and changes the configuration, both or nothing. It fails with
// CodeConflict when the row was changed meanwhile, or another loop works in the folder
// now. The caller retries the task.
func (r *Records) Reopen(ctx context.Context, l *Loop, c Reconfiguration) error {
	const op = "resume loop"
	if err := fits(op, "configuration", c.After, MaxStateBytes); err != nil {
		return err
	}
	if err := fits(op, "state", l.State, MaxStateBytes); err != nil {
		return err
	}
	return r.write(ctx, l.Tree, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
		if err := alone(ctx, tx, l); err != nil {
			return err
		}
		logLoop, err := loopLogger(ctx, tx, key)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, sqlReopenLoop, key, l.Version, string(l.Status), l.Step, string(l.State), tx.Now().UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(perdure.CodeConflict, op, "try again", "%s was changed by another process meanwhile", l.Tree)
		}
		logLoop()
		tx.LogRow(key, perdure.RowControl, 0)
		if err := tx.AppendEvent(key, 0, EventReopened, map[string]any{"after": l.Iteration}); err != nil {
			return err
		}
		return c.write(ctx, tx, key, l.Tree)
	})
}
