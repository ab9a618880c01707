package perdure

import (
	"context"
	"database/sql"
	"errors"
)

// stateVar names a variable.
type stateVar struct {
	state int64
	name  string
}

// varWrites is what a transaction is going to write about variables. Rows that
// are only added are written together, and of the values that a variable has
// within one transaction only the last becomes its row.
type varWrites struct {
	rows      map[stateVar]*varRow // nil: removed
	order     []stateVar
	past      []any
	mutations []any
}

// maxCachedVars and maxCachedVarBytes bound the memory of variables that are
// remembered between transactions.
const (
	maxCachedVars     = 4096
	maxCachedVarBytes = 1024
)

const (
	varColumns = `name, born, value, size, type, description, source, read_only, ttl, accessed, created_at, updated_at,` +
		` expires_at`
	sqlVar  = `SELECT ` + varColumns + ` FROM variable WHERE state = $1 AND name = $2`
	headVar = `INSERT INTO variable (state, ` + varColumns + `)`
	tailVar = `ON CONFLICT (state, name) DO UPDATE SET born = excluded.born, value = excluded.value, size = excluded.size, type = excluded.type,
		description = excluded.description, source = excluded.source, read_only = excluded.read_only, ttl = excluded.ttl,
		accessed = excluded.accessed, created_at = excluded.created_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at`
	headPast     = `INSERT INTO variable_past (state, dead, ` + varColumns + `)`
	headMutation = `INSERT INTO mutation (state, id, operation, name, before, detail, source, reason, task, at)`
	sqlDeleteVar = `DELETE FROM variable WHERE state = $1 AND name = $2`
)

func (v *varRow) dest() []any {
	return []any{&v.name, &v.born, &v.column, &v.size, (*string)(&v.kind), &v.description, &v.source, &v.readOnly,
		&v.ttl, &v.accessed,
		&v.createdAt, &v.updatedAt, &v.expiresAt}
}

func (v *varRow) appendTo(args []any) []any {
	return append(args, v.name, v.born, v.column, v.size, string(v.kind), v.description, v.source, boolInt(v.readOnly),
		v.ttl, v.accessed,
		v.createdAt, v.updatedAt, v.expiresAt)
}

// current returns a variable as it is, nil when there is none. One whose time
// is over is there for the row only. Who wants to change it changes a copy.
func (b *batch) current(ctx context.Context, st *varState, name string) (v *varRow, expired bool, err error) {
	if st.id == 0 {
		return nil, false, nil
	}
	key := stateVar{st.id, name}
	v, known := b.vars.rows[key]
	if !known {
		v, known = b.cache.vars[key]
	}
	if !known {
		v = &varRow{}
		err = b.tx.QueryRow(ctx, sqlVar, []any{st.id, name}, v.dest()...)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		b.rememberVar(key, v)
	}
	return v, v != nil && v.expiresAt != nil && *v.expiresAt <= b.now, nil
}

func (b *batch) rememberVar(key stateVar, v *varRow) {
	c := b.cache
	if v == nil || len(v.column) > maxCachedVarBytes {
		delete(c.vars, key)
		return
	}
	if c.vars == nil || len(c.vars) >= maxCachedVars {
		c.vars = make(map[stateVar]*varRow)
	}
	c.vars[key] = v
}

// writeVar makes v the row of a variable when the transaction is written; nil
// removes it.
func (b *batch) writeVar(st *varState, name string, v *varRow) {
	key := stateVar{st.id, name}
	if b.vars.rows == nil {
		b.vars.rows = make(map[stateVar]*varRow)
	}
	if _, known := b.vars.rows[key]; !known {
		b.vars.order = append(b.vars.order, key)
	}
	b.vars.rows[key] = v
	b.rememberVar(key, v)
}

// flushVars writes what is outstanding. Whatever reads or changes the rows of
// variables and their history by itself calls it first.
func (b *batch) flushVars(ctx context.Context) error {
	w := &b.vars
	if err := b.in.mutations.Exec(ctx, b.tx, w.mutations); err != nil {
		return err
	}
	if err := b.in.past.Exec(ctx, b.tx, w.past); err != nil {
		return err
	}
	var args []any
	for _, key := range w.order {
		if v := w.rows[key]; v != nil {
			args = v.appendTo(append(args, key.state))
			continue
		}
		if _, err := b.tx.Exec(ctx, sqlDeleteVar, key.state, key.name); err != nil {
			return err
		}
	}
	w.mutations, w.past, w.order = w.mutations[:0], w.past[:0], w.order[:0]
	clear(w.rows)
	return b.in.vars.Exec(ctx, b.tx, args)
}

// forgetVars is for operations that change rows of variables by themselves.
func (b *batch) forgetVars(ctx context.Context) error {
	clear(b.cache.vars)
	return b.flushVars(ctx)
}
