package outline

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Outline returns the rows that q selects; its limit is at least 1. Upper and lower case
// of ASCII letters are the same in its text.
func Outline(ctx context.Context, tx *perdure.ReadTx, q *client.OutlineQuery) ([]client.OutlineRow, error) {
	r, err := newReader(ctx, tx, q.Tree)
	switch {
	case err != nil:
		return nil, err
	case len(q.Tasks) > 0:
		return r.tasks(ctx, q.Tasks)
	case q.All || len(q.States) > 0 || q.Text != "":
		return r.matches(ctx, q)
	}
	return r.rows(ctx, sqlOutlineChildren, r.tree, int64(q.Parent), q.From, q.Limit)
}

func (r *reader) tasks(ctx context.Context, ids []perdure.TaskID) ([]client.OutlineRow, error) {
	rows := make([]client.OutlineRow, 0, len(ids))
	for _, id := range ids {
		found, err := r.rows(ctx, sqlOutlineTask, r.tree, int64(id))
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

func (r *reader) matches(ctx context.Context, q *client.OutlineQuery) ([]client.OutlineRow, error) {
	text, args := sqlOutlineMatches, []any{r.tree, int64(q.After)}
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	if q.After == 0 {
		first, err := r.first(ctx)
		if err != nil {
			return nil, err
		}
		args[1] = first - 1
	}
	if len(q.States) > 0 {
		marks := make([]string, len(q.States))
		for i, state := range q.States {
			marks[i] = arg(slices.Index(states(), state))
		}
		text += " AND h.state IN (" + strings.Join(marks, ", ") + ")"
	}
	if q.Text != "" {
		like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(q.Text)) + "%"
		text += " AND (LOWER(t.prompt) LIKE " + arg(like) + ` ESCAPE '\'`
		if id, err := perdure.ParseTaskID(strings.TrimSpace(q.Text)); err == nil {
			text += " OR t.id = " + arg(int64(id))
		}
		text += ")"
	}
	text += " ORDER BY t.id LIMIT " + arg(q.Limit) + " + 0"
	return r.rows(ctx, text, args...)
}

const sqlOutlineRoot = `SELECT root FROM tree WHERE id = $1`

func (r *reader) first(ctx context.Context) (int64, error) {
	var first int64
	err := r.QueryRow(ctx, sqlOutlineRoot, r.tree).Scan(&first)
	return first, err
}

const (
	sqlOutlineTail = `SELECT e.seq FROM event_block k
		JOIN event e ON ` + sqldb.SQLEventsOfBlock + `
		WHERE k.tree = $1 AND k.block >= $2 / ` + sqldb.SQLEventBlock +
		` AND e.seq > $2 ORDER BY k.block DESC, e.seq DESC LIMIT 1 OFFSET $3 + 0`
	sqlOutlineCall = `SELECT model, started_at FROM call WHERE task = $1 AND state = ` + sqldb.SQLCallStarted +
		` ORDER BY id DESC LIMIT 1`
)

// Tail returns the number behind which the newest events of the tree are, at
// most so many; not below after.
func Tail(ctx context.Context, tx *perdure.ReadTx, tree perdure.TreeID, after int64, newest int) (int64, error) {
	key, err := tx.TreeKey(ctx, tree)
	if err != nil {
		return after, err
	}
	err = tx.QueryRow(ctx, sqlOutlineTail, key, after, newest).Scan(&after)
	if errors.Is(err, sql.ErrNoRows) {
		return after, nil
	}
	return after, err
}

// AddOpenCall completes a running task with its newest open call, if it has one.
func AddOpenCall(ctx context.Context, q perdure.Querier, slow *client.SlowestTask) error {
	var since int64
	err := q.QueryRow(ctx, sqlOutlineCall, int64(slow.Task)).Scan(&slow.Model, &since)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	slow.CallSince = instant(since)
	return err
}
