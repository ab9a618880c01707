package perdure

import "context"

// stateVar names a variable.
type stateVar struct {
	state int64
	name  string
}

// varWrites are the pending rows of variables in a transaction. New rows are inserted
// together, and of the values of a variable within one transaction only the last becomes
// its row.
type varWrites struct {
	rows      map[stateVar]*varRow // nil: removed
	order     []stateVar
	past      []any
	mutations []any
}

// maxCachedVars and maxCachedVarBytes bound the variables cached between transactions.
const (
	maxCachedVars     = 4096
	maxCachedVarBytes = 1024
)

const (
	varColumns = `name, born, value, size, type, description, source, read_only, ttl, accessed, created_at,
		updated_at, expires_at`
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
		&v.ttl, &v.accessed, &v.createdAt, &v.updatedAt, &v.expiresAt}
}

func (v *varRow) appendTo(args []any) []any {
	return append(args, v.name, v.born, v.column, v.size, string(v.kind), v.description, v.source, boolInt(v.readOnly),
		v.ttl, v.accessed, v.createdAt, v.updatedAt, v.expiresAt)
}

// current returns the row of a variable, nil if there is none, and whether its time to live
// is over. Callers must not change the row.
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
		if err = b.tx.QueryRow(ctx, sqlVar, []any{st.id, name}, v.dest()...); err != nil {
			return nil, false, ignoreNoRows(err)
		}
		b.cacheVar(key, v)
	}
	return v, v != nil && v.expiresAt != nil && *v.expiresAt <= b.now, nil
}

func (b *batch) cacheVar(key stateVar, v *varRow) {
	vars := b.cache.vars
	if v == nil || len(v.column) > maxCachedVarBytes {
		delete(vars, key)
		return
	}
	if len(vars) >= maxCachedVars {
		clear(vars)
	}
	vars[key] = v
}

// writeVar makes v the row of a variable when the pending rows are written; nil removes the
// variable.
func (b *batch) writeVar(st *varState, name string, v *varRow) {
	key := stateVar{st.id, name}
	if _, known := b.vars.rows[key]; !known {
		b.vars.order = append(b.vars.order, key)
	}
	b.vars.rows[key] = v
	b.cacheVar(key, v)
}

// flushVars writes the pending rows. Operations that read or change the rows of variables
// and their history with own statements call it first.
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

// forgetVars prepares for operations that change rows of variables with own statements.
func (b *batch) forgetVars(ctx context.Context) error {
	clear(b.cache.vars)
	return b.flushVars(ctx)
}
