package report

import (
	"testing"

	"github.com/perdure/perdure/client"
)

// TestPlacesOfCitations proves that a report names the lines of a citation, the cell of a notebook and the
// column of text within a line.
func TestPlacesOfCitations(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]client.Citation{
		"lines 3 to 4":                               {StartLine: 3, EndLine: 4},
		"lines 3 to 3, from column 812":              {StartLine: 3, EndLine: 3, StartColumn: 812},
		"cell 2, lines 3 to 4":                       {StartLine: 3, EndLine: 4, Cell: 2},
		"cell 2, lines 3 to 3, from column 70000017": {StartLine: 3, EndLine: 3, Cell: 2, StartColumn: 70_000_017},
	} {
		if got := linesOf(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
