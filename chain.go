package perdure

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/perdure/perdure/internal/storage/chain"
)

// EventLogRows has the digests of rows that the transaction changed: {"iteration 3": "…"}.
const EventLogRows EventKind = "log.rows"

// EventTreeRemoved is appended when retention removed a tree. It belongs to no tree.
const EventTreeRemoved EventKind = "tree.removed"

// RowKind is a kind of rows whose digests are in the log.
type RowKind string

// The kinds of rows. Number 0 of RowIteration is the baseline; RowLoop and RowFalseAlarms
// have no number.
const (
	RowLoop        RowKind = chain.KindLoop
	RowIteration   RowKind = chain.KindIteration
	RowGate        RowKind = chain.KindGate
	RowFalseAlarms RowKind = chain.KindFalseAlarms
)

// LogRow appends the digest of a row, as it is at the end of the transaction, to the log, so
// that a later change of the row is found by [Store.VerifyLog].
func (tx *WriteTx) LogRow(tree int64, kind RowKind, number int) {
	if tx.b.rows == nil {
		tx.b.rows = make(map[chain.Row]bool)
	}
	tx.b.rows[chain.Row{Tree: tree, Kind: string(kind), Number: number}] = true
}

// maxLoggedRows bounds the digests in one event.
const maxLoggedRows = 200

// logRows appends the events with the digests of the changed rows.
func (b *batch) logRows(ctx context.Context) error {
	trees := make(map[int64]map[string]string)
	add := func(tree int64) error {
		raw, err := json.Marshal(trees[tree])
		delete(trees, tree)
		b.event(tree, 0, EventLogRows, string(raw))
		return err
	}
	for row := range b.rows {
		digest, err := chain.Digest(ctx, b.tx.Query, row)
		if err != nil {
			return err
		}
		if trees[row.Tree] == nil {
			trees[row.Tree] = make(map[string]string)
		}
		if trees[row.Tree][row.Name()] = digest; len(trees[row.Tree]) == maxLoggedRows {
			if err := add(row.Tree); err != nil {
				return err
			}
		}
	}
	clear(b.rows)
	for tree := range maps.Clone(trees) {
		if err := add(tree); err != nil {
			return err
		}
	}
	return nil
}

// eventValues is the number of values of an event in batch.events.
const eventValues = 7

// flushChains continues the chains of the trees with the pending events.
func (b *batch) flushChains(ctx context.Context) error {
	if err := b.logRows(ctx); err != nil {
		return err
	}
	var c *chain.State
	tree, own := int64(-1), false
	for i := 0; i < len(b.events); i += eventValues {
		row := b.events[i : i+eventValues]
		e := eventOf(row)
		if e.Tree != tree {
			var err error
			if c, err = b.chain(ctx, e.Tree); err != nil {
				return err
			}
			tree, own = e.Tree, own || e.Tree == 0
		}
		row[eventValues-1] = b.in.hasher.Add(c, &e)
		if b.heads != nil {
			b.heads[tree] = *c
		}
	}
	if !own {
		return nil
	}
	c = b.cache.chain
	_, err := b.tx.Exec(ctx, sqlSaveChain, c.Events, c.Head.String())
	return err
}

// eventOf returns the event with the values, which batch.event appended.
func eventOf(row []any) (e chain.Event) {
	e.Seq, _ = row[0].(int64)
	e.At, _ = row[1].(int64)
	e.Tree, _ = row[2].(int64)
	e.Task, _ = row[3].(int64)
	e.Kind, _ = row[4].(string)
	e.Data, _ = row[5].(string)
	return e
}

const (
	sqlChain     = `SELECT events, head FROM seq WHERE id = 1`
	sqlSaveChain = `UPDATE seq SET events = $1, head = $2 WHERE id = 1`
)

// chain returns the chain of a tree to continue, that of the events of no tree for 0.
func (b *batch) chain(ctx context.Context, tree int64) (*chain.State, error) {
	if tree != 0 {
		st, err := b.stat(ctx, tree)
		if err != nil {
			return nil, err
		}
		return st.chained(), nil
	}
	if c := b.cache.chain; c != nil {
		return c, nil
	}
	var c chain.State
	var head string
	if err := b.tx.QueryRow(ctx, sqlChain, nil, &c.Events, &head); err != nil {
		return nil, err
	}
	if err := c.Head.Parse(head); err != nil {
		return nil, err
	}
	b.cache.chain = &c
	return &c, nil
}
