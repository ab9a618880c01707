package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// promptRef is the column of a value that is the prompt of the state's own task.
const promptRef = refMark + "prompt"

const (
	// sqlInherited finds the variable in the nearest state of a task and its ancestors.
	sqlInherited = `WITH RECURSIVE up(task, level) AS (
			SELECT CAST($1 AS BIGINT), 0 UNION ALL SELECT h.parent, up.level + 1 FROM up JOIN task_hot h ON h.id = up.task WHERE h.parent <> 0)
		SELECT st.id, st.task FROM up CROSS JOIN state st CROSS JOIN variable v
		WHERE st.scope = ` + sqldb.SQLScopeTree + ` AND st.tree = $2 AND st.task = up.task AND st.owner = ''
			AND v.state = st.id AND v.name = $3 AND (v.expires_at IS NULL OR v.expires_at > $4)
		ORDER BY up.level LIMIT 1`
	sqlTaskPrompt = `SELECT tree, prompt, created_at FROM task WHERE id = $1`
)

// Var returns a variable. In the scope of a tree it reads the state of the task, then those
// of its ancestors, then that of the session if the reference names one, then the global
// state; prompt and Final are always the task's own. It fails with CodeNotFound if there is
// no such variable, or its time to live is over.
func (s *Store) Var(ctx context.Context, ref StateRef, name string) (Variable, error) {
	const op = "read variable"
	if err := checkName(op, name); err != nil {
		return Variable{}, err
	}
	st, err := s.state(ctx, op, &ref)
	if err != nil {
		return Variable{}, err
	}
	now, err := s.db.Now(ctx)
	if err != nil {
		return Variable{}, wrap(op, err)
	}
	switch {
	case st.scope != sqldb.ScopeTree:
		return s.ownVar(ctx, st, name, now)
	case name == VarPrompt || name == VarFinal:
		return s.special(ctx, st, name, now)
	}
	v, err := s.inherited(ctx, st, name, now)
	if errors.Is(err, ErrNotFound) && ref.Session != "" {
		v, err = s.Var(ctx, StateRef{Scope: ScopeSession, Session: ref.Session}, name)
	}
	if errors.Is(err, ErrNotFound) {
		v, err = s.Var(ctx, StateRef{Scope: ScopeGlobal}, name)
	}
	return v, err
}

// special reads a variable that every task has.
func (s *Store) special(ctx context.Context, st *varState, name string, now int64) (v Variable, err error) {
	if st.id == 0 {
		v, err = s.unwritten(ctx, st, name)
	} else {
		v, err = s.ownVar(ctx, st, name, now)
	}
	if err != nil || name != VarFinal {
		return v, err
	}
	return v, s.finalOf(ctx, &v)
}

const sqlCompletion = `SELECT h.tree, e.result, e.ended_at FROM task_hot h JOIN task_end e ON e.id = h.id WHERE ` +
	`h.id = $1 AND h.state = ` + dbCompleted

// finalOf sets Final to the result of a task that completed without setting it, so that
// Final is null only until the work is done.
func (s *Store) finalOf(ctx context.Context, v *Variable) error {
	if string(v.Value) != "null" {
		return nil
	}
	var tree, at int64
	var column string
	if err := s.db.QueryRow(ctx, sqlCompletion, []any{int64(v.Task)}, &tree, &column, &at); err != nil {
		return wrap("read variable", ignoreNoRows(err))
	}
	text, err := s.load(ctx, tree, column)
	if err != nil {
		return err
	}
	if v.Value, err = json.Marshal(text); err != nil {
		return wrap("read variable", err)
	}
	v.Type, v.Size, v.Source, v.UpdatedAt = VarText, int64(len(v.Value)), v.Task.String(), micros(at)
	return nil
}

func (s *Store) inherited(ctx context.Context, st *varState, name string, now int64) (Variable, error) {
	found := *st
	err := s.db.QueryRow(ctx, sqlInherited, []any{st.task, st.tree, name, now}, &found.id, &found.task)
	if err != nil {
		return Variable{}, wrap("read variable", orNotFound(err, noVar("read variable", name)))
	}
	return s.ownVar(ctx, &found, name, now)
}

func noVar(op, name string) *Error { return notFoundf(op, "there is no variable %q", name) }

// ownVar reads a variable of one state, and counts the access.
func (s *Store) ownVar(ctx context.Context, st *varState, name string, now int64) (Variable, error) {
	const op = "read variable"
	var row varRow
	err := s.db.QueryRow(ctx, sqlVar, []any{st.id, name}, row.dest()...)
	if err == nil && row.expiresAt != nil && *row.expiresAt <= now {
		err = sql.ErrNoRows
	}
	if err != nil {
		return Variable{}, wrap(op, orNotFound(err, noVar(op, name)))
	}
	v := row.variable(st.scope, st)
	v.Accessed += s.accesses.add(stateVar{st.id, name})
	v.Value, err = s.varValue(ctx, st, row.column)
	v.Size = int64(len(v.Value))
	return v, err
}

// varValue returns the JSON that a column holds or refers to.
func (s *Store) varValue(ctx context.Context, st *varState, column string) (json.RawMessage, error) {
	if column != promptRef {
		text, err := s.load(ctx, st.payloads(), column)
		return json.RawMessage(text), err
	}
	var tree, at int64
	if err := s.db.QueryRow(ctx, sqlTaskPrompt, []any{st.task}, &tree, &column, &at); err != nil {
		return nil, wrap("read prompt", err)
	}
	text, err := s.load(ctx, tree, column)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(text)
	return raw, wrap("read prompt", err)
}

// unwritten returns a special variable of a state that was never written to.
func (s *Store) unwritten(ctx context.Context, st *varState, name string) (Variable, error) {
	var tree, at int64
	var column string
	if err := s.db.QueryRow(ctx, sqlTaskPrompt, []any{st.task}, &tree, &column, &at); err != nil {
		return Variable{}, wrap("read variable", err)
	}
	row := specialRow(name)
	row.createdAt, row.updatedAt = at, at
	v := row.variable(sqldb.ScopeTree, st)
	var err error
	v.Value, err = s.varValue(ctx, st, row.column)
	v.Size = int64(len(v.Value))
	return v, err
}

// VarFilter selects variables of a state.
type VarFilter struct {
	// After continues a listing after this name; Limit bounds the page, 0
	// means 100, the most is 1,000.
	After string
	Limit int
}

const sqlVars = `SELECT ` + varColumns +
	` FROM variable WHERE state = $1 AND name > $2 AND (expires_at IS NULL OR expires_at > $3)
	ORDER BY name LIMIT $4 + 0`

// Vars lists the variables of one state by name, without those it inherits and
// without values that are longer than MaxInlineBytes.
func (s *Store) Vars(ctx context.Context, ref StateRef, f VarFilter) ([]Variable, error) {
	const op = "list variables"
	st, err := s.state(ctx, op, &ref)
	if err != nil {
		return nil, err
	}
	if st.id == 0 {
		return s.unwrittenVars(ctx, st, f.After)
	}
	now, err := s.db.Now(ctx)
	if err != nil {
		return nil, wrap(op, err)
	}
	rows, err := sqldb.Collect(ctx, s.db.Query, scanVar, sqlVars, st.id, f.After, now, pageLimit(f.Limit))
	if err != nil {
		return nil, wrap(op, err)
	}
	list := make([]Variable, len(rows))
	for i := range rows {
		list[i] = rows[i].variable(st.scope, st)
		if err := s.listValue(ctx, st, &list[i], rows[i].column); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func scanVar(scan sqldb.Scan) (v varRow, err error) {
	err = scan(v.dest()...)
	return v, err
}

func (s *Store) unwrittenVars(ctx context.Context, st *varState, after string) ([]Variable, error) {
	list := []Variable{}
	if st.scope != sqldb.ScopeTree {
		return list, nil
	}
	for _, name := range []string{VarFinal, VarPrompt} {
		if name <= after {
			continue
		}
		v, err := s.special(ctx, st, name, 0)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (s *Store) listValue(ctx context.Context, st *varState, v *Variable, column string) (err error) {
	if v.Size > MaxInlineBytes {
		return nil
	}
	v.Accessed += s.accesses.pending(stateVar{st.id, v.Name})
	if v.Value, err = s.varValue(ctx, st, column); err != nil {
		return err
	}
	v.Size = int64(len(v.Value))
	if v.Name == VarFinal && st.scope == sqldb.ScopeTree {
		return s.finalOf(ctx, v)
	}
	return nil
}

// maxPendingAccesses bounds the counts that were not written yet; more reads are not
// counted.
const maxPendingAccesses = 10_000

// accesses counts reads until the next transaction that changes variables.
type accesses struct {
	mu     sync.Mutex // guards counts
	counts map[stateVar]int64
}

func (a *accesses) add(key stateVar) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = make(map[stateVar]int64)
	}
	if len(a.counts) < maxPendingAccesses || a.counts[key] > 0 {
		a.counts[key]++
	}
	return a.counts[key]
}

func (a *accesses) pending(key stateVar) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[key]
}

// take removes and returns what is counted.
func (a *accesses) take() map[stateVar]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := a.counts
	a.counts = nil
	return counts
}

const sqlCountAccess = `UPDATE variable SET accessed = accessed + $3 WHERE state = $1 AND name = $2`

// flushAccesses writes the counts in a transaction that changes variables anyway. If it
// fails they are lost, because they are approximate.
func (b *batch) flushAccesses(ctx context.Context) error {
	for key, n := range b.s.accesses.take() {
		if _, err := b.tx.Exec(ctx, sqlCountAccess, key.state, key.name, n); err != nil {
			return err
		}
		if v := b.cache.vars[key]; v != nil {
			counted := *v
			counted.accessed += n
			b.cache.vars[key] = &counted
		}
	}
	return nil
}
