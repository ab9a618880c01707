package perdure

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// StateRecord is a state to export or import: its current and past values, its history and
// its checkpoints.
type StateRecord struct {
	Ref StateRef
	ID  StateID
	// Foreign is the name of an imported state at its origin, "" for a state of this
	// store; Extra is a JSON object imported with it, or nil.
	Foreign   string
	Extra     json.RawMessage
	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt *time.Time
	// Compacted counts the oldest mutations, which are no longer listed.
	Compacted   int64
	Mutations   []MutationRecord
	Checkpoints []CheckpointRecord
	// Versions are all current and past values, in no order.
	Versions []VersionRecord
}

// ImportOnly is the Foreign name of a mutation or checkpoint that the import created.
const ImportOnly = "-"

// MutationRecord is a mutation without its values, which are in the versions.
type MutationRecord struct {
	Mutation
	Foreign string
}

// CheckpointRecord is a checkpoint with its name at the origin.
type CheckpointRecord struct {
	Checkpoint
	Foreign string
}

// VersionRecord is a value that a variable has or had: from the mutation
// Version until the mutation Dead, which is 0 for a current value. A nil Value of the
// variable prompt means the task's prompt.
type VersionRecord struct {
	Variable
	Dead MutationID
}

const (
	sqlStateList = `SELECT id, scope, '', task, owner, foreign_id FROM state
		WHERE id > $1 AND scope <> ` + sqldb.SQLScopeTree + ` ORDER BY id LIMIT $2 + 0`
	sqlTreeStates = `SELECT s.id, s.scope, t.name, s.task, s.owner, s.foreign_id FROM tree t
		JOIN state s ON s.scope = ` + sqldb.SQLScopeTree + ` AND s.tree = t.id WHERE t.name = $1 ORDER BY s.task`
)

// States lists the states of a tree and of its tasks, or with "" those outside of trees,
// without counters. States that were never written to are not listed.
func (s *Store) States(ctx context.Context, tree TreeID) ([]StateInfo, error) {
	if tree != "" {
		return s.stateList(ctx, sqlTreeStates, string(tree))
	}
	var all []StateInfo
	for after := StateID(0); ; after = all[len(all)-1].ID {
		page, err := s.stateList(ctx, sqlStateList, int64(after), maxPage)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < maxPage {
			return all, nil
		}
	}
}

func (s *Store) stateList(ctx context.Context, q string, args ...any) ([]StateInfo, error) {
	list, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (i StateInfo, err error) {
		var scope int64
		var owner string
		err = scan((*int64)(&i.ID), &scope, (*string)(&i.Ref.Tree), (*int64)(&i.Ref.Task), &owner, &i.Foreign)
		switch i.Ref.Scope = scopes[scope]; i.Ref.Scope {
		case ScopeSession:
			i.Ref.Session = owner
		case ScopeTemporary:
			i.Ref.Name = owner
		case ScopeGlobal, ScopeTree:
		}
		return i, err
	}, q, args...)
	return list, wrap("list states", err)
}

const (
	sqlStateExtra  = `SELECT foreign_id, extra FROM state WHERE id = $1`
	sqlDumpHistory = `SELECT id, operation, name, detail, source, reason, task, at, foreign_id FROM mutation WHERE state = $1 ORDER BY id`
	sqlDumpChecks  = `SELECT id, name, description, created_at, foreign_id FROM checkpoint WHERE state = $1 ORDER BY id`
	sqlDumpVars    = `SELECT 0, ` + varColumns + ` FROM variable WHERE state = $1 ORDER BY name`
	sqlDumpPast    = `SELECT dead, ` + varColumns + ` FROM variable_past WHERE state = $1 ORDER BY name, born`
)

// StateRecord reads a state with all its values into memory. It fails with CodeNotFound if
// the state was never written to.
func (s *Store) StateRecord(ctx context.Context, ref StateRef) (StateRecord, error) {
	const op = "read state"
	r := StateRecord{Ref: ref}
	st, err := s.state(ctx, op, &ref)
	if err != nil {
		return r, err
	}
	if st.id == 0 {
		return r, notFoundf(op, "the state was never written to")
	}
	if ref.Scope == ScopeTree {
		r.Ref.Task = TaskID(st.task)
	}
	r.ID, r.CreatedAt, r.UpdatedAt, r.ExpiresAt = StateID(st.id), micros(st.createdAt), micros(st.updatedAt),
		timePtr(st.expiresAt)
	var extra string
	if err := s.db.QueryRow(ctx, sqlStateExtra, []any{st.id}, &r.Foreign, &extra); err != nil {
		return r, wrap(op, err)
	}
	if extra != "" {
		r.Extra = json.RawMessage(extra)
	}
	if err := s.dumpHistory(ctx, st, &r); err != nil {
		return r, wrap(op, err)
	}
	values := make(map[string]json.RawMessage) // a value of several versions is read once
	for _, q := range []string{sqlDumpVars, sqlDumpPast} {
		if err := s.dumpVersions(ctx, st, q, values, &r); err != nil {
			return r, wrap(op, err)
		}
	}
	return r, nil
}

func (s *Store) dumpHistory(ctx context.Context, st *varState, r *StateRecord) error {
	err := sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var m MutationRecord
		var at int64
		err := scan((*int64)(&m.ID), &m.Operation, &m.Name, &m.To, &m.Source, &m.Reason, (*int64)(&m.Task), &at,
			&m.Foreign)
		m.Time = micros(at)
		switch m.Operation {
		case mutCompacted:
			if err == nil {
				err = json.Unmarshal([]byte(m.To), &r.Compacted)
			}
			return err
		case mutRename, mutRollback:
		default:
			m.To = ""
		}
		r.Mutations = append(r.Mutations, m)
		return err
	}, sqlDumpHistory, st.id)
	if err != nil {
		return err
	}
	r.Checkpoints, err = sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (c CheckpointRecord, err error) {
		var at int64
		err = scan((*int64)(&c.ID), &c.Name, &c.Description, &at, &c.Foreign)
		c.Time = micros(at)
		return c, err
	}, sqlDumpChecks, st.id)
	return err
}

func (s *Store) dumpVersions(ctx context.Context, st *varState, q string, values map[string]json.RawMessage,
	r *StateRecord) error {
	first := len(r.Versions)
	var columns []string
	err := sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var row varRow
		var dead int64
		err := scan(append([]any{&dead}, row.dest()...)...)
		v := row.variable(st.scope, st)
		if dead == 0 {
			v.Accessed += s.accesses.pending(stateVar{st.id, v.Name})
		}
		r.Versions = append(r.Versions, VersionRecord{Variable: v, Dead: MutationID(dead)})
		columns = append(columns, row.column)
		return err
	}, q, st.id)
	if err != nil {
		return err
	}
	for i, column := range columns {
		value, ok := values[column]
		if !ok {
			if value, err = s.varValue(ctx, st, column); err != nil {
				return err
			}
			values[column] = value
		}
		v := &r.Versions[first+i]
		v.Value, v.Size = value, int64(len(value))
	}
	return nil
}

// ImportStates imports states. Either all are imported or none. Mutations and checkpoints
// get new numbers in the same order, across the records; equal numbers stay equal. It
// fails with CodeConflict if one of the states was written to already.
func (s *Store) ImportStates(ctx context.Context, records []StateRecord) ([]StateID, error) {
	const op = "import state"
	list := make([]*importState, len(records))
	checkpoints := make(map[CheckpointID]bool)
	for i := range records {
		key, err := records[i].Ref.key(op)
		if err != nil {
			return nil, err
		}
		list[i] = &importState{rec: &records[i], key: key}
		if err := list[i].checkCheckpoints(op, checkpoints); err != nil {
			return nil, err
		}
		if err := list[i].prepare(ctx, s); err != nil {
			return nil, err
		}
	}
	ids := make([]StateID, len(list))
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		for i, r := range list {
			st, err := b.findState(ctx, r.key)
			if err != nil {
				return err
			}
			if st.id != 0 {
				return conflictf(op, "state %q was written to already", StateID(st.id))
			}
			b.cache.seq.mutation++
			st.id = b.cache.seq.mutation
			r.st, ids[i] = st, StateID(st.id)
		}
		fresh := renumber(list, &b.cache.seq.mutation)
		for _, r := range list {
			if err := r.apply(ctx, b, fresh); err != nil {
				return undoing(err)
			}
		}
		return nil
	}))
	return ids, err
}

// renumber maps each number in the records to a new one, in their order.
func renumber(list []*importState, last *int64) map[int64]int64 {
	fresh := make(map[int64]int64)
	var old []int64
	for _, r := range list {
		if r.rec.Compacted > 0 {
			old = append(old, -1) // before all others
		}
		for i := range r.rec.Mutations {
			old = append(old, int64(r.rec.Mutations[i].ID))
		}
		for i := range r.rec.Checkpoints {
			old = append(old, int64(r.rec.Checkpoints[i].ID))
		}
		for i := range r.rec.Versions {
			old = append(old, int64(r.rec.Versions[i].Version), int64(r.rec.Versions[i].Dead))
		}
	}
	slices.Sort(old)
	for _, n := range slices.Compact(old) {
		if n != 0 {
			*last++
			fresh[n] = *last
		}
	}
	return fresh
}

// importState is a state about to be imported.
type importState struct {
	rec    *StateRecord
	key    stateKey
	st     *varState
	stored []stored // of the versions
	living int64
}

func (r *importState) prepare(ctx context.Context, s *Store) error {
	const op = "import state"
	rec := r.rec
	if len(rec.Mutations) > MaxHistory || len(rec.Checkpoints) > MaxCheckpoints {
		return invalidf(op, "the state has %d mutations and %d checkpoints, the limits are %d and %d", len(rec.Mutations),
			len(rec.Checkpoints), MaxHistory, MaxCheckpoints)
	}
	if err := validateObject(op, "extra", rec.Extra, MaxResultBytes); err != nil {
		return err
	}
	r.stored = make([]stored, len(rec.Versions))
	for i := range rec.Versions {
		v := &rec.Versions[i]
		if v.Version <= 0 || v.Dead != 0 && v.Dead <= v.Version {
			return invalidf(op, "a version of %q is set by mutation %d and replaced by %d", v.Name, v.Version, v.Dead)
		}
		if v.Dead == 0 {
			r.living++
		}
		if v.Value == nil && v.Name == VarPrompt && rec.Ref.Scope == ScopeTree {
			r.stored[i] = stored{column: promptRef}
			continue
		}
		spec := VarSpec{Name: v.Name, Value: v.Value, Type: v.Type, Description: v.Description,
			Cause: Cause{Source: v.Source}}
		text, err := spec.check(op)
		if err != nil {
			return err
		}
		v.Size, v.Type = int64(len(text)), spec.Type
		if r.stored[i], err = s.store(ctx, text); err != nil {
			return err
		}
	}
	if r.living > MaxVariables {
		return invalidf(op, "the state has %d variables, the limit is %d", r.living, MaxVariables)
	}
	return r.checkMutations(op)
}

// checkMutations checks what the operations on variables check.
func (r *importState) checkMutations(op string) error {
	if len(r.rec.Foreign) > maxOwnerBytes || !storable(r.rec.Foreign) {
		return invalidf(op, "the name of the state at its origin is too long or not UTF-8 text")
	}
	seen := make(map[MutationID]bool, len(r.rec.Mutations))
	for i := range r.rec.Mutations {
		m := &r.rec.Mutations[i]
		if m.ID <= 0 || seen[m.ID] {
			return invalidf(op, "mutation %d has no number, or that of another one", i)
		}
		seen[m.ID] = true
		switch m.Operation {
		case mutCreate, mutUpdate, mutDelete, mutRename, mutRollback:
		default:
			return invalidf(op, "mutation %d has the unknown operation %q", i, validPrefix(m.Operation, 100))
		}
		cause := Cause{Source: m.Source, Reason: m.Reason}
		if max(len(m.Name), len(m.To), len(m.Foreign)) > maxOwnerBytes || !storable(m.Name+m.To+m.Foreign) ||
			cause.check(op) != nil {
			return invalidf(op, "a field of mutation %d is too long or not UTF-8 text", i)
		}
	}
	return nil
}

// checkCheckpoints checks what [Store.SaveCheckpoint] checks, and adds the numbers to those of
// the other records: a number is of one checkpoint of the store.
func (r *importState) checkCheckpoints(op string, seen map[CheckpointID]bool) error {
	for i := range r.rec.Checkpoints {
		c := &r.rec.Checkpoints[i]
		if c.ID <= 0 || seen[c.ID] {
			return invalidf(op, "checkpoint %d has no number, or that of another one", i)
		}
		seen[c.ID] = true
		if max(len(c.Name), len(c.Foreign)) > maxOwnerBytes || !storable(c.Name+c.Foreign) ||
			(&Cause{}).check(op, c.Description) != nil {
			return invalidf(op, "the name or description of checkpoint %d is too long or not UTF-8 text", i)
		}
	}
	return nil
}

const (
	sqlImportState = `INSERT INTO state (` + stateColumns + `, foreign_id, extra) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
	sqlImportMut   = `INSERT INTO mutation (state, id, operation, name, before, detail, source, reason, task, at, foreign_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	sqlImportCheck = `INSERT INTO checkpoint (id, state, name, description, created_at, foreign_id) VALUES ($1, $2, $3, $4, $5, $6)`
)

func (r *importState) apply(ctx context.Context, b *batch, fresh map[int64]int64) error {
	rec, st := r.rec, r.st
	before := make(map[stateVar]int64) // the version that a mutation replaced
	digests := make(map[string]string)
	for i := range rec.Versions {
		v := &rec.Versions[i]
		if v.Dead != 0 {
			before[stateVar{int64(v.Dead), v.Name}] = fresh[int64(v.Version)]
		}
		row, err := r.putVersion(ctx, b, fresh, i)
		if err != nil {
			return err
		}
		if v.Dead == 0 {
			name := chain.Row{Kind: chain.KindVariable, Number: int(st.id), Part: v.Name}.Name()
			digests[name] = row.digest(&b.in.hasher)
		}
	}
	st.variables, st.checkpoints = r.living, int64(len(rec.Checkpoints))
	st.entries = int64(len(rec.Mutations))
	st.mutations = st.entries + rec.Compacted
	if rec.Compacted > 0 {
		st.entries++
		st.compacted = fresh[-1]
		_, err := b.tx.Exec(ctx, sqlImportMut, st.id, st.compacted, mutCompacted, "", 0, itoa(rec.Compacted), "", "", 0,
			microsOf(rec.CreatedAt), "")
		if err != nil {
			return err
		}
	}
	for i := range rec.Mutations {
		m := &rec.Mutations[i]
		_, err := b.tx.Exec(ctx, sqlImportMut, st.id, fresh[int64(m.ID)], m.Operation, m.Name,
			before[stateVar{int64(m.ID), m.Name}],
			m.To, m.Source, m.Reason, int64(m.Task), microsOf(m.Time), m.Foreign)
		if err != nil {
			return err
		}
	}
	for i := range rec.Checkpoints {
		c := &rec.Checkpoints[i]
		_, err := b.tx.Exec(ctx, sqlImportCheck, fresh[int64(c.ID)], st.id, c.Name, c.Description, microsOf(c.Time),
			c.Foreign)
		if err != nil {
			return err
		}
	}
	_, err := b.tx.Exec(ctx, sqlImportState, st.id, st.scope, st.tree, st.task, st.owner, st.variables, st.mutations,
		st.entries,
		st.compacted, st.checkpoints, microsOf(rec.CreatedAt), microsOf(rec.UpdatedAt), microsPtr(rec.ExpiresAt), rec.Foreign,
		string(rec.Extra))
	b.event(st.tree, eventTask(st), EventVariablesImported, `{"state_id":"`+StateID(st.id).String()+`","variables":`+itoa(st.variables)+
		`,"mutations":`+itoa(st.mutations)+`,"checkpoints":`+itoa(st.checkpoints)+`,"digested":true}`)
	if err != nil {
		return err
	}
	return b.logDigests(st.tree, digests)
}

func (r *importState) putVersion(ctx context.Context, b *batch, fresh map[int64]int64, i int) (row *varRow, err error) {
	v := &r.rec.Versions[i]
	if err := b.keepValue(ctx, r.st.payloads(), r.stored[i]); err != nil {
		return nil, err
	}
	row = &varRow{name: v.Name, born: fresh[int64(v.Version)], column: r.stored[i].column, size: v.Size, kind: v.Type,
		description: v.Description, source: v.Source, readOnly: v.Metadata.ReadOnly, ttl: v.Metadata.TTLSeconds * 1e6,
		accessed: v.Accessed, createdAt: microsOf(v.CreatedAt), updatedAt: microsOf(v.UpdatedAt),
		expiresAt: microsPtr(v.Metadata.ExpiresAt)}
	if v.Dead == 0 {
		b.writeVar(r.st, row.name, row)
		return row, nil
	}
	b.vars.past = row.appendTo(append(b.vars.past, r.st.id, fresh[int64(v.Dead)]))
	return row, nil
}
