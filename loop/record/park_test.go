package record_test

import (
	"context"
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

// TestForeignRequest: a control request that another program writes into the row is neither
// carried out nor kept, also if the user has made the same one before. It wakes no loop for
// good, and takes away no request of the user.
func TestForeignRequest(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		forge := func() {
			t.Helper()
			b.ok(store.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
				_, err := tx.Exec(ctx, `UPDATE loop SET wish = 'resume'`)
				return err
			}))
		}
		want := func(want record.Control) {
			t.Helper()
			if req, err := b.records.Request(t.Context(), b.tree.ID); err != nil || req != want {
				t.Errorf("the request is %q, %v, want %q", req, err, want)
			}
			if l, err := b.records.Loop(t.Context(), b.tree.ID); err != nil || l.Control != want {
				t.Errorf("the row has the request %q, %v, want %q", l.Control, err, want)
			}
		}
		want(record.NoControl)
		forge()
		want(record.NoControl)
		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Pause))
		forge()
		want(record.NoControl)
		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Resume))
		want(record.Resume)
		forge() // the same request: nothing changes
		want(record.Resume)
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Fulfilled: record.Resume}))
		want(record.NoControl)
		forge()
		want(record.NoControl)

		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Pause))
		forge() // while the loop pauses
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Fulfilled: record.Pause}))
		want(record.NoControl)
		refused := 0
		for _, kind := range b.kinds() {
			if kind == record.EventControlRefused {
				refused++
			}
		}
		if refused != 4 {
			t.Errorf("%d refusals are logged", refused)
		}
		if r, err := store.VerifyLog(t.Context()); err != nil || !r.Intact {
			t.Errorf("the log: %+v, %v", r, err)
		}
		forge()
		if r, err := store.VerifyLog(t.Context()); err != nil || r.Intact {
			t.Errorf("the log with a foreign request: %+v, %v", r, err)
		}
	})
}
