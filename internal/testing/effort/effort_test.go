package effort_test

import (
	"testing"

	"github.com/perdure/perdure/internal/testing/effort"
)

func TestOf(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 300} {
		t.Setenv("PERDURE_LONG", value)
		if got := effort.Of(3, 300); got != want || effort.Long() != (want == 300) {
			t.Errorf("PERDURE_LONG=%q: %d, want %d", value, got, want)
		}
	}
}
