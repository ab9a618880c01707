package daemon

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// findingAge is how long it is remembered that a model refuses a part of a request: servers change.
const findingAge = 7 * 24 * time.Hour

// findings keeps in the store what servers of models refuse.
type findings struct{ store *perdure.Store }

const (
	sqlFindings = `SELECT part, value FROM finding WHERE server = $1 AND model = $2 AND found_at > $3
		ORDER BY found_at, part`
	sqlKeepFinding = `INSERT INTO finding (server, model, part, value, found_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (server, model, part) DO UPDATE SET value = excluded.value, found_at = excluded.found_at`
	sqlForgetFindings = `DELETE FROM finding WHERE found_at <= $1`
)

// Recall returns what was found in the last week.
func (f findings) Recall(ctx context.Context, server, name string) ([]model.Finding, error) {
	var list []model.Finding
	err := perdure.EachRow(ctx, f.store.Reader(), func(row perdure.Row) error {
		var one model.Finding
		if err := row.Scan(&one.Part, &one.Value); err != nil {
			return err
		}
		list = append(list, one)
		return nil
	}, sqlFindings, server, name, time.Now().Add(-findingAge).UnixMicro())
	return list, err
}

// Keep stores a finding and removes those of more than a week ago.
func (f findings) Keep(ctx context.Context, server, name string, found model.Finding) error {
	return f.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		if _, err := tx.Exec(ctx, sqlForgetFindings, tx.Now().Add(-findingAge).UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlKeepFinding, server, name, found.Part, found.Value, tx.Now().UnixMicro())
		return err
	})
}
