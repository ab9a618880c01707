package cli

import (
	"slices"
	"testing"

	"github.com/perdure/perdure"
)

// TestFaultLines: repeated faults are one line.
func TestFaultLines(t *testing.T) {
	t.Parallel()
	no := perdure.LogFault{Kind: "event_inserted", Event: 7, Detail: "the event belongs to no tree of the store"}
	second := no
	second.Event = 8
	row := perdure.LogFault{Kind: "row_changed", Detail: "gate 1 was changed"}
	got := faultLines([]perdure.LogFault{no, second, no, row})
	want := []string{"event_inserted: the event belongs to no tree of the store (3 times)",
		"row_changed: gate 1 was changed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
