package eta_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/internal/storage/eta"
)

// AppendJSON writes what the standard library writes.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	for _, timing := range []eta.Timing{{}, {Sum: 3}, {Hist: []int64{0, 7}}, {Depths: []eta.Level{{}}},
		{Depths: []eta.Level{{Total: 2, Ended: 1, Recent: 9}, {Total: 4}}, Sum: 1 << 50, Hist: []int64{1}},
		{Depths: []eta.Level{{Total: 1}}, Sum: 2}, {Open: 1}, {Sum: 1, Workers: 2000}, {Busy: 3, Last: 1 << 50},
		{Depths: []eta.Level{{Total: 1, Planned: 5, Calls: 4}, {Planned: 1}}, Open: 1, Hist: []int64{2}}} {
		want, err := json.Marshal(&timing)
		if got := timing.AppendJSON(nil); err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s, %v", got, want, err)
		}
	}
}
