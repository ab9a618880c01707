package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Changes of variables by a task become final when it completes, waits for children or
// saves a checkpoint. If it is run again before that, because its process died, it was
// stopped or its attempt failed, its changes are undone first, so that increments and
// appends are not applied twice. A change is not undone if the variable was changed again
// since, except increments, which are subtracted, and appends, whose element is removed.

const (
	sqlTaskVars = `SELECT since, states FROM task_vars WHERE task = $1`
	sqlNoteVars = `INSERT INTO task_vars (task, since, states) VALUES ($1, $2, $3)
		ON CONFLICT (task) DO UPDATE SET states = excluded.states`
	sqlSettleVars = `DELETE FROM task_vars WHERE task = $1`
	sqlFlagVars   = `UPDATE task_hot SET flags = $2 WHERE id = $1`
	sqlDoneByTask = `SELECT id, operation, name, before, detail FROM mutation
		WHERE state = $1 AND id > $2 AND task = $3 ORDER BY id DESC`
	sqlPastVar = `SELECT ` + varColumns +
		` FROM variable_past WHERE state = $1 AND dead > $3 AND name = $2 AND born = $3 ORDER BY dead LIMIT 1`
	sqlStateByID = `SELECT ` + stateColumns + ` FROM state WHERE id = $1`
)

// noteVars records that the lease is about to change a state.
func (b *batch) noteVars(ctx context.Context, l *Lease, st *varState) error {
	var since int64
	var states string
	err := b.tx.QueryRow(ctx, sqlTaskVars, []any{int64(l.Task.ID)}, &since, &states)
	if errors.Is(err, sql.ErrNoRows) {
		since, err = b.cache.seq.mutation, nil
		if l.flags&sqldb.FlagVars == 0 {
			if _, err := b.tx.Exec(ctx, sqlFlagVars, int64(l.Task.ID), l.flags|sqldb.FlagVars); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	l.vars.Store(true)
	list := slices.DeleteFunc(strings.Split(states, ","), func(id string) bool { return id == "" })
	if slices.Contains(list, itoa(st.id)) {
		return nil
	}
	_, err = b.tx.Exec(ctx, sqlNoteVars, int64(l.Task.ID), since, strings.Join(append(list, itoa(st.id)), ","))
	return err
}

// settleVars makes the changes of the lease final.
func (b *batch) settleVars(ctx context.Context, l *Lease) error {
	if !l.vars.Load() && l.flags&sqldb.FlagVars == 0 {
		return nil
	}
	_, err := b.tx.Exec(ctx, sqlSettleVars, int64(l.Task.ID))
	return err
}

// undoVars undoes the changes of a task that did not become final.
func (b *batch) undoVars(ctx context.Context, task int64) error {
	var since int64
	var states string
	err := b.tx.QueryRow(ctx, sqlTaskVars, []any{task}, &since, &states)
	if err != nil {
		return ignoreNoRows(err)
	}
	if err := b.flushStates(ctx); err != nil {
		return err
	}
	clear(b.cache.states) // states are changed by their IDs below
	for part := range strings.SplitSeq(states, ",") {
		id, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return err
		}
		if err := b.undoState(ctx, id, since, task); err != nil {
			return err
		}
	}
	if _, err := b.tx.Exec(ctx, sqlSettleVars, task); err != nil {
		return err
	}
	return b.flushStates(ctx)
}

// undoneAs: undoing set the value of the mutation "as" again, with the mutation "born".
type undoneAs struct{ born, as int64 }

type doneMutation struct {
	id, before              int64
	operation, name, detail string
}

func (b *batch) undoState(ctx context.Context, id, since, task int64) error {
	st := &varState{}
	if err := b.tx.QueryRow(ctx, sqlStateByID, []any{id}, st.dest()...); err != nil {
		return ignoreNoRows(err) // a temporary state that was removed
	}
	list, err := sqldb.Collect(ctx, b.tx.Query, func(scan sqldb.Scan) (m doneMutation, err error) {
		err = scan(&m.id, &m.operation, &m.name, &m.before, &m.detail)
		return m, err
	}, sqlDoneByTask, id, since, task)
	if err != nil {
		return err
	}
	undone := make(map[string]undoneAs)
	for i := range list {
		if err := b.undoMutation(ctx, st, &list[i], undone); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) undoMutation(ctx context.Context, st *varState, m *doneMutation, undone map[string]undoneAs) error {
	name := m.name
	if m.operation == mutRename {
		name = m.detail
	}
	cur, _, err := b.current(ctx, st, name)
	if err != nil {
		return err
	}
	undo := &mutationRow{operation: mutUpdate, source: "rerun", reason: "undoes " + MutationID(m.id).String()}
	own := cur != nil && (cur.born == m.id || undone[name] == undoneAs{cur.born, m.id})
	by, isIncr := strings.CutPrefix(m.detail, "incr ")
	switch {
	case m.operation == mutDelete:
		own = cur == nil
	case isIncr && cur != nil && !own:
		return b.takeBack(ctx, st, cur, by, undo)
	case m.detail == "append" && cur != nil && !own:
		return b.takeOut(ctx, st, m, cur, undo)
	}
	if !own {
		return nil // changed again since
	}
	if err := b.restore(ctx, st, m, cur, undo); err != nil {
		return err
	}
	undone[m.name] = undoneAs{undo.id, m.before}
	return nil
}

// restore sets the value before the last mutation again.
func (b *batch) restore(ctx context.Context, st *varState, m *doneMutation, cur *varRow, undo *mutationRow) error {
	if m.operation == mutRename || m.before == 0 {
		undo.operation = mutDelete
		if err := b.dropVar(ctx, st, cur, undo); err != nil || m.before == 0 {
			return err
		}
		undo = &mutationRow{operation: mutCreate, source: undo.source, reason: undo.reason}
	}
	old := &varRow{}
	if err := b.tx.QueryRow(ctx, sqlPastVar, []any{st.id, m.name, m.before}, old.dest()...); err != nil {
		return ignoreNoRows(err) // compacted
	}
	if cur == nil {
		undo.operation = mutCreate
	}
	return b.putVar(ctx, st, old, undo)
}

// takeBack subtracts an increment of a variable that was changed again since.
func (b *batch) takeBack(ctx context.Context, st *varState, cur *varRow, by string, undo *mutationRow) error {
	text, err := b.oldText(ctx, st, cur)
	if err != nil || typeOf(text) != VarNumber {
		return ignoreRefusal(err)
	}
	negative := "-" + by
	if rest, ok := strings.CutPrefix(by, "-"); ok {
		negative = rest
	}
	c := &varChange{by: json.Number(negative)}
	sum, err := c.sum(text)
	if err != nil {
		return ignoreRefusal(err)
	}
	undo.detail = "incr " + negative
	return b.putText(ctx, st, cur, sum, undo)
}

// takeOut removes the element that an append added.
func (b *batch) takeOut(ctx context.Context, st *varState, m *doneMutation, cur *varRow, undo *mutationRow) error {
	after := &varRow{}
	if err := b.tx.QueryRow(ctx, sqlPastVar, []any{st.id, m.name, m.id}, after.dest()...); err != nil {
		return ignoreNoRows(err)
	}
	var was, is []json.RawMessage
	for row, list := range map[*varRow]*[]json.RawMessage{after: &was, cur: &is} {
		text, err := b.oldText(ctx, st, row)
		if err != nil || json.Unmarshal([]byte(text), list) != nil {
			return ignoreRefusal(err)
		}
	}
	if len(was) == 0 {
		return nil
	}
	for i := len(is) - 1; i >= 0; i-- {
		if string(is[i]) == string(was[len(was)-1]) {
			raw, err := json.Marshal(append(is[:i:i], is[i+1:]...))
			if err != nil {
				return err
			}
			return b.putText(ctx, st, cur, string(raw), undo)
		}
	}
	return nil
}

func (b *batch) putText(ctx context.Context, st *varState, cur *varRow, text string, m *mutationRow) error {
	v, err := b.s.storedRow(text)
	if err != nil {
		return err
	}
	if err := b.keepValue(ctx, st.payloads(), v); err != nil {
		return err
	}
	next := *cur
	next.column, next.size = v.column, int64(len(text))
	return b.putVar(ctx, st, &next, m)
}

// ignoreRefusal ignores the error of a value that cannot be changed.
func ignoreRefusal(err error) error {
	if _, refused := errors.AsType[*Error](err); refused {
		return nil
	}
	return err
}
