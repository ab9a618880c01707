package perdure

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Scope is the part of the store in which a variable is visible.
type Scope string

// The scopes. A task reads its own variables first, then those of its ancestors up to the
// tree's, then the session's, then the global ones.
const (
	ScopeGlobal    Scope = "global"
	ScopeSession   Scope = "session"
	ScopeTree      Scope = "tree"
	ScopeTemporary Scope = "temporary"
)

var scopes = [...]Scope{sqldb.ScopeGlobal: ScopeGlobal, sqldb.ScopeSession: ScopeSession,
	sqldb.ScopeTree: ScopeTree, sqldb.ScopeTemporary: ScopeTemporary}

// StateRef names one state: the global one, that of a session, of a tree or of
// one of its tasks, or a temporary one.
type StateRef struct {
	Scope Scope `json:"scope"`
	// Session is the name of the session, for ScopeSession. For ScopeTree, where it
	// may be empty, reads continue there after the tree.
	Session string `json:"session_id,omitempty"`
	// Tree and Task are for ScopeTree. Task 0 is the tree's root, whose state is
	// that of the tree.
	Tree TreeID `json:"tree_id,omitempty"`
	Task TaskID `json:"task_id,omitempty"`
	// Name is for ScopeTemporary.
	Name string `json:"name,omitempty"`
}

// StateID identifies a state in its store: "state-" and 8 hexadecimal digits.
type StateID int64

// MutationID numbers the changes of all states of a store: "mut-" and 8
// hexadecimal digits.
type MutationID int64

// CheckpointID identifies a checkpoint: "ckpt-" and 8 hexadecimal digits. Checkpoints and
// mutations are numbered together, which shows their order.
type CheckpointID int64

const (
	statePrefix      = "state-"
	mutationPrefix   = "mut-"
	checkpointPrefix = "ckpt-"
)

func hexID(prefix string, n int64) string {
	digits := strconv.FormatInt(n, 16)
	return prefix + "00000000"[min(len(digits), 8):] + digits
}

func parseHexID(prefix, s string) (int64, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	n, err := strconv.ParseInt(digits, 16, 64)
	if !ok || err != nil || n <= 0 || hexID(prefix, n) != s {
		return 0, invalidf("parse ID", "%q is not of the form %s1a2b3c4d", s, prefix)
	}
	return n, nil
}

// String returns the written form.
func (id StateID) String() string { return hexID(statePrefix, int64(id)) }

// MarshalText writes the form of String.
func (id StateID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *StateID) UnmarshalText(b []byte) error {
	n, err := parseHexID(statePrefix, string(b))
	*id = StateID(n)
	return err
}

// String returns the written form.
func (id MutationID) String() string { return hexID(mutationPrefix, int64(id)) }

// MarshalText writes the form of String.
func (id MutationID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *MutationID) UnmarshalText(b []byte) error {
	n, err := parseHexID(mutationPrefix, string(b))
	*id = MutationID(n)
	return err
}

// String returns the written form.
func (id CheckpointID) String() string { return hexID(checkpointPrefix, int64(id)) }

// MarshalText writes the form of String.
func (id CheckpointID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *CheckpointID) UnmarshalText(b []byte) error {
	n, err := parseHexID(checkpointPrefix, string(b))
	*id = CheckpointID(n)
	return err
}

// StateInfo has the counters of a state.
type StateInfo struct {
	ID  StateID  `json:"state_id"`
	Ref StateRef `json:"ref"`
	// Foreign is the name of an imported state at its origin; set by
	// [Store.States] only.
	Foreign     string `json:"foreign_id,omitempty"`
	Variables   int64  `json:"variable_count"`
	Mutations   int64  `json:"mutation_count"`
	Checkpoints int64  `json:"checkpoint_count"`
	// Bytes sums the current values as JSON.
	Bytes     int64      `json:"total_size_bytes"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"last_updated_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// Limits of states.
const (
	// MaxVariables bounds the variables of one state.
	MaxVariables = 1000
	// MaxVariableName bounds a name, in characters.
	MaxVariableName = 128
	// MaxVariableBytes bounds a value as JSON.
	MaxVariableBytes = MaxResultBytes
	// MaxHistory bounds the entries in the history of a state; older mutations are
	// compacted into one entry with their number.
	MaxHistory = 10_000
	// MaxCheckpoints bounds the checkpoints of a state.
	MaxCheckpoints = 100
	// maxOwnerBytes bounds the names of sessions and temporary states.
	maxOwnerBytes = 256
	// TemporaryTTL is the default time to live of the variables of a temporary state,
	// and the shortest of such a state, which lives as long as its last variable.
	TemporaryTTL = 24 * time.Hour
	// compactEntries is the number of mutations that are compacted at once.
	compactEntries = 1000
)

// stateKey is a reference in the form used by the cache.
type stateKey struct {
	scope int64
	tree  TreeID
	task  TaskID
	owner string
}

func (r *StateRef) key(op string) (stateKey, error) {
	k := stateKey{}
	switch r.Scope {
	case ScopeGlobal:
		k.scope = sqldb.ScopeGlobal
	case ScopeSession:
		k.scope, k.owner = sqldb.ScopeSession, r.Session
	case ScopeTree:
		k.scope, k.tree, k.task = sqldb.ScopeTree, r.Tree, r.Task
	case ScopeTemporary:
		k.scope, k.owner = sqldb.ScopeTemporary, r.Name
	default:
		return k, invalidf(op, "scope %q is not one of global, session, tree, temporary", r.Scope)
	}
	switch {
	case k.scope == sqldb.ScopeTree && r.Tree == "":
		return k, invalidf(op, "scope \"tree\" needs a tree ID")
	case (k.scope == sqldb.ScopeSession || k.scope == sqldb.ScopeTemporary) &&
		(k.owner == "" || len(k.owner) > maxOwnerBytes || !storable(k.owner)):
		return k, invalidf(op, "scope %q needs a name of 1 to %d bytes of UTF-8 text", r.Scope, maxOwnerBytes)
	}
	return k, nil
}

// varState is the row of a state.
type varState struct {
	id, scope, tree, task int64
	owner                 string

	variables, mutations, entries, compacted, checkpoints int64

	createdAt, updatedAt int64
	expiresAt            *int64
	root                 int64 // the root of the tree
}

// payloads returns the number under which the state's long values are stored: the tree's,
// or a negative one for a state outside of trees.
func (st *varState) payloads() int64 {
	if st.tree != 0 {
		return st.tree
	}
	return -st.id
}

const (
	stateColumns = `id, scope, tree, task, owner, variables, mutations, entries, compacted, checkpoints, created_at, ` +
		`updated_at, expires_at`
	sqlState     = `SELECT ` + stateColumns + ` FROM state WHERE scope = $1 AND tree = $2 AND task = $3 AND owner = $4`
	sqlSaveState = `UPDATE state SET variables = $2, mutations = $3, entries = $4, compacted = $5, checkpoints = $6, updated_at = $7,
		expires_at = $8 WHERE id = $1`
	sqlTaskOfTree = `SELECT state FROM task_hot WHERE id = $1 AND tree = $2`
)

func (st *varState) dest() []any {
	return []any{&st.id, &st.scope, &st.tree, &st.task, &st.owner, &st.variables, &st.mutations, &st.entries,
		&st.compacted, &st.checkpoints, &st.createdAt, &st.updatedAt, &st.expiresAt}
}

// findState returns the state of a reference, without an ID if it was never written to. It
// fails if the tree or the task does not exist.
func (b *batch) findState(ctx context.Context, key stateKey) (*varState, error) {
	if st := b.cache.states[key]; st != nil {
		return st, nil
	}
	st, err := lookUpState(ctx, b.tx.QueryRow, key, b.flushTasks)
	if err != nil {
		return nil, err
	}
	if known := b.cache.states[st.keyOf(key)]; known != nil {
		st = known
	} else if known := b.states[st.id]; known != nil {
		st = known // changed in this transaction and removed from the cache since
	}
	if st.id != 0 {
		b.keepState(key, st)
	}
	return st, nil
}

// keepState caches a state under the requested key and the one that all references to it
// share: there must never be two copies of one row.
func (b *batch) keepState(key stateKey, st *varState) {
	if len(b.cache.states) >= maxCachedTrees {
		clear(b.cache.states)
	}
	b.cache.states[key] = st
	b.cache.states[st.keyOf(key)] = st
}

// keyOf returns the key with task 0 if the task is the root of the tree.
func (st *varState) keyOf(key stateKey) stateKey {
	if key.scope == sqldb.ScopeTree && st.task == st.root {
		key.task = 0
	}
	return key
}

// state reads the row of the state that a reference names.
func (s *Store) state(ctx context.Context, op string, ref *StateRef) (*varState, error) {
	key, err := ref.key(op)
	if err != nil {
		return nil, err
	}
	st, err := lookUpState(ctx, s.db.QueryRow, key, nil)
	return st, wrap(op, err)
}

// lookUpState reads a state. flush, when set, is called before tasks are read.
func lookUpState(ctx context.Context, query queryRow, key stateKey, flush func(context.Context) error) (*varState,
	error) {
	st := &varState{scope: key.scope, owner: key.owner, task: int64(key.task)}
	if key.scope == sqldb.ScopeTree {
		if err := query(ctx, sqlTreeRoot, []any{string(key.tree)}, &st.tree, &st.root); err != nil {
			return nil, orNotFound(err, noTree("find state", key.tree))
		}
		if st.task == 0 {
			st.task = st.root
		}
		if err := checkTask(ctx, query, st, flush); err != nil {
			return nil, err
		}
	}
	root := st.root
	err := query(ctx, sqlState, []any{st.scope, st.tree, st.task, st.owner}, st.dest()...)
	st.root = root
	return st, ignoreNoRows(err)
}

func checkTask(ctx context.Context, query queryRow, st *varState, flush func(context.Context) error) error {
	if st.task == st.root {
		return nil
	}
	if flush != nil {
		if err := flush(ctx); err != nil {
			return err
		}
	}
	var state int64
	err := query(ctx, sqlTaskOfTree, []any{st.task, st.tree}, &state)
	return orNotFound(err, notFoundf("find state", "the tree has no task %q", TaskID(st.task)))
}

// makeState creates the rows of a state that has none: its special variables and its first
// checkpoint are in it.
func (b *batch) makeState(ctx context.Context, key stateKey, st *varState) error {
	if st.id != 0 {
		return nil
	}
	b.newState(key, st, false)
	return b.flushNewStates(ctx)
}

// makeTreeState creates the state of a new tree, whose history so begins with the tree. It
// returns the fields of the event about the tree that name the state and have the digests of
// its variables, instead of events of their own.
func (b *batch) makeTreeState(id TreeID, tree, root int64) (fields string) {
	st := &varState{scope: sqldb.ScopeTree, tree: tree, task: root, root: root}
	digests := b.newState(stateKey{scope: sqldb.ScopeTree, tree: id}, st, true)
	return `,"state_id":"` + StateID(st.id).String() + `","prompt_digest":"` + digests[0] + `","final_digest":"` +
		digests[1] + `"`
}

// newState queues the rows of a state. It returns the digests of its special variables; quiet
// leaves out their events.
func (b *batch) newState(key stateKey, st *varState, quiet bool) (digests [2]string) {
	q := &b.cache.seq
	q.mutation++
	st.id, st.createdAt, st.updatedAt = q.mutation, b.now, b.now
	if key.scope == sqldb.ScopeTemporary {
		st.expiresAt = new(b.now + TemporaryTTL.Microseconds())
	}
	b.keepState(key, st)
	if key.scope == sqldb.ScopeTree {
		for i, name := range [...]string{VarPrompt, VarFinal} {
			q.mutation++
			v := specialRow(name)
			v.born, v.createdAt, v.updatedAt = q.mutation, b.now, b.now
			digests[i] = v.digest(&b.in.hasher)
			if !quiet {
				b.variableEvent(st, name, &mutationRow{id: v.born, operation: mutCreate}, `","digest":"`+digests[i])
			}
		}
		st.variables, st.mutations, st.entries = 2, 2, 2
	}
	q.mutation++
	st.checkpoints++
	b.addState(st)
	return digests
}

// promptSource is the source of the prompt.
const promptSource = "user_input"

// specialRow returns the first row of a special variable; specials inserts the same.
func specialRow(name string) *varRow {
	if name == VarPrompt {
		return &varRow{name: name, column: promptRef, kind: VarText, source: promptSource, readOnly: true}
	}
	return &varRow{name: name, column: "null", kind: VarNull, size: 4}
}

// touch marks the row of a state to be saved.
func (b *batch) touch(st *varState) {
	st.updatedAt = b.now
	b.states[st.id] = st
}

func (b *batch) flushStates(ctx context.Context) error {
	if err := b.flushVars(ctx); err != nil {
		return err
	}
	if len(b.states) > 0 {
		if err := b.flushAccesses(ctx); err != nil {
			return err
		}
	}
	for _, st := range b.states {
		_, err := b.tx.Exec(ctx, sqlSaveState, st.id, st.variables, st.mutations, st.entries, st.compacted, st.checkpoints,
			st.updatedAt, st.expiresAt)
		if err != nil {
			return err
		}
	}
	clear(b.states)
	return nil
}

const sqlStateBytes = `SELECT COALESCE(SUM(size), 0) FROM variable WHERE state = $1`

// State returns the counters of a state. A state that was never written to has no ID.
func (s *Store) State(ctx context.Context, ref StateRef) (StateInfo, error) {
	const op = "read state"
	st, err := s.state(ctx, op, &ref)
	if err != nil {
		return StateInfo{}, err
	}
	info := StateInfo{ID: StateID(st.id), Ref: ref, Variables: st.variables, Mutations: st.mutations,
		Checkpoints: st.checkpoints, CreatedAt: micros(st.createdAt), UpdatedAt: micros(st.updatedAt),
		ExpiresAt: timePtr(st.expiresAt)}
	if st.id != 0 {
		err = s.db.QueryRow(ctx, sqlStateBytes, []any{st.id}, &info.Bytes)
	}
	return info, wrap(op, err)
}
