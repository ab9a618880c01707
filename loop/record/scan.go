package record

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// scanFunc copies the columns of a row.
type scanFunc = func(dest ...any) error

// each runs a query and calls row for each row of its result.
func each(ctx context.Context, q perdure.Querier, row func(scanFunc) error, query string, args ...any) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// text scans a column of JSON.
type text json.RawMessage

// Scan reads a column.
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case string:
		if *t = nil; v != "" {
			*t = text(v)
		}
	case []byte:
		*t = append(text{}, v...)
	default:
		return fmt.Errorf("a column holds %T, not a text", v)
	}
	return nil
}

// micros scans a column of microseconds.
type micros time.Time

// Scan reads a column; NULL is the zero time.
func (m *micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m = micros{}
	case int64:
		*m = micros(time.UnixMicro(v).UTC())
	default:
		return fmt.Errorf("a column holds %T, not a time", v)
	}
	return nil
}

// maybe is a time that may be missing.
func maybe(m micros) *time.Time {
	if t := time.Time(m); !t.IsZero() {
		return &t
	}
	return nil
}

// column is the time as it is kept.
func column(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}
