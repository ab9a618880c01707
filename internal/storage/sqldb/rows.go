package sqldb

import (
	"context"
	"database/sql"
)

// QueryFunc runs a statement that returns rows, as the Query methods do.
type QueryFunc = func(ctx context.Context, q string, args ...any) (*sql.Rows, error)

// Scan copies the columns of a row into dest.
type Scan = func(dest ...any) error

// Each runs a query and calls row for each row of the result, until row fails.
func Each(ctx context.Context, query QueryFunc, row func(scan Scan) error, q string, args ...any) error {
	rows, err := query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	scan := rows.Scan
	for rows.Next() {
		if err := row(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Collect runs a query and returns what row reads from each row of the result.
func Collect[T any](ctx context.Context, query QueryFunc, row func(scan Scan) (T, error), q string, args ...any) (
	list []T, err error) {
	err = Each(ctx, query, func(scan Scan) error {
		v, err := row(scan)
		list = append(list, v)
		return err
	}, q, args...)
	return list, err
}

// Column reads a row of one column.
func Column[T any](scan Scan) (v T, err error) {
	err = scan(&v)
	return v, err
}
