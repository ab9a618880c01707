package perdure

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Checkpoint is a named point in the history of a state. A checkpoint of a tree includes
// the states of its tasks. It copies no values: it is a number between two mutations, and
// values that are replaced later are kept for it.
type Checkpoint struct {
	ID          CheckpointID `json:"checkpoint_id"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Time        time.Time    `json:"timestamp"`
}

// initialCheckpoint is the name of the first checkpoint of every state.
const initialCheckpoint = "initial_state"

const (
	sqlInsertCheckpoint = `INSERT INTO checkpoint (id, state, name, description, created_at) VALUES ($1, $2, $3, $4, $5)`
	sqlCheckpoints      = `SELECT id, name, description, created_at FROM checkpoint WHERE state = $1 ORDER BY id`
)

// SaveCheckpoint creates a checkpoint of a state. Without a name its ID is its name. If the
// state has [MaxCheckpoints] already, the oldest one without a name of its own is removed;
// SaveCheckpoint fails with CodeConflict if all have one.
func (s *Store) SaveCheckpoint(ctx context.Context, ref StateRef, name, description string) (Checkpoint, error) {
	return s.saveCheckpoint(ctx, nil, ref, name, description)
}

// SaveCheckpoint creates a checkpoint of the lease's own task. Changes of variables before
// it are not undone when the task is run again.
func (l *Lease) SaveCheckpoint(ctx context.Context, name, description string) (Checkpoint, error) {
	return l.s.saveCheckpoint(ctx, l, l.Var(), name, description)
}

func (s *Store) saveCheckpoint(ctx context.Context, l *Lease, ref StateRef, name, description string) (Checkpoint,
	error) {
	const op = "save checkpoint"
	key, err := ref.key(op)
	if err != nil {
		return Checkpoint{}, err
	}
	if len(name) > maxOwnerBytes || !storable(name) {
		return Checkpoint{}, invalidf(op, "the name is not UTF-8 text of at most %d bytes", maxOwnerBytes)
	}
	if err := (&Cause{}).check(op, description); err != nil {
		return Checkpoint{}, err
	}
	c := Checkpoint{}
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		c = Checkpoint{Name: name, Description: description}
		if l != nil {
			if err := b.held(ctx, l, op); err != nil {
				return err
			}
		}
		st, err := b.findState(ctx, key)
		if err != nil {
			return err
		}
		if st.checkpoints >= MaxCheckpoints {
			if err := b.dropUnnamed(ctx, op, st); err != nil {
				return err
			}
		}
		return undoing(b.addCheckpoint(ctx, l, key, st, &c))
	}))
	return c, err
}

const sqlDropCheckpoint = `DELETE FROM checkpoint WHERE state = $1 AND id = $2`

// dropUnnamed removes the oldest checkpoint of a state that has no name of its own, and the
// values that only it needed.
func (b *batch) dropUnnamed(ctx context.Context, op string, st *varState) error {
	list, err := sqldb.Collect(ctx, b.tx.Query, scanCheckpoint, sqlCheckpoints, st.id)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(c Checkpoint) bool {
		_, err := parseHexID(checkpointPrefix, c.Name)
		return err == nil
	})
	if at < 0 {
		return &Error{Code: CodeConflict, Op: op, Msg: "the state has " + itoa(st.checkpoints) +
			" checkpoints with names, the limit is " + itoa(MaxCheckpoints),
			Hint: "remove one with `perdure checkpoint delete NAME`; `perdure gc` keeps the last 10"}
	}
	return b.dropCheckpoint(ctx, st, int64(list[at].ID))
}

// DeleteCheckpoint removes a checkpoint of a state, by ID or name; of several with the name
// the newest. It fails with CodeNotFound if there is none.
func (s *Store) DeleteCheckpoint(ctx context.Context, ref StateRef, name string) error {
	const op = "delete checkpoint"
	key, err := ref.key(op)
	if err != nil {
		return err
	}
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		st, err := b.findState(ctx, key)
		if err != nil {
			return err
		}
		q, args := checkpointNamed(st, name)
		var id int64
		if err := b.tx.QueryRow(ctx, q, args, &id); err != nil {
			return orNotFound(err, &Error{Code: CodeNotFound, Op: op, Hint: hintCheckpoints,
				Msg: "the state has no checkpoint \"" + validPrefix(name, 200) + "\""})
		}
		return undoing(b.dropCheckpoint(ctx, st, id))
	}))
}

// dropCheckpoint removes a checkpoint, and the values that only it needed.
func (b *batch) dropCheckpoint(ctx context.Context, st *varState, id int64) error {
	if err := b.flushStates(ctx); err != nil {
		return err
	}
	if _, err := b.tx.Exec(ctx, sqlDropCheckpoint, st.id, id); err != nil {
		return err
	}
	st.checkpoints--
	b.touch(st)
	states, err := covered(ctx, b.tx.Query, st)
	if err != nil {
		return err
	}
	for _, one := range states {
		if err := b.dropPast(ctx, one, one.compacted); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) addCheckpoint(ctx context.Context, l *Lease, key stateKey, st *varState, c *Checkpoint) error {
	if err := b.makeState(ctx, key, st); err != nil {
		return err
	}
	if l != nil {
		if err := b.settleVars(ctx, l); err != nil {
			return err
		}
	}
	b.cache.seq.mutation++
	c.ID, c.Time = CheckpointID(b.cache.seq.mutation), micros(b.now)
	c.Name = cmp.Or(c.Name, c.ID.String())
	st.checkpoints++
	b.touch(st)
	b.event(st.tree, eventTask(st), EventCheckpointSaved, `{"checkpoint_id":"`+c.ID.String()+`","name":`+quote(c.Name)+
		`,"state_id":"`+StateID(st.id).String()+`"}`)
	_, err := b.tx.Exec(ctx, sqlInsertCheckpoint, int64(c.ID), st.id, c.Name, c.Description, b.now)
	return err
}

// eventTask returns the task for events about a state, 0 for the state of a tree.
func eventTask(st *varState) int64 {
	if st.task == st.root {
		return 0
	}
	return st.task
}

// Checkpoints lists the checkpoints of a state, the oldest first.
func (s *Store) Checkpoints(ctx context.Context, ref StateRef) ([]Checkpoint, error) {
	const op = "list checkpoints"
	st, err := s.state(ctx, op, &ref)
	if err != nil {
		return nil, err
	}
	list, err := sqldb.Collect(ctx, s.db.Query, scanCheckpoint, sqlCheckpoints, st.id)
	if list == nil {
		list = []Checkpoint{}
	}
	return list, wrap(op, err)
}

func scanCheckpoint(scan sqldb.Scan) (c Checkpoint, err error) {
	var at int64
	err = scan((*int64)(&c.ID), &c.Name, &c.Description, &at)
	c.Time = micros(at)
	return c, err
}

const (
	sqlCheckpointByID   = `SELECT id FROM checkpoint WHERE state = $1 AND id = $2`
	sqlCheckpointByName = `SELECT id FROM checkpoint WHERE state = $1 AND name = $2 ORDER BY id DESC LIMIT 1`
	sqlMutationAt       = `SELECT id FROM mutation WHERE state = $1 AND id = $2 AND operation <> '` + mutCompacted + `'`
	sqlTreeMutationAt   = `SELECT m.id FROM state s JOIN mutation m ON m.state = s.id
		WHERE s.scope = ` + sqldb.SQLScopeTree + ` AND s.tree = $1 AND m.id = $2
			AND m.operation <> '` + mutCompacted + `' LIMIT 1`
)

// instant returns the number of a checkpoint or mutation, by ID or name: the state at that
// instant is that after all mutations with smaller numbers. "" is now.
func instant(ctx context.Context, query queryRow, op string, st *varState, name string) (int64, error) {
	if name == "" {
		return math.MaxInt64, nil
	}
	q, args := checkpointNamed(st, name)
	if n, err := parseHexID(mutationPrefix, name); err == nil {
		q, args = sqlMutationAt, []any{st.id, n}
		if st.tree != 0 && st.task == st.root {
			q, args = sqlTreeMutationAt, []any{st.tree, n}
		}
	}
	var at int64
	err := query(ctx, q, args, &at)
	return at, orNotFound(err, &Error{Code: CodeNotFound, Op: op,
		Msg:  "the state has no checkpoint or mutation \"" + validPrefix(name, 200) + "\"",
		Hint: hintCheckpoints + ", `perdure var history` the mutations"})
}

const hintCheckpoints = "`perdure checkpoint list` shows the checkpoints"

// checkpointNamed returns the query for a checkpoint, by ID or name.
func checkpointNamed(st *varState, name string) (q string, args []any) {
	if n, err := parseHexID(checkpointPrefix, name); err == nil {
		return sqlCheckpointByID, []any{st.id, n}
	}
	return sqlCheckpointByName, []any{st.id, name}
}

// VarChange is a variable that differs between two instants of a state.
type VarChange struct {
	// Change is added, removed or changed.
	Change string `json:"change"`
	Name   string `json:"name"`
	Task   TaskID `json:"task_id,omitempty"`
	// Old and New are left out when longer than MaxInlineBytes.
	Old     json.RawMessage `json:"old_value,omitempty"`
	New     json.RawMessage `json:"new_value,omitempty"`
	OldSize int64           `json:"old_size,omitempty"`
	NewSize int64           `json:"new_size,omitempty"`
}

const (
	sqlCovered = `SELECT ` + stateColumns + ` FROM state
		WHERE scope = ` + sqldb.SQLScopeTree + ` AND tree = $1 ORDER BY task`
	sqlAt = `SELECT name, value, size, type FROM variable WHERE state = $1 AND born < $2
		UNION ALL SELECT name, value, size, type FROM variable_past WHERE state = $1 AND born < $2 AND dead >= $2`
)

// covered lists the states that a checkpoint of a state includes.
func covered(ctx context.Context, query sqldb.QueryFunc, st *varState) ([]*varState, error) {
	if st.tree == 0 || st.task != st.root {
		return []*varState{st}, nil
	}
	return sqldb.Collect(ctx, query, func(scan sqldb.Scan) (*varState, error) {
		one := &varState{root: st.root}
		return one, scan(one.dest()...)
	}, sqlCovered, st.tree)
}

const opDiff = "compare state"

// Diff compares a state at two instants: a checkpoint by ID or name, a mutation
// (before it), or "" for now.
func (s *Store) Diff(ctx context.Context, ref StateRef, from, to string) ([]VarChange, error) {
	st, err := s.state(ctx, opDiff, &ref)
	if err != nil {
		return nil, err
	}
	a, err := instant(ctx, s.db.QueryRow, opDiff, st, from)
	if err != nil {
		return nil, wrap(opDiff, err)
	}
	b, err := instant(ctx, s.db.QueryRow, opDiff, st, to)
	if err != nil {
		return nil, wrap(opDiff, err)
	}
	states, err := covered(ctx, s.db.Query, st)
	if err != nil {
		return nil, wrap(opDiff, err)
	}
	changes := []VarChange{}
	for _, one := range states {
		more, err := s.diffState(ctx, one, a, b)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	return changes, nil
}

type valueAt struct {
	column string
	size   int64
	kind   VarType
}

func (s *Store) valuesAt(ctx context.Context, st *varState, at int64) (map[string]valueAt, error) {
	values := make(map[string]valueAt)
	err := sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var name string
		var v valueAt
		err := scan(&name, &v.column, &v.size, (*string)(&v.kind))
		values[name] = v
		return err
	}, sqlAt, st.id, at)
	return values, wrap(opDiff, err)
}

func (s *Store) diffState(ctx context.Context, st *varState, from, to int64) ([]VarChange, error) {
	old, err := s.valuesAt(ctx, st, from)
	if err != nil {
		return nil, err
	}
	now, err := s.valuesAt(ctx, st, to)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(old)
	maps.Copy(all, now)
	var changes []VarChange
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, was := old[name]
		b, is := now[name]
		c := VarChange{Name: name, OldSize: a.size, NewSize: b.size, Change: "changed"}
		switch {
		case !was:
			c.Change = "added"
		case !is:
			c.Change = "removed"
		case a == b:
			continue
		}
		if st.tree != 0 {
			c.Task = TaskID(st.task)
		}
		if c.Old, err = s.shortValue(ctx, st, a.column, a.size); err != nil {
			return nil, err
		}
		if c.New, err = s.shortValue(ctx, st, b.column, b.size); err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// shortValue returns the value that a column holds or refers to; nil if there is none or
// it is long.
func (s *Store) shortValue(ctx context.Context, st *varState, column string, size int64) (json.RawMessage, error) {
	if column == "" || size > MaxInlineBytes {
		return nil, nil
	}
	return s.varValue(ctx, st, column)
}

// RollbackReport is the result of a rollback.
type RollbackReport struct {
	// Mutation is the rollback itself; rolling back to it undoes it.
	Mutation MutationID `json:"mutation_id,omitempty"`
	// Restored counts variables that got an old value back, Removed those that did
	// not exist then.
	Restored int64 `json:"restored"`
	Removed  int64 `json:"removed"`
}

const (
	sqlArchiveSince = `INSERT INTO variable_past (state, dead, ` + varColumns + `) SELECT state, $3, ` + varColumns +
		` FROM variable
		WHERE state = $1 AND born >= $2 AND name <> 'prompt' AND NOT (name = 'Final' AND value <> 'null')`
	sqlDropSince = `DELETE FROM variable WHERE state = $1 AND born >= $2 AND name <> 'prompt' AND NOT (name = 'Final' AND value <> 'null')`
	sqlRestore   = `INSERT INTO variable (state, ` + varColumns +
		`) SELECT state, name, $3, value, size, type, description, source,
		read_only, ttl, accessed, created_at, $4, expires_at FROM variable_past WHERE state = $1 AND born < $2 AND dead >= $2
		ON CONFLICT (state, name) DO NOTHING`
	sqlCountVars = `SELECT COUNT(*) FROM variable WHERE state = $1`
	// sqlCountGone counts variables that a mutation removed and did not restore.
	sqlCountGone = `SELECT COUNT(*) FROM variable_past p WHERE p.state = $1 AND p.dead = $2
		AND NOT EXISTS (SELECT 1 FROM variable v WHERE v.state = $1 AND v.name = p.name)`
)

// Rollback restores a state as it was at a checkpoint (by ID or name), or before a
// mutation: variables added since are removed, deleted ones are restored. The prompt, and
// a Final that completed its task, do not change. The rollback is a mutation itself, so a
// rollback to that mutation undoes it.
func (s *Store) Rollback(ctx context.Context, ref StateRef, to string, cause Cause) (RollbackReport, error) {
	const op = "roll back state"
	key, err := ref.key(op)
	if err != nil {
		return RollbackReport{}, err
	}
	if to == "" {
		return RollbackReport{}, invalidf(op, "name of the checkpoint is empty")
	}
	if err := cause.check(op); err != nil {
		return RollbackReport{}, err
	}
	var report RollbackReport
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		report = RollbackReport{}
		st, err := b.findState(ctx, key)
		if err != nil {
			return err
		}
		at, err := instant(ctx, b.tx.QueryRow, op, st, to)
		if err != nil {
			return err
		}
		return undoing(b.rollback(ctx, st, at, &report,
			&mutationRow{operation: mutRollback, detail: to, source: cause.Source, reason: cause.Reason}))
	}))
	return report, err
}

func (b *batch) rollback(ctx context.Context, st *varState, at int64, report *RollbackReport, m *mutationRow) error {
	if err := b.flushStates(ctx); err != nil {
		return err
	}
	states, err := covered(ctx, b.tx.Query, st)
	if err != nil {
		return err
	}
	b.cache.seq.mutation++
	m.id = b.cache.seq.mutation
	report.Mutation = MutationID(m.id)
	for _, one := range states {
		if one.id == st.id {
			one = st
		}
		changed, err := b.restoreAt(ctx, one, at, report, m)
		if err == nil && changed {
			err = b.logRestored(ctx, one, m.id)
		}
		if err == nil && (changed || one == st) {
			b.event(one.tree, eventTask(one), EventCheckpointRolledBack, `{"to":`+quote(m.detail)+`,"mutation_id":"`+
				MutationID(m.id).String()+`","state_id":"`+StateID(one.id).String()+`"}`)
			err = b.countMutation(ctx, one, "", 0, m)
		}
		if err != nil {
			return err
		}
	}
	clear(b.cache.states) // other states of the tree may be cached with old values
	return b.flushStates(ctx)
}

const (
	sqlRestored = `SELECT name, value, size, type, description, source, read_only, ttl, created_at, expires_at
		FROM variable WHERE state = $1 AND born = $2`
	sqlGoneVars = `SELECT p.name FROM variable_past p WHERE p.state = $1 AND p.dead = $2
		AND NOT EXISTS (SELECT 1 FROM variable v WHERE v.state = $1 AND v.name = p.name)`
)

// logRestored appends the digests of the variables of a state that a mutation restored or
// removed.
func (b *batch) logRestored(ctx context.Context, st *varState, mutation int64) error {
	gone, err := sqldb.Collect(ctx, b.tx.Query, sqldb.Column[string], sqlGoneVars, st.id, mutation)
	if err != nil {
		return err
	}
	digests := make(map[string]string)
	for _, name := range gone {
		digests[chain.Row{Kind: chain.KindVariable, Number: int(st.id), Part: name}.Name()] = ""
	}
	err = sqldb.Each(ctx, b.tx.Query, func(scan sqldb.Scan) error {
		v := varRow{born: mutation, updatedAt: b.now}
		err := scan(&v.name, &v.column, &v.size, (*string)(&v.kind), &v.description, &v.source, &v.readOnly, &v.ttl,
			&v.createdAt, &v.expiresAt)
		digests[chain.Row{Kind: chain.KindVariable, Number: int(st.id), Part: v.name}.Name()] = v.digest(&b.in.hasher)
		return err
	}, sqlRestored, st.id, mutation)
	if err != nil {
		return err
	}
	return b.logDigests(st.tree, digests)
}

// restoreAt restores the variables of one state, and reports whether that changed any.
func (b *batch) restoreAt(ctx context.Context, st *varState, at int64, report *RollbackReport, m *mutationRow) (
	changed bool, err error) {
	// Values are kept for checkpoints, but not for other old mutations.
	if at <= st.compacted && strings.HasPrefix(m.detail, mutationPrefix) {
		return false, conflictf("roll back state", "the history before %s is compacted", MutationID(st.compacted))
	}
	if _, err := b.tx.Exec(ctx, sqlArchiveSince, st.id, at, m.id); err != nil {
		return false, err
	}
	gone, err := b.tx.Exec(ctx, sqlDropSince, st.id, at)
	if err != nil {
		return false, err
	}
	back, err := b.tx.Exec(ctx, sqlRestore, st.id, at, m.id, b.now)
	if err != nil {
		return false, err
	}
	if err := b.tx.QueryRow(ctx, sqlCountVars, []any{st.id}, &st.variables); err != nil {
		return false, err
	}
	var removed int64
	err = b.tx.QueryRow(ctx, sqlCountGone, []any{st.id, m.id}, &removed)
	report.Restored += back
	report.Removed += removed
	return gone > 0 || back > 0, err
}
