package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// TestPark: a loop that was woken since it was read does not park.
func TestPark(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status         record.Status
		request        record.Control
		answer, atGate bool
		woken          bool
	}{
		"nothing":              {status: record.Running},
		"a request":            {status: record.Running, request: record.Pause, woken: true},
		"an answer":            {status: record.Running, answer: true, atGate: true, woken: true},
		"an old answer":        {status: record.Running, answer: true},
		"paused as asked":      {status: record.Paused, request: record.PauseNow},
		"paused, and answered": {status: record.Paused, answer: true, atGate: true},
		"paused and resumed":   {status: record.Paused, request: record.Resume, woken: true},
		"paused and aborted":   {status: record.Paused, request: record.Abort, atGate: true, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, store *perdure.Store) {
				b := newBench(t, store)
				b.loop.Status = c.status
				gate := &perdure.Gate{Kind: perdure.GateStuck,
					Question: json.RawMessage(`{"title":"?","options":[{"answer":"abort"}]}`)}
				b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Gate: gate}))
				if c.request != "" {
					b.ok(b.records.Ask(t.Context(), b.tree.ID, c.request))
				}
				if c.answer {
					_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "abort"})
					b.ok(err)
				}
				b.ok(b.records.Park(t.Context(), b.lease, time.Now().Add(time.Hour), c.atGate))
				if l := b.claim(); (l != nil) != c.woken {
					t.Errorf("claimed again: %v", l != nil)
				}
			})
		})
	}
}
