package sqldb

import (
	"context"
	"strconv"
	"strings"
)

// rowSteps are the numbers of rows that one statement inserts. The more rows a statement
// inserts, the less each costs.
func rowSteps() [4]int { return [...]int{32, 8, 3, 1} }

// Insertion inserts rows into one table, many with one statement.
type Insertion struct {
	columns int
	texts   [4]string // by step
}

// NewInsertion returns the insertion of rows with the given number of columns. Its
// statements are head ("INSERT INTO t (…)"), the rows, and tail, such as ON CONFLICT.
func NewInsertion(head string, columns int, tail string) Insertion {
	in := Insertion{columns: columns}
	for i, n := range rowSteps() {
		rows := make([]string, n)
		for r := range rows {
			values := make([]string, columns)
			for c := range values {
				values[c] = "$" + strconv.Itoa(r*columns+c+1)
			}
			rows[r] = "(" + strings.Join(values, ", ") + ")"
		}
		in.texts[i] = head + " VALUES " + strings.Join(rows, ", ") + " " + tail
	}
	return in
}

// Exec inserts the rows whose values args lists one after another.
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
