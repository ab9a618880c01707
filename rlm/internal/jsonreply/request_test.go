package jsonreply_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm/internal/jsonreply"
)

func TestRepairShowsReplyAndFaults(t *testing.T) {
	t.Parallel()
	faults := make([]string, 100)
	for i := range faults {
		faults[i] = strings.Repeat("f", 100)
	}
	for _, most := range []int{600, 10_000} {
		text := jsonreply.Repair(strings.Repeat("r", 100_000), faults, most)
		if len(text) > most+300 {
			t.Errorf("%d bytes for at most %d", len(text), most)
		}
		if !strings.Contains(text, strings.Repeat("r", most/4)) || !strings.Contains(text, faults[0]) ||
			!strings.Contains(text, "more") {
			t.Errorf("for %d: %s", most, text)
		}
	}
}
