package sqldb

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// Insertion adds rows of one table, many with one statement.
type Insertion struct {
	columns int
	one     string
	many    string
}

const manyRows = 16

// NewInsertion makes the statements for "INSERT INTO t (…)" with so many columns,
// followed by the rows and a tail such as ON CONFLICT.
func NewInsertion(head string, columns int, tail string) Insertion {
	return Insertion{columns: columns, one: insertText(head, columns, 1, tail), many: insertText(head, columns, manyRows, tail)}
}

func insertText(head string, columns, rows int, tail string) string {
	var sb strings.Builder
	sb.WriteString(head)
	sb.WriteString(" VALUES ")
	for i := range rows {
		if i > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString("(")
		for c := range columns {
			if c > 0 {
				sb.WriteString(", ")
			}
			sb.WriteString("$")
			sb.WriteString(strconv.Itoa(i*columns + c + 1))
		}
		sb.WriteString(")")
	}
	sb.WriteString(" ")
	sb.WriteString(tail)
	return sb.String()
}

// Exec inserts the rows whose values follow each other in args.
func (in Insertion) Exec(ctx context.Context, tx *Tx, args []any) error {
	for chunk := range slices.Chunk(args, in.columns*manyRows) {
		if len(chunk) == in.columns*manyRows {
			if _, err := tx.Exec(ctx, in.many, chunk...); err != nil {
				return err
			}
			continue
		}
		for row := range slices.Chunk(chunk, in.columns) {
			if _, err := tx.Exec(ctx, in.one, row...); err != nil {
				return err
			}
		}
	}
	return nil
}
