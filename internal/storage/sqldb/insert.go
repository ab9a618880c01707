package sqldb

import (
	"context"
	"strconv"
	"strings"
	"sync"
)

// rowSteps are the numbers of rows that one statement inserts. The more rows a statement
// inserts, the less each costs.
func rowSteps() [4]int { return [...]int{32, 8, 3, 1} }

// Insertion inserts rows into one table, many with one statement.
type Insertion struct {
	columns int              // that args has values for
	texts   [4]func() string // by step, written when first needed
}

// NewInsertion returns the insertion of rows with the given number of columns. Its
// statements are head ("INSERT INTO t (…)"), the rows, and tail, such as ON CONFLICT.
func NewInsertion(head string, columns int, tail string) Insertion {
	return NewRowInsertion(head, "("+strings.TrimSuffix(strings.Repeat("?, ", columns), ", ")+")", tail)
}

// NewRowInsertion returns the insertion of rows of which some columns have constant values:
// each ? in row stands for a value.
func NewRowInsertion(head, row, tail string) Insertion {
	parts := strings.Split(row, "?")
	in := Insertion{columns: len(parts) - 1}
	for i, n := range rowSteps() {
		in.texts[i] = sync.OnceValue(func() string { return head + " VALUES " + rows(parts, n) + " " + tail })
	}
	return in
}

// rows returns a number of rows, each of the parts with a parameter between two of them.
func rows(parts []string, n int) string {
	var text strings.Builder
	columns := len(parts) - 1
	for r := range n {
		if r > 0 {
			text.WriteString(", ")
		}
		text.WriteString(parts[0])
		for c, part := range parts[1:] {
			text.WriteString("$" + strconv.Itoa(r*columns+c+1) + part)
		}
	}
	return text.String()
}

// Exec inserts the rows whose values args lists one after another.
func (in Insertion) Exec(ctx context.Context, tx *Tx, args []any) error {
	for i, many := range rowSteps() {
		for n := many * in.columns; len(args) >= n; args = args[n:] {
			if _, err := tx.Exec(ctx, in.texts[i](), args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}
