// Package record keeps the blocks of code that the REPL of a task runs: one row for each, with
// what determines its run and what came of it. They change in one transaction with the
// variables of the task.
package record

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// Events of the REPL.
const (
	// EventStarted is an engine that started: {"engine", "sandbox", "checks"}, the layers that
	// confine the code, and what its process tried before and could not do.
	EventStarted perdure.EventKind = "repl.started"
	// EventBlock is a block that ended: {"turn", "block", "output_bytes", "failure", "final"}.
	EventBlock perdure.EventKind = "repl.block"
	// EventDiverged is a block that did something else when it was run again than what is
	// recorded: {"turn", "block", "what"}.
	EventDiverged perdure.EventKind = "repl.diverged"
)

// Block is a block of code.
type Block struct {
	// Number counts the blocks of the task from 0.
	Number int `json:"number"`
	// Turn is the turn whose reply has the block, from 1; Index is its place there, from 0.
	Turn  int `json:"turn"`
	Index int `json:"index"`
	// CodeSHA256 is the hexadecimal hash of the code, which is in the reply.
	CodeSHA256 string `json:"code_sha256"`
	// Seed and StartedAt are the seed and the clock that the code was given.
	Seed      uint64    `json:"seed"`
	StartedAt time.Time `json:"started_at"`
	// Edits are the variables that others had changed before the block began.
	Edits []engine.Var `json:"edits,omitempty"`
	// Told are the answers of the host that are recorded nowhere else.
	Told []Told `json:"told,omitempty"`
	// Restarts counts the engines that ended while they ran the block and were replaced.
	Restarts int `json:"restarts,omitempty"`
	// Result is nil while the block runs.
	Result  *Result    `json:"result,omitempty"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
}

// Told is an answer that the code received and that a later one could differ from: the rest of
// a budget, or the error of a sub-call.
type Told struct {
	// Ordinal counts the requests of the block from 0, Slot the prompts of a batch.
	Ordinal int             `json:"ordinal"`
	Slot    int             `json:"slot,omitempty"`
	Value   json.RawMessage `json:"value"`
	At      time.Time       `json:"at"`
}

// Result is what a block did.
type Result struct {
	// Output is what it printed, cut at the limit of the engine.
	Output       string          `json:"output"`
	OutputBytes  int64           `json:"output_bytes"`
	OutputSHA256 string          `json:"output_sha256"`
	Failure      *engine.Failure `json:"failure,omitempty"`
	Final        *engine.Final   `json:"final,omitempty"`
	Draft        string          `json:"draft,omitempty"`
	// Lost is set if the engine ended in the block: it is not run again, and what it did to the
	// variables is lost.
	Lost bool `json:"lost,omitempty"`
	// Vars are the variables that it changed, without the values that the state has; Gone are
	// those that it deleted.
	Vars []engine.Var `json:"vars,omitempty"`
	Gone []string     `json:"gone,omitempty"`
}

// document is the column "data" of a block.
type document struct {
	Index      int          `json:"index"`
	CodeSHA256 string       `json:"code_sha256"`
	Seed       uint64       `json:"seed"`
	Edits      []engine.Var `json:"edits,omitempty"`
	Told       []Told       `json:"told,omitempty"`
	Restarts   int          `json:"restarts,omitempty"`
	Result     *Result      `json:"result,omitempty"`
}

// Records reads and writes the blocks of a store. Its methods may be called from several
// goroutines at once.
type Records struct{ store *perdure.Store }

// New returns the records of a store.
func New(store *perdure.Store) *Records { return &Records{store} }

const (
	sqlBegin = `INSERT INTO repl_block (tree, task, number, turn, data, output, started_at) VALUES
		($1, $2, $3, $4, $5, '', $6)`
	sqlSave = `UPDATE repl_block SET data = $4, output = $5, ended_at = $6
		WHERE tree = $1 AND task = $2 AND number = $3 AND ended_at IS NULL`
	sqlBlocks = `SELECT b.number, b.turn, b.data, b.output, b.started_at, b.ended_at FROM tree t
		JOIN repl_block b ON b.tree = t.id WHERE t.name = $1 AND b.task = $2 ORDER BY b.number`
	sqlHeads = `SELECT b.number, b.turn, b.data, '', b.started_at, b.ended_at FROM tree t
		JOIN repl_block b ON b.tree = t.id WHERE t.name = $1 AND b.task = $2 ORDER BY b.number`
	sqlBlockTasks = `SELECT DISTINCT b.task FROM tree t JOIN repl_block b ON b.tree = t.id
		WHERE t.name = $1 ORDER BY b.task`
)

// Begin records that a block is about to run, and sets its StartedAt unless it is set.
func (r *Records) Begin(ctx context.Context, l *perdure.Lease, b *Block) error {
	raw, err := b.encode()
	if err != nil {
		return err
	}
	return r.write(ctx, l, b, func(ctx context.Context, tx *perdure.WriteTx, tree int64) error {
		if b.StartedAt.IsZero() {
			b.StartedAt = tx.Now()
		}
		_, err := tx.Exec(ctx, sqlBegin, tree, int64(l.Task.ID), b.Number, b.Turn, raw, b.StartedAt.UnixMicro())
		return err
	})
}

// Tell records answers that the code is about to receive.
func (r *Records) Tell(ctx context.Context, l *perdure.Lease, b *Block, told ...Told) error {
	now := *b
	now.Told = append(now.Told[:len(now.Told):len(now.Told)], told...)
	err := r.update(ctx, l, &now)
	if err == nil {
		b.Told = now.Told
	}
	return err
}

// Restart records that the engine ended in a block, which is run again by another one.
func (r *Records) Restart(ctx context.Context, l *perdure.Lease, b *Block) error {
	now := *b
	now.Restarts++
	err := r.update(ctx, l, &now)
	if err == nil {
		b.Restarts = now.Restarts
	}
	return err
}

// update replaces the record of a block that runs.
func (r *Records) update(ctx context.Context, l *perdure.Lease, b *Block) error {
	raw, err := b.encode()
	if err != nil {
		return err
	}
	return r.write(ctx, l, b, func(ctx context.Context, tx *perdure.WriteTx, tree int64) error {
		return save(ctx, tx, b, tree, int64(l.Task.ID), raw, "", nil)
	})
}

// Changes are those of a block to the variables of the task's state.
type Changes struct {
	Set  []perdure.VarSpec
	Gone []string
}

// End records what a block did, together with the changes to the task's state.
func (r *Records) End(ctx context.Context, l *perdure.Lease, b *Block, res *Result, c Changes) error {
	now, kept := *b, *res
	kept.Output, kept.Vars = "", withoutValues(res.Vars)
	now.Result = &kept
	raw, err := now.encode()
	if err != nil {
		return err
	}
	var at time.Time
	err = r.write(ctx, l, b, func(ctx context.Context, tx *perdure.WriteTx, tree int64) error {
		at = tx.Now()
		if err := save(ctx, tx, b, tree, int64(l.Task.ID), raw, res.Output, at.UnixMicro()); err != nil {
			return err
		}
		if err := tx.SetVars(ctx, l, c.Set, c.Gone); err != nil {
			return err
		}
		return tx.AppendEvent(tree, l.Task.ID, EventBlock, map[string]any{"turn": b.Turn, "block": b.Index,
			"output_bytes": res.OutputBytes, "failure": res.Failure != nil, "final": res.Final != nil})
	})
	if err == nil {
		b.Result, b.EndedAt = res, &at
	}
	return err
}

// withoutValues returns the variables without their values, which the state has.
func withoutValues(vars []engine.Var) []engine.Var {
	out := make([]engine.Var, len(vars))
	for i, v := range vars {
		v.Value = nil
		out[i] = v
	}
	return out
}

// write runs do in a transaction in which the lease is held.
func (r *Records) write(ctx context.Context, l *perdure.Lease, b *Block,
	do func(ctx context.Context, tx *perdure.WriteTx, tree int64) error) error {
	return r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		if err := tx.CheckLease(ctx, l); err != nil {
			return err
		}
		tree, err := tx.TreeKey(ctx, l.Tree.ID)
		if err != nil {
			return err
		}
		if err := do(ctx, tx, tree); err != nil {
			return err
		}
		tx.LogPart(tree, perdure.RowReplBlock, int(l.Task.ID), b.Number)
		return nil
	})
}

// save replaces the columns of a block that runs: args are its tree, task, data, output and end.
func save(ctx context.Context, tx *perdure.WriteTx, b *Block, args ...any) error {
	n, err := tx.Exec(ctx, sqlSave, slices.Insert(args, 2, any(b.Number))...)
	if err == nil && n != 1 {
		err = &perdure.Error{Code: perdure.CodeConflict, Op: "record block",
			Msg: fmt.Sprintf("block %d of the REPL is not running", b.Number)}
	}
	return err
}

func (b *Block) encode() (string, error) {
	raw, err := json.Marshal(document{Index: b.Index, CodeSHA256: b.CodeSHA256, Seed: b.Seed, Edits: b.Edits,
		Told: b.Told, Restarts: b.Restarts, Result: b.Result})
	return string(raw), err
}

// Blocks lists the blocks of a task in their order.
func (r *Records) Blocks(ctx context.Context, tree perdure.TreeID, task perdure.TaskID) ([]Block, error) {
	return r.list(ctx, sqlBlocks, tree, task)
}

// Heads lists the blocks of a task in their order, without what they printed.
func (r *Records) Heads(ctx context.Context, tree perdure.TreeID, task perdure.TaskID) ([]Block, error) {
	return r.list(ctx, sqlHeads, tree, task)
}

// Tasks lists the tasks of a tree that have blocks.
func (r *Records) Tasks(ctx context.Context, tree perdure.TreeID) ([]perdure.TaskID, error) {
	var list []perdure.TaskID
	err := perdure.EachRow(ctx, r.store.Reader(), func(row perdure.Row) error {
		var id int64
		err := row.Scan(&id)
		list = append(list, perdure.TaskID(id))
		return err
	}, sqlBlockTasks, string(tree))
	if err != nil {
		return nil, fmt.Errorf("list tasks with blocks of tree %q: %w", tree, err)
	}
	return list, nil
}

func (r *Records) list(ctx context.Context, query string, tree perdure.TreeID, task perdure.TaskID) ([]Block, error) {
	var list []Block
	err := perdure.EachRow(ctx, r.store.Reader(), func(row perdure.Row) error {
		b, err := scan(row)
		list = append(list, b)
		return err
	}, query, string(tree), int64(task))
	if err != nil {
		return nil, fmt.Errorf("list blocks of task %q: %w", task, err)
	}
	return list, nil
}

func scan(row perdure.Row) (b Block, err error) {
	var data, output string
	var started int64
	var ended *int64
	if err := row.Scan(&b.Number, &b.Turn, &data, &output, &started, &ended); err != nil {
		return b, err
	}
	var d document
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		return b, fmt.Errorf("read block %d: %w", b.Number, err)
	}
	b.Index, b.CodeSHA256, b.Seed, b.Edits = d.Index, d.CodeSHA256, d.Seed, d.Edits
	b.Told, b.Restarts, b.Result = d.Told, d.Restarts, d.Result
	b.StartedAt = time.UnixMicro(started).UTC()
	if ended != nil {
		at := time.UnixMicro(*ended).UTC()
		b.EndedAt = &at
	}
	if b.Result != nil {
		b.Result.Output = output
	}
	return b, nil
}
