package record

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
)

// EventConfigured tells that a loop was resumed with another configuration.
const EventConfigured perdure.EventKind = "loop.configured"

// ResumeRequest asks that a loop goes on. Both members are JSON objects with
// fields of the loop's configuration; nil changes nothing.
type ResumeRequest struct {
	// Config is what is given explicitly. Settings are the current settings: they
	// hold for fields that were not given explicitly, at
	// the beginning or since.
	Config   json.RawMessage `json:"config,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	// Weaker takes settings, too, that let pass what the loop would have found,
	// refused or asked about. Config may do that anyway.
	Weaker bool `json:"weaker,omitempty"`
}

// FieldChange is what became of one field of a configuration, in words.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// String says it in a few words: "max_iterations 10 -> 20".
func (c FieldChange) String() string { return fmt.Sprintf("%s %s -> %s", c.Field, c.From, c.To) }

// Resumed is a loop that was asked to go on, and what is different then.
type Resumed struct {
	Loop    Loop          `json:"loop"`
	Changes []FieldChange `json:"changes"`
	// Kept are settings that were not taken, as they are weaker.
	Kept []FieldChange `json:"kept,omitempty"`
}

// Reconfiguration is another configuration of a loop.
type Reconfiguration struct {
	// Before is the Config of the row that was read, After the new one.
	Before, After json.RawMessage
	Changes       []FieldChange
	// Limits, when set, are what the tree is bounded by from now on.
	Limits *perdure.Limits
}

const sqlConfigure = `UPDATE loop SET config = $2 WHERE tree = $1 AND config = $3`

// Reconfigure asks that a loop goes on, as Ask does with [Resume], with another
// configuration: both, or nothing. A configuration that was changed since it
// was read is CodeConflict.
func (r *Records) Reconfigure(ctx context.Context, tree perdure.TreeID, c Reconfiguration) error {
	const op = "resume loop"
	if err := fits(op, "configuration", c.After, MaxStateBytes); err != nil {
		return err
	}
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		if err := c.write(ctx, tx, key, tree); err != nil {
			return err
		}
		return ask(ctx, tx, key, tree, Resume)
	})
}

func (c *Reconfiguration) write(ctx context.Context, tx *perdure.WriteTx, key int64, tree perdure.TreeID) error {
	n, err := tx.Exec(ctx, sqlConfigure, key, string(c.After), string(c.Before))
	if err != nil {
		return err
	}
	if n == 0 {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "resume loop", Msg: fmt.Sprintf("the configuration of %s was changed by another process meanwhile", tree),
			Hint: "try again"}
	}
	if err := tx.AppendEvent(key, 0, EventConfigured, map[string]any{"changes": c.Changes}); err != nil {
		return err
	}
	if c.Limits == nil {
		return nil
	}
	return tx.SetLimits(ctx, key, *c.Limits)
}

// EventReopened tells that a loop that had ended goes on.
const EventReopened perdure.EventKind = "loop.reopened"

// sqlReopenLoop forgets what was wanted of the loop before it ended.
const sqlReopenLoop = `UPDATE loop SET status = $3, step = $4, state = $5, wish = '', version = version + 1, updated_at = $6 WHERE tree = $1 AND version = $2`

// Reopen writes the row of a loop that had ended as l, whose Version is the one that
// was read, with another configuration: both, or nothing. CodeConflict: another process
// else changed it meanwhile, or another loop works in its folder by now. Its task is
// for the caller to retry.
func (r *Records) Reopen(ctx context.Context, l *Loop, c Reconfiguration) error {
	const op = "resume loop"
	if err := fits(op, "configuration", c.After, MaxStateBytes); err != nil {
		return err
	}
	if err := fits(op, "state", l.State, MaxStateBytes); err != nil {
		return err
	}
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, l.Tree)
		if err != nil {
			return err
		}
		if err := alone(ctx, tx, l); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, sqlReopenLoop, key, l.Version, string(l.Status), l.Step, string(l.State), tx.Now().UnixMicro())
		if err != nil {
			return err
		}
		if n == 0 {
			return &perdure.Error{Code: perdure.CodeConflict, Op: op, Msg: fmt.Sprintf("%s was changed by another process meanwhile", l.Tree), Hint: "try again"}
		}
		if err := tx.AppendEvent(key, 0, EventReopened, map[string]any{"after": l.Iteration}); err != nil {
			return err
		}
		return c.write(ctx, tx, key, l.Tree)
	})
}
