package regression_test

import (
	"testing"

	"github.com/perdure/perdure/internal/loop/regression"
)

// TestLine: a regression in one line names some of its tests, once.
func TestLine(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]regression.Regression{
		"1 test removed: p::A": {Text: "1 test removed", Tests: []string{"p::A"}},
		"5 tests removed: p::A, p::B, p::C and 2 more": {Text: "5 tests removed", Tests: []string{"p::A", "p::B", "p::C",
			"p::D", "p::E"}},
		"p::A fails in a clean copy":                    {Text: "p::A fails in a clean copy", Tests: []string{"p::A"}},
		"the run ended without the runner's end record": {Text: "the run ended without the runner's end record"},
	} {
		if got := g.Line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
