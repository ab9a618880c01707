// Package outline reads the tasks of a large tree for views: pages of its outline,
// and a report of bounded size. It uses a few large queries instead of a list of
// tasks.
package outline

import (
	"context"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// labelRunes limits the part of a prompt that an outline shows, messageRunes
	// that of an error.
	labelRunes   = 120
	messageRunes = 300
	// columnBytes is how much of a column is read for that.
	columnBytes = 400
	// refMark begins a column that refers to its text.
	refMark = "\x01"
)

const (
	rowColumns = `t.id, t.parent, t.depth, t.position, SUBSTR(t.prompt, 1, 400), h.state, h.flags, h.attempt,
		COALESCE(h.session, 0), COALESCE(h.ready_at, 0), COALESCE(h.started_at, 0), COALESCE(h.claimed_at, 0), h.active_us,
		h.calls, h.input_tokens, h.output_tokens, h.cached_tokens, h.cost_micros, h.unpriced,
		COALESCE(e.error_kind, ''), SUBSTR(COALESCE(e.error, ''), 1, 400), COALESCE(e.ended_at, 0),
		(SELECT COUNT(*) FROM task c WHERE c.tree = t.tree AND c.parent = t.id)`
	rowTables = ` FROM task t JOIN task_hot h ON h.id = t.id LEFT JOIN task_end e ON e.id = t.id`

	sqlOutlineChildren = `SELECT ` + rowColumns + rowTables + `
		WHERE t.tree = $1 AND t.parent = $2 AND t.position >= $3 ORDER BY t.position LIMIT $4 + 0`
	sqlOutlineTask = `SELECT ` + rowColumns + rowTables + ` WHERE t.id = $2 AND t.tree = $1`
	// The sign keeps SQLite from reading and sorting a whole tree for a page:
	// it goes along the IDs.
	sqlOutlineMatches = `SELECT ` + rowColumns + rowTables + ` WHERE +t.tree = $1 AND t.id > $2`
)

// reader reads rows of one tree.
type reader struct {
	*perdure.ReadTx
	tree  int64 // the tree's number in the database
	now   int64 // the time of the transaction, in microseconds since 1970
	alive map[int64]bool
}

func newReader(ctx context.Context, tx *perdure.ReadTx, id perdure.TreeID) (*reader, error) {
	tree, err := tx.TreeKey(ctx, id)
	return &reader{ReadTx: tx, tree: tree, now: tx.Now().UnixMicro(), alive: make(map[int64]bool)}, err
}

// states returns the states by their number in the database.
func states() []perdure.State {
	return []perdure.State{sqldb.TaskQueued: perdure.Queued, sqldb.TaskRunning: perdure.Running,
		sqldb.TaskWaiting: perdure.Waiting, sqldb.TaskCompleted: perdure.Completed,
		sqldb.TaskFailed: perdure.Failed, sqldb.TaskCancelled: perdure.Cancelled}
}

func stateOf(n int64) perdure.State {
	if all := states(); n >= 0 && n < int64(len(all)) {
		return all[n]
	}
	return ""
}

func (r *reader) rows(ctx context.Context, q string, args ...any) ([]client.OutlineRow, error) {
	rows := []client.OutlineRow{}
	var sessions []int64
	err := perdure.EachRow(ctx, r, func(columns perdure.Row) error {
		var row client.OutlineRow
		var state, flags, session, ready, started, claimed, active, cost, ended int64
		var kind, message string
		err := columns.Scan((*int64)(&row.Task), (*int64)(&row.Parent), &row.Depth, &row.Position, &row.Label, &state, &flags,
			&row.Attempts,
			&session, &ready, &started, &claimed, &active, &row.Usage.Calls, &row.Usage.InputTokens, &row.Usage.OutputTokens,
			&row.Usage.CachedTokens, &cost, &row.Usage.UnpricedCalls, &kind, &message, &ended, &row.Children)
		row.State, row.Usage.CostUSD = stateOf(state), dollars(cost)
		row.Partial, row.Skipped = lacking(row.State, flags)
		row.StartedAt = instant(started)
		row.Blocked = row.State == perdure.Queued && ready == 0 && flags&sqldb.FlagStep != 0
		switch {
		case row.State.Terminal():
			row.CompletedAt = instant(ended)
		case session != 0:
			active += max(r.now-claimed, 0)
		}
		if kind != "" && row.State == perdure.Failed {
			row.Error = &perdure.TaskError{Kind: kind, Message: clip.Runes(message, messageRunes)}
		}
		row.ActiveMS = float64(active) / 1000
		rows, sessions = append(rows, row), append(sessions, session)
		return err
	}, q, args...)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].Lost, err = r.lost(ctx, sessions[i]); err != nil {
			return nil, err
		}
		if rows[i].Label, err = r.label(ctx, rows[i].Label); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// lost reports whether a task's session is dead. Each session is asked for once.
func (r *reader) lost(ctx context.Context, session int64) (bool, error) {
	if session == 0 {
		return false, nil
	}
	alive, known := r.alive[session]
	if !known {
		var err error
		if alive, err = r.SessionAlive(ctx, session); err != nil {
			return false, err
		}
		r.alive[session] = alive
	}
	return !alive, nil
}

// label makes one short line of the beginning of a prompt.
func (r *reader) label(ctx context.Context, column string) (string, error) {
	if strings.HasPrefix(column, refMark) {
		text, err := r.Text(ctx, r.tree, column)
		if err != nil {
			return "", err
		}
		column = text[:min(len(text), columnBytes)]
	}
	return clip.Runes(strings.ToValidUTF8(clip.OneLine(column), "\uFFFD"), labelRunes), nil
}

const microsPerDollar = 1e6

func dollars(micros int64) float64 { return float64(micros) / microsPerDollar }

func instant(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	t := time.UnixMicro(us).UTC()
	return &t
}

// lacking reports whether a completed task lacks parts, and whether it did not run.
func lacking(state perdure.State, flags int64) (partial, skipped bool) {
	done := state == perdure.Completed
	return done && flags&sqldb.FlagPartial != 0, done && flags&sqldb.FlagSkipped != 0
}
