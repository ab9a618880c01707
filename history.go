package perdure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Mutation is an entry of a state's history.
type Mutation struct {
	ID MutationID `json:"mutation_id"`
	// Operation is create, update, delete, rename or rollback; or compacted for the
	// oldest mutations, whose number is Count.
	Operation string `json:"operation"`
	Name      string `json:"variable_name"`
	// To is the new name of a rename, the checkpoint or mutation of a rollback.
	To    string `json:"to,omitempty"`
	Count int64  `json:"count,omitempty"`
	// Old and New are the values before and after; nil if there was none, if it is no
	// longer stored, or if it is longer than MaxInlineBytes. OldSize and NewSize are
	// their lengths.
	Old     json.RawMessage `json:"old_value,omitempty"`
	New     json.RawMessage `json:"new_value,omitempty"`
	OldSize int64           `json:"old_size,omitempty"`
	NewSize int64           `json:"new_size,omitempty"`
	Source  string          `json:"source,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Task    TaskID          `json:"task_id,omitempty"`
	Time    time.Time       `json:"timestamp"`
}

// HistoryFilter selects mutations.
type HistoryFilter struct {
	// Name, when set, selects one variable.
	Name string
	// Before continues a listing; 0 begins with the newest.
	Before MutationID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

const (
	// sqlHistory returns the value after a mutation only if it is the current one;
	// valuesAfter finds past ones.
	sqlHistory = `SELECT m.id, m.operation, m.name, m.detail, m.source, m.reason, m.task, m.at,
			COALESCE(o.value, ''), COALESCE(o.size, 0), COALESCE(n.value, ''), COALESCE(n.size, 0)
		FROM mutation m
		LEFT JOIN variable_past o ON o.state = m.state AND o.dead = m.id AND o.name = m.name
		LEFT JOIN variable n ON n.state = m.state AND n.name = CASE WHEN m.operation = '` + mutRename + `' THEN m.detail ELSE m.name END AND n.born = m.id
		WHERE m.state = $1 AND m.id < $2 AND ($3 = '' OR m.name = $4 OR m.operation = '` + mutRename + `' AND m.detail = $5)
		ORDER BY m.id DESC LIMIT $6 + 0`
	sqlDiedAfter = `SELECT dead, name, born FROM variable_past WHERE state = $1 AND dead > $2 AND born BETWEEN $2 AND $3 ORDER BY dead`
	sqlDied      = `SELECT value, size FROM variable_past WHERE state = $1 AND dead = $2 AND name = $3`
)

// History lists the mutations of a state, the newest first.
func (s *Store) History(ctx context.Context, ref StateRef, f HistoryFilter) ([]Mutation, error) {
	const op = "list history"
	st, err := s.state(ctx, op, &ref)
	if err != nil {
		return nil, err
	}
	list := []Mutation{}
	var columns [][2]string
	err = sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var m Mutation
		var at int64
		var col [2]string
		err := scan((*int64)(&m.ID), &m.Operation, &m.Name, &m.To, &m.Source, &m.Reason, (*int64)(&m.Task), &at,
			&col[0], &m.OldSize, &col[1], &m.NewSize)
		m.Time = micros(at)
		list, columns = append(list, m), append(columns, col)
		return err
	}, sqlHistory, st.id, cmp.Or(int64(f.Before), math.MaxInt64), f.Name, f.Name, f.Name, pageLimit(f.Limit))
	if err != nil {
		return nil, wrap(op, err)
	}
	if err := s.valuesAfter(ctx, st, list, columns); err != nil {
		return nil, wrap(op, err)
	}
	for i := range list {
		if err := s.mutationValues(ctx, st, &list[i], columns[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// valuesAfter finds the values after mutations, newest first, that were replaced since.
// Past values are ordered by the mutation that replaced them, which usually comes soon
// after the one that set them, so a scan from the oldest mutation finds them.
func (s *Store) valuesAfter(ctx context.Context, st *varState, list []Mutation, columns [][2]string) error {
	missing := make(map[stateVar]int) // by the mutation that set the value, and its name
	oldest, newest := int64(0), int64(0)
	for i := range list {
		m := &list[i]
		sets := m.Operation == mutCreate || m.Operation == mutUpdate || m.Operation == mutRename
		if !sets || columns[i][1] != "" {
			continue
		}
		key := stateVar{int64(m.ID), m.Name}
		if m.Operation == mutRename {
			key.name = m.To
		}
		missing[key] = i
		if oldest = int64(m.ID); newest == 0 {
			newest = oldest
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found := make(map[int]stateVar, len(missing)) // by the index in the list
	errAll := errors.New("all are found")
	err := sqldb.Each(ctx, s.db.Query, func(scan sqldb.Scan) error {
		var dead, born int64
		var name string
		if err := scan(&dead, &name, &born); err != nil {
			return err
		}
		if i, ok := missing[stateVar{born, name}]; ok {
			found[i] = stateVar{dead, name}
		}
		if len(found) == len(missing) {
			return errAll
		}
		return nil
	}, sqlDiedAfter, st.id, oldest, newest)
	if err != nil && !errors.Is(err, errAll) {
		return err
	}
	for i, at := range found {
		err := s.db.QueryRow(ctx, sqlDied, []any{st.id, at.state, at.name}, &columns[i][1], &list[i].NewSize)
		if ignoreNoRows(err) != nil {
			return err
		}
	}
	return nil
}

func (s *Store) mutationValues(ctx context.Context, st *varState, m *Mutation, columns [2]string) (err error) {
	switch m.Operation {
	case mutCompacted:
		m.Count, err = strconv.ParseInt(m.To, 10, 64)
		m.To = ""
		return err
	case mutUpdate, mutCreate, mutDelete:
		m.To = "" // the operand of an increment or append, for undoing it
	}
	if m.Old, err = s.shortValue(ctx, st, columns[0], m.OldSize); err == nil {
		m.New, err = s.shortValue(ctx, st, columns[1], m.NewSize)
	}
	return err
}

const (
	sqlCutAt      = `SELECT id FROM mutation WHERE state = $1 ORDER BY id LIMIT 1 OFFSET $2 + 0`
	sqlCutHistory = `DELETE FROM mutation WHERE state = $1 AND id <= $2`
	sqlDropPast   = `DELETE FROM variable_past WHERE state = $1 AND dead <= $2 AND NOT EXISTS (SELECT 1 FROM checkpoint c
		WHERE c.state IN ($1, $3) AND c.id >= born AND c.id < dead)`
	sqlRootState = `SELECT id FROM state WHERE scope = ` + sqldb.SQLScopeTree + ` AND tree = $1
		AND task = (SELECT root FROM tree WHERE id = $1) AND owner = ''`
)

// compact replaces the oldest entries of a history that became too long by one, and
// removes past values that no checkpoint and no other entry needs.
func (b *batch) compact(ctx context.Context, st *varState) error {
	if err := b.flushVars(ctx); err != nil {
		return err
	}
	var cut int64
	if err := b.tx.QueryRow(ctx, sqlCutAt, []any{st.id, compactEntries - 1}, &cut); err != nil {
		return err
	}
	if _, err := b.tx.Exec(ctx, sqlCutHistory, st.id, cut); err != nil {
		return err
	}
	st.entries -= compactEntries - 1
	st.compacted = cut
	removed := itoa(st.mutations - st.entries + 1)
	b.appendMutation(st, "", 0, &mutationRow{id: cut, operation: mutCompacted, detail: removed})
	return b.dropPast(ctx, st, cut)
}

// dropPast removes values that were replaced up to a mutation and that no checkpoint of
// the state or of its tree needs.
func (b *batch) dropPast(ctx context.Context, st *varState, until int64) error {
	root := st.id
	if st.tree != 0 {
		if err := b.tx.QueryRow(ctx, sqlRootState, []any{st.tree}, &root); ignoreNoRows(err) != nil {
			return err
		}
	}
	_, err := b.tx.Exec(ctx, sqlDropPast, st.id, until, root)
	return err
}
