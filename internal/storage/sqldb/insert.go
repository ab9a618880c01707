package sqldb

import (
	"context"
	"strconv"
	"strings"
)

// rowSteps are the numbers of rows that one statement inserts. More rows a
// statement cost less each; the steps keep the remainder short.
func rowSteps() [4]int { return [...]int{32, 8, 3, 1} }

// Insertion adds rows of one table, many with one statement.
type Insertion struct {
	columns int
	texts   [4]string // by step
}

// NewInsertion makes the statements for "INSERT INTO t (…)" with so many columns,
// followed by the rows and a tail such as ON CONFLICT.
func NewInsertion(head string, columns int, tail string) Insertion {
	in := Insertion{columns: columns}
	for i, rows := range rowSteps() {
		in.texts[i] = insertText(head, columns, rows, tail)
	}
	return in
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
	for i, rows := range rowSteps() {
		for n := rows * in.columns; len(args) >= n; args = args[n:] {
			if _, err := tx.Exec(ctx, in.texts[i], args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}
