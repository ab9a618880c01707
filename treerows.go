package perdure

import "context"

// newTrees are the new trees and new states of which rows are pending. Those of a transaction
// are inserted together, trees with the counters that they have at its end.
type newTrees struct {
	stats       []*treeStat
	keys        map[string]bool // idempotency keys
	first, last int64           // of the states
}

const (
	headTree = `INSERT INTO tree (id, name, kind, title, config, root, owner, placement, idempotency, request, created_at)`
	headStat = `INSERT INTO tree_stat (` + statColumns + `)`
	// rowNewStat is the row of a tree that [treeStat.untouched] reports.
	rowNewStat = `(?, ` + dbQueued + `, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, 0, '[]', ?, '', NULL, NULL, ?, ?)`
	// rowSingleStat is the row of a tree that [treeStat.single] reports.
	rowSingleStat = `(?, ?, 0, 1, ?, 0, 0, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, 0, '[]', ?, '', ?, ?, ?, ?)`
	headState     = `INSERT INTO state (` + stateColumns + `)`

	// specials are the special variables of a new state in the scope of a tree, as specialRow
	// returns them; they have the numbers after the state's.
	specials = ` FROM state s CROSS JOIN (
			SELECT '` + VarPrompt + `' AS name, 1 AS n, '` + promptRef + `' AS value, 0 AS size, '` + string(VarText) + `' AS type,
				'` + promptSource + `' AS source, 1 AS read_only
			UNION ALL SELECT '` + VarFinal + `', 2, 'null', 4, '` + string(VarNull) + `', '', 0) special
		WHERE s.id >= $1 AND s.id <= $2 AND s.tree <> 0`
	sqlSpecialVars = `INSERT INTO variable (state, ` + varColumns + `) SELECT s.id, special.name, s.id + special.n, special.value, special.size, special.type, '', special.source,
		special.read_only, 0, 0, s.created_at, s.created_at, CAST(NULL AS BIGINT)` + specials
	sqlSpecialMutations = `INSERT INTO mutation (state, id, operation, name, before, detail, source, reason, task, at)
		SELECT s.id, s.id + special.n, '` + mutCreate + `', special.name, 0, '', special.source, '', 0, s.created_at` + specials
	sqlFirstCheckpoints = `INSERT INTO checkpoint (id, state, name, description, created_at)
		SELECT id + variables + 1, id, '` + initialCheckpoint + `', '', created_at FROM state WHERE id >= $1 AND id <= $2`
)

// addTree queues the row of a tree, with the values of headTree, and its counters.
func (b *batch) addTree(c *createTree, row []any, st *treeStat) {
	b.treeRows = append(b.treeRows, row...)
	b.addStat(st)
	if key := c.spec.IdempotencyKey; key != "" {
		if b.born.keys == nil {
			b.born.keys = make(map[string]bool)
		}
		b.born.keys[key] = true
	}
}

// addStat queues the row of the counters of a new tree.
func (b *batch) addStat(st *treeStat) {
	b.born.stats = append(b.born.stats, st)
	b.dirty[st.tree], b.cache.stats[st.tree] = st, st
}

// addState queues the row of a state, of its special variables and of its first checkpoint.
func (b *batch) addState(st *varState) {
	if len(b.stateRows) == 0 {
		b.born.first = st.id
	}
	b.born.last = st.id
	b.stateRows = append(b.stateRows, st.id, st.scope, st.tree, st.task, st.owner, st.variables, st.mutations, st.entries,
		st.compacted, st.checkpoints, st.createdAt, st.updatedAt, st.expiresAt)
}

// flushTrees writes the pending rows. Operations that may read rows of trees created in this
// transaction call it first.
func (b *batch) flushTrees(ctx context.Context) error {
	if err := b.in.trees.Exec(ctx, b.tx, b.treeRows); err != nil {
		return err
	}
	b.treeRows = emptied(b.treeRows)
	var fresh, single, rest []any
	for _, st := range b.born.stats {
		if err := st.encode(); err != nil {
			return err
		}
		switch {
		case st.untouched():
			fresh = append(fresh, st.tree, st.rawLimits, st.rawTiming, st.chain.Events, st.head())
		case st.single():
			single = append(single, st.tree, st.state, st.counts[stQueued], st.counts[stCompleted], st.counts[stFailed],
				st.counts[stCancelled], st.rawLimits, st.rawTiming, valueOf(st.startedAt), valueOf(st.endedAt),
				st.chain.Events, st.head())
		default:
			rest = append(rest, st.args()...)
		}
	}
	b.born.stats = b.born.stats[:0]
	if err := b.in.newStats.Exec(ctx, b.tx, fresh); err != nil {
		return err
	}
	if err := b.in.singleStats.Exec(ctx, b.tx, single); err != nil {
		return err
	}
	if err := b.in.stats.Exec(ctx, b.tx, rest); err != nil {
		return err
	}
	return b.flushNewStates(ctx)
}

// valueOf returns the value of a column that can be NULL.
func valueOf(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// flushNewStates writes the pending states. Each state between the first and the last of them
// is one of them, because states get rising numbers.
func (b *batch) flushNewStates(ctx context.Context) error {
	if len(b.stateRows) == 0 {
		return nil
	}
	if err := b.in.states.Exec(ctx, b.tx, b.stateRows); err != nil {
		return err
	}
	b.stateRows = emptied(b.stateRows)
	for _, q := range [...]string{sqlSpecialVars, sqlSpecialMutations, sqlFirstCheckpoints} {
		if _, err := b.tx.Exec(ctx, q, b.born.first, b.born.last); err != nil {
			return err
		}
	}
	return nil
}

// flushStats writes the changed counters.
func (b *batch) flushStats(ctx context.Context) error {
	for _, st := range b.born.stats { // inserted with what they are now
		delete(b.dirty, st.tree)
	}
	if err := b.flushTrees(ctx); err != nil {
		return err
	}
	for _, st := range b.dirty {
		if err := st.save(ctx, b.tx); err != nil {
			return err
		}
	}
	clear(b.dirty)
	return nil
}

// untouched reports whether the tree has only its root, queued, and no calls.
func (st *treeStat) untouched() bool {
	return st.single() && st.counts[stQueued] == 1 && st.state == stQueued && st.startedAt == nil && st.endedAt == nil
}

// single reports whether the tree has only its root, which does not run, and no calls.
func (st *treeStat) single() bool {
	return st.counts[0] == 1 && st.counts[stRunning] == 0 && st.counts[stWaiting] == 0 && st.partial == 0 &&
		st.used == (costLine{}) && st.openCalls == 0 && st.openTokens == 0 && st.openCost == 0 && st.warned == 0 &&
		len(st.costs) == 0 && len(st.holds) == 0
}
