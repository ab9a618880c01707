package perdure

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// seqRow is the row of counters of the store: the last numbers in use.
type seqRow struct{ tx, event, tree, task, call, session, mutation int64 }

// cache is what the writer keeps between its transactions. It is valid while the
// transaction counter shows that no other process wrote.
type cache struct {
	seq    seqRow
	stats  map[int64]*treeStat
	blocks map[int64]int64 // the last known block of events of a tree
	states map[stateKey]*varState
	vars   map[stateVar]*varRow
	chain  *chain.State // of the events of no tree, nil: not read
}

func newCache() cache {
	return cache{seq: seqRow{tx: -1}, stats: make(map[int64]*treeStat), blocks: make(map[int64]int64),
		states: make(map[stateKey]*varState), vars: make(map[stateVar]*varRow)}
}

// maxCachedTrees bounds the memory of the cache.
const maxCachedTrees = 512

func (c *cache) clear() {
	c.seq = seqRow{tx: -1}
	clear(c.stats)
	clear(c.blocks)
	clear(c.states)
	clear(c.vars)
	c.chain = nil
}

// batch is one transaction. Changes of rows that many operations change (the tree's
// counters, a parent's count of open children) are summed and written once; new rows are
// inserted together.
type batch struct {
	tx      *sqldb.Tx
	s       *Store
	now     int64
	cache   *cache
	ready   map[int64]bool  // trees in which a task became claimable
	emptied map[int64]bool  // trees of which a claim took all ready tasks
	fresh   map[int64]*cold // tasks created
	cached  bool            // the cache was used without reading the counters
	over    bool            // a tree ended
	freed   bool            // reservations of calls were given back
	alone   bool            // the only operation of the transaction is applied

	dirty    map[int64]*treeStat // changed counters
	states   map[int64]*varState // changed states
	vars     varWrites
	born     newTrees
	parents  map[int64]int64       // open children to add, by parent
	rows     map[chain.Row]bool    // to read their digests at the end
	heads    map[int64]chain.State // to record outside of the store, by tree
	families map[int64]*family

	in *insertions
	*pendingRows
}

// pendingRows are the values of rows to insert. The writer keeps them for its next transaction.
type pendingRows struct{ events, blocks, ends, hots, colds, treeRows, stateRows []any }

// reset forgets the rows of a transaction that failed.
func (p *pendingRows) reset() {
	for _, rows := range []*[]any{&p.events, &p.blocks, &p.ends, &p.hots, &p.colds, &p.treeRows, &p.stateRows} {
		*rows = emptied(*rows)
	}
}

// maxKeptValues bounds the values that the writer keeps memory for, of each kind of rows.
const maxKeptValues = 8192

// emptied returns the values without any, for the next rows.
func emptied(rows []any) []any {
	if cap(rows) > maxKeptValues {
		return nil
	}
	clear(rows)
	return rows[:0]
}

func (w *writer) newBatch(tx *sqldb.Tx) *batch {
	b := &batch{tx: tx, s: w.s, now: tx.Now, cache: &w.cache, in: w.insertions, pendingRows: &w.pending,
		ready: make(map[int64]bool), emptied: make(map[int64]bool), fresh: make(map[int64]*cold),
		dirty: make(map[int64]*treeStat), states: make(map[int64]*varState), parents: make(map[int64]int64),
		families: make(map[int64]*family), vars: varWrites{rows: make(map[stateVar]*varRow)}}
	b.reset()
	if w.s.heads != nil {
		b.heads = make(map[int64]chain.State)
	}
	return b
}

const sqlSeq = `SELECT tx, event, tree, task, call, session, mutation FROM seq WHERE id = 1`

// run applies the operations and writes their pending rows.
func (b *batch) run(ctx context.Context, reqs []*request, errs []error) error {
	b.alone = len(reqs) == 1
	if err := b.begin(ctx); err != nil {
		return err
	}
	for i, r := range reqs {
		err := r.op.apply(ctx, b)
		if _, refused := errors.AsType[*Error](err); err != nil && !refused {
			return err
		}
		errs[i] = err
	}
	return b.flush(ctx)
}

// begin clears the cache if another process wrote since this process did.
func (b *batch) begin(ctx context.Context) error {
	if max(len(b.cache.stats), len(b.cache.blocks)) > maxCachedTrees {
		b.cache.clear()
	}
	if b.tx.Alone && b.cache.seq.tx >= 0 {
		b.cached = true
		return nil
	}
	var q seqRow
	err := b.tx.QueryRow(ctx, sqlSeq, nil, &q.tx, &q.event, &q.tree, &q.task, &q.call, &q.session, &q.mutation)
	if err != nil {
		return err
	}
	if q.tx != b.cache.seq.tx {
		b.cache.clear()
	}
	b.cache.seq = q
	return nil
}

func (b *batch) flush(ctx context.Context) error {
	if err := b.flushParents(ctx); err != nil {
		return err
	}
	if err := b.in.ends.Exec(ctx, b.tx, b.ends); err != nil {
		return err
	}
	b.ends = emptied(b.ends)
	if err := b.flushNewStates(ctx); err != nil {
		return err
	}
	if err := b.flushStates(ctx); err != nil {
		return err
	}
	if err := b.flushChains(ctx); err != nil {
		return err
	}
	if err := b.flushStats(ctx); err != nil {
		return err
	}
	return b.flushEvents(ctx)
}

const sqlSaveSeq = `UPDATE seq SET tx = $1, event = $2, tree = $3, task = $4, call = $5, session = $6, mutation = $7 WHERE id = 1 AND tx = $8`

// flushEvents writes the events and, last, the counters.
func (b *batch) flushEvents(ctx context.Context) error {
	if err := b.in.events.Exec(ctx, b.tx, b.events); err != nil {
		return err
	}
	if err := b.in.blocks.Exec(ctx, b.tx, b.blocks); err != nil {
		return err
	}
	b.events, b.blocks = emptied(b.events), emptied(b.blocks)
	if !b.tx.Changed {
		return nil
	}
	q := &b.cache.seq
	q.tx++
	n, err := b.tx.Exec(ctx, sqlSaveSeq, q.tx, q.event, q.tree, q.task, q.call, q.session, q.mutation, q.tx-1)
	if err == nil && n != 1 {
		return errStale
	}
	return err
}

// errStale reports that the cache differed from the database.
var errStale = errors.New("another process wrote out of turn")

// taskEnd is the row of the end of a task.
type taskEnd struct {
	id, tree      int64
	result, data  string
	kind, message string // of the error
	at            int64
}

// end queues the row of the end of a task, and returns its digest for the event.
func (b *batch) end(e *taskEnd) (digest string) {
	n := len(b.ends)
	b.ends = append(b.ends, e.id, e.tree, e.result, e.data, e.kind, e.message, e.at)
	return b.in.hasher.Digest(b.ends[n+2:]...)
}

// withDigest adds the digest of the row that an event is about to the data of the event.
func withDigest(data, digest string) string {
	if data == "" {
		return `{"digest":"` + digest + `"}`
	}
	return strings.TrimSuffix(data, "}") + `,"digest":"` + digest + `"}`
}

// event appends an event to the log. data is a JSON object, "" for none.
func (b *batch) event(tree, task int64, kind EventKind, data string) {
	b.cache.seq.event++
	block := b.cache.seq.event / sqldb.EventBlock
	if known, ok := b.cache.blocks[tree]; !ok || known != block {
		b.cache.blocks[tree] = block
		b.blocks = append(b.blocks, tree, block)
	}
	b.events = append(b.events, b.cache.seq.event, b.now, tree, task, string(kind), cmp.Or(data, "{}"), nil)
}

// addOpen adds n, which may be negative, to the number of open children of a parent.
func (b *batch) addOpen(parent, n int64) {
	if parent != 0 {
		b.parents[parent] += n
	}
}

// dbMaxInt64 is the largest integer of a column, as SQL text.
const dbMaxInt64 = `9223372036854775807`

// A waiting parent becomes queued when its last child is terminal. Woken parents come
// before all other tasks, so that work that has begun is finished first.
const (
	sqlAddOpen = `UPDATE task_hot SET pending = pending + $2 WHERE id = $1 RETURNING tree, state, pending`
	sqlWake    = `UPDATE task_hot SET state = ` + dbQueued + `, ready_at = $2,
		rank = CASE WHEN rank >= 0 THEN rank - ` + dbMaxInt64 + ` - 1 ELSE rank END WHERE id = $1`
)

// flushParents writes the pending tasks, and the number of open children of their parents.
func (b *batch) flushParents(ctx context.Context) error {
	if err := b.flushTasks(ctx); err != nil {
		return err
	}
	for parent := range b.parents {
		if err := b.flushParent(ctx, parent); err != nil {
			return err
		}
	}
	return nil
}

// flushParent writes the number of open children of one task. Operations that depend on
// it call flushParent first.
func (b *batch) flushParent(ctx context.Context, parent int64) error {
	n := b.parents[parent]
	if n == 0 {
		return nil
	}
	delete(b.parents, parent)
	var tree, state, pending int64
	err := b.tx.QueryRow(ctx, sqlAddOpen, []any{parent, n}, &tree, &state, &pending)
	if err != nil {
		return err
	}
	if state != stWaiting || pending != 0 {
		return nil
	}
	if _, err := b.tx.Exec(ctx, sqlWake, parent, b.now); err != nil {
		return err
	}
	st, err := b.stat(ctx, tree)
	if err != nil {
		return err
	}
	st.move(stWaiting, stQueued)
	b.ready[tree] = true
	b.event(tree, parent, EventTaskQueued, "")
	return nil
}

// stat returns the counters of a tree for changing.
func (b *batch) stat(ctx context.Context, tree int64) (*treeStat, error) {
	if st := b.dirty[tree]; st != nil {
		return st, nil
	}
	st := b.cache.stats[tree]
	if st == nil {
		var err error
		if st, err = loadStat(ctx, b.tx.QueryRow, tree); err != nil {
			return nil, orNotFound(err, notFoundf("change tree", "the tree was removed"))
		}
	}
	b.dirty[st.tree], b.cache.stats[st.tree] = st, st
	return st, nil
}

// insertions are the statements that insert rows, and what the chains of events need.
type insertions struct {
	hasher chain.Hasher

	events, blocks, ends, hots, colds, vars, past, mutations sqldb.Insertion
	trees, stats, newStats, singleStats, states              sqldb.Insertion
}

const (
	headEvent = `INSERT INTO event (seq, at, tree, task, kind, data, link)`
	headBlock = `INSERT INTO event_block (tree, block)`
	headEnd   = `INSERT INTO task_end (id, tree, result, data, error_kind, error, ended_at)`
	tailEnd   = `ON CONFLICT (id) DO UPDATE SET result = excluded.result, data = excluded.data,
		error_kind = excluded.error_kind, error = excluded.error, ended_at = excluded.ended_at`
	headHot = `INSERT INTO task_hot (id, tree, parent, rank, state, ready_at, max_attempts, successor, flags,
		fence, attempt, pending, active_us, input_tokens, output_tokens, cached_tokens, cost_micros, calls, unpriced)`
	rowHot   = `(?, ?, ?, ?, ` + dbQueued + `, ?, ?, ?, ?, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)`
	headCold = `INSERT INTO task (id, tree, parent, depth, position, prompt, agent, strategy, merge, context, metadata,
		priority, created_at)`
)

func newInsertions() *insertions {
	return &insertions{
		events: sqldb.NewInsertion(headEvent, eventValues, ""),
		blocks: sqldb.NewInsertion(headBlock, 2, "ON CONFLICT DO NOTHING"),
		ends:   sqldb.NewInsertion(headEnd, 7, tailEnd),
		hots:   sqldb.NewRowInsertion(headHot, rowHot, ""),
		colds:  sqldb.NewInsertion(headCold, 13, ""),

		vars:      sqldb.NewInsertion(headVar, 14, tailVar),
		past:      sqldb.NewInsertion(headPast, 15, ""),
		mutations: sqldb.NewInsertion(headMutation, 10, ""),

		trees:    sqldb.NewInsertion(headTree, 11, ""),
		stats:    sqldb.NewInsertion(headStat, 29, ""),
		newStats: sqldb.NewRowInsertion(headStat, rowNewStat, ""),

		singleStats: sqldb.NewRowInsertion(headStat, rowSingleStat, ""),
		states:      sqldb.NewInsertion(headState, 13, ""),
	}
}
