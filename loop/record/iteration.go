package record

import (
	"context"

	"github.com/perdure/perdure"
)

const (
	sqlPutIteration = `INSERT INTO iteration (tree, number, task, status, quality, data, started_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tree, number) DO UPDATE SET task = excluded.task, status = excluded.status, quality = excluded.quality,
			data = excluded.data, ended_at = excluded.ended_at`
	iterationColumns = `i.number, i.task, i.status, i.quality, i.data, i.started_at, i.ended_at`
	sqlIterations    = `SELECT ` + iterationColumns + ` FROM tree t JOIN iteration i ON i.tree = t.id
		WHERE t.name = $1 AND i.number >= $2 ORDER BY i.number LIMIT $3 + 0`
	sqlLastIterations = `SELECT ` + iterationColumns + ` FROM tree t JOIN iteration i ON i.tree = t.id
		WHERE t.name = $1 AND i.number < $2 ORDER BY i.number DESC LIMIT $3 + 0`
)

func saveIteration(ctx context.Context, tx *perdure.WriteTx, key int64, it *Iteration) error {
	if it == nil {
		return nil
	}
	if it.StartedAt.IsZero() {
		it.StartedAt = tx.Now()
	}
	_, err := tx.Exec(ctx, sqlPutIteration, key, it.Number, int64(it.Task), string(it.Status), it.Quality, string(it.Data),
		it.StartedAt.UnixMicro(), column(it.EndedAt))
	if err != nil {
		return err
	}
	tx.LogRow(key, perdure.RowIteration, it.Number)
	return saveBrief(ctx, tx, key, it)
}

// Iterations lists iterations from a number on, in their order, at most limit.
func (r *Records) Iterations(ctx context.Context, tree perdure.TreeID, from, limit int) ([]Iteration, error) {
	return iterations(ctx, r.store.Reader(), sqlIterations, string(tree), from, limit)
}

// LastIterations lists the iterations below a number, the latest first, at most
// limit.
func (r *Records) LastIterations(ctx context.Context, tree perdure.TreeID, below, limit int) ([]Iteration, error) {
	return iterations(ctx, r.store.Reader(), sqlLastIterations, string(tree), below, limit)
}

func iterations(ctx context.Context, q perdure.Querier, query string, args ...any) ([]Iteration, error) {
	list := []Iteration{}
	err := perdure.EachRow(ctx, q, func(row perdure.Row) error {
		it, err := scanIteration(row)
		list = append(list, it)
		return err
	}, query, args...)
	return list, wrap("list iterations", err)
}

func scanIteration(row perdure.Row) (it Iteration, err error) {
	var ended micros
	err = row.Scan(&it.Number, (*int64)(&it.Task), (*string)(&it.Status), &it.Quality, (*text)(&it.Data),
		(*micros)(&it.StartedAt), &ended)
	it.EndedAt = maybe(ended)
	return it, err
}
