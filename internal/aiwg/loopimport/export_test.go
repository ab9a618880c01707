package loopimport

import "github.com/perdure/perdure/loop/record"

// RowsForTest makes the rows of a document that an import makes.
func RowsForTest(doc []byte) ([]record.Iteration, error) {
	p, err := readPast(doc)
	if err != nil {
		return nil, err
	}
	return p.rows("true")
}
