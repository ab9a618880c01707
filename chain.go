package perdure

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/internal/storage/chain"
)

// EventLogRows has the digests of rows that the transaction changed: {"iteration 3": "…"}.
const EventLogRows EventKind = "log.rows"

// EventTreeRemoved is appended when retention removed a tree. It belongs to no tree.
const EventTreeRemoved EventKind = "tree.removed"

// RowKind is a kind of rows whose digests are in the log.
type RowKind string

// The kinds of rows. Number 0 of RowIteration is the baseline; RowLoop, RowControl, which is
// the control request of a loop, and RowFalseAlarms have no number; the number of
// RowGateAnswer is that of the task that waits at a gate.
const (
	RowLoop         RowKind = chain.KindLoop
	RowControl      RowKind = chain.KindControl
	RowIteration    RowKind = chain.KindIteration
	RowGate         RowKind = chain.KindGate
	RowFalseAlarms  RowKind = chain.KindFalseAlarms
	RowGateAnswer   RowKind = chain.KindGateAnswer
	RowHandoff      RowKind = chain.KindHandoff
	RowHandoffEntry RowKind = chain.KindHandoffEntry // a part of RowHandoff
	RowReplBlock    RowKind = chain.KindReplBlock    // a part, of the task with the number
)

// LogRow appends the digest of a row, as it is at the end of the transaction, to the log, so
// that a later change of the row is found by [Store.VerifyLog]. The tree is 0 for rows that
// belong to no tree.
func (tx *WriteTx) LogRow(tree int64, kind RowKind, number int) {
	tx.b.logRow(chain.Row{Tree: tree, Kind: string(kind), Number: number})
}

// LogPart is LogRow for a row that is a part of another one.
func (tx *WriteTx) LogPart(tree int64, kind RowKind, number, part int) {
	tx.b.logRow(chain.Row{Tree: tree, Kind: string(kind), Number: number, Part: itoa(int64(part))})
}

// RowLogged reports whether there is a row and its newest digest in the log, which
// [WriteTx.LogRow] appended, is that of the row now. Otherwise the row was changed outside of
// perdure. It does not verify the log itself, as [Store.VerifyLog] does.
func (tx *ReadTx) RowLogged(ctx context.Context, tree int64, kind RowKind, number int) (bool, error) {
	row := chain.Row{Tree: tree, Kind: string(kind), Number: number}
	now, err := chain.Digest(ctx, tx.Query, row)
	if err != nil || now == "" {
		return false, err
	}
	logged, err := chain.Logged(ctx, tx.Query, row)
	return logged == now, err
}

// RowsLogged returns the numbers of the rows of a kind of which [ReadTx.RowLogged] reports
// true. It reads the log once.
func (tx *WriteTx) RowsLogged(ctx context.Context, tree int64, kind RowKind, numbers []int) (logged []int, err error) {
	newest, err := chain.LoggedRows(ctx, tx.Query, tree, string(kind))
	for _, n := range numbers {
		if newest[n] == "" {
			continue
		}
		now, err := chain.Digest(ctx, tx.Query, chain.Row{Tree: tree, Kind: string(kind), Number: n})
		if err != nil {
			return nil, err
		}
		if now == newest[n] {
			logged = append(logged, n)
		}
	}
	return logged, err
}

// RowChanged reports whether a row differs from its newest digest in the log, so that another
// program has changed it. Callers that change the row ask before, and do not log it then: a new
// digest would hide the change. A row without a digest is not changed.
func (tx *WriteTx) RowChanged(ctx context.Context, tree int64, kind RowKind, number int) (bool, error) {
	row := chain.Row{Tree: tree, Kind: string(kind), Number: number}
	logged, err := chain.Logged(ctx, tx.Query, row)
	if err != nil || logged == "" || tx.b.rows[row] { // changed in this transaction
		return false, err
	}
	now, err := chain.Digest(ctx, tx.Query, row)
	return now != logged, err
}

func (b *batch) logRow(r chain.Row) {
	if b.rows == nil {
		b.rows = make(map[chain.Row]bool)
	}
	b.rows[r] = true
}

// maxLoggedRows bounds the digests in one event.
const maxLoggedRows = 200

// logDigests appends digests of rows of a tree to the log, by their names; "" for rows that
// were removed.
func (b *batch) logDigests(tree int64, digests map[string]string) error {
	for names := range slices.Chunk(slices.Sorted(maps.Keys(digests)), maxLoggedRows) {
		part := make(map[string]string, len(names))
		for _, name := range names {
			part[name] = digests[name]
		}
		raw, err := json.Marshal(part)
		if err != nil {
			return err
		}
		b.event(tree, 0, EventLogRows, string(raw))
	}
	return nil
}

// logRemoved appends that a row of no tree was removed with its parts.
func (b *batch) logRemoved(kind string, id int64) error {
	return b.logDigests(0, map[string]string{chain.Row{Kind: kind, Number: int(id)}.Name(): ""})
}

// logRows appends the events with the digests of the changed rows.
func (b *batch) logRows(ctx context.Context) error {
	if len(b.rows) == 0 {
		return nil
	}
	trees := make(map[int64]map[string]string)
	for row := range b.rows {
		digest, err := chain.Digest(ctx, b.tx.Query, row)
		if err != nil {
			return err
		}
		if trees[row.Tree] == nil {
			trees[row.Tree] = make(map[string]string)
		}
		trees[row.Tree][row.Name()] = digest
	}
	clear(b.rows)
	for tree, digests := range trees {
		if err := b.logDigests(tree, digests); err != nil {
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
			b.noteHead(tree, c)
			var err error
			if c, err = b.chain(ctx, e.Tree); err != nil {
				return err
			}
			tree, own = e.Tree, own || e.Tree == 0
		}
		row[eventValues-1] = b.in.hasher.Add(c, &e)
	}
	b.noteHead(tree, c)
	if !own {
		return nil
	}
	c = b.cache.chain
	_, err := b.tx.Exec(ctx, sqlSaveChain, c.Events, c.Head.String())
	return err
}

// noteHead keeps the head of a tree, to be recorded outside of the store.
func (b *batch) noteHead(tree int64, c *chain.State) {
	if b.heads != nil && c != nil {
		b.heads[tree] = *c
	}
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
