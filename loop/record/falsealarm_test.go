package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// What a person marked is kept with who and why, once, and survives the loop's end.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		first := record.FalseAlarm{Fingerprint: "0123456789abcdef", Iteration: 3, Event: "reg-003-1", What: "gone", By: "ann",
			Reason: "moved"}
		again := first
		again.By = "bob"
		for i, want := range []int{1, 0} {
			fresh, err := b.records.MarkFalse(t.Context(), b.tree.ID, []record.FalseAlarm{[]record.FalseAlarm{first, again}[i]})
			if err != nil || fresh != want {
				t.Errorf("mark %d: %d are new, want %d: %v", i, fresh, want, err)
			}
		}
		b.ok(b.lease.Complete(t.Context(), perdure.Result{Text: "done"}))
		if _, err := b.records.MarkFalse(t.Context(), b.tree.ID,
			[]record.FalseAlarm{{Fingerprint: "fedcba9876543210"}}); err != nil {
			t.Errorf("after the end: %v", err)
		}
		all, err := b.records.FalseAlarms(t.Context(), b.tree.ID)
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		got := all[0]
		if got.At.IsZero() {
			t.Error("the time is missing")
		}
		got.At = first.At
		if got != first {
			t.Errorf("%+v, want %+v", got, first)
		}
		events, err := store.Events(t.Context(), perdure.EventFilter{Tree: b.tree.ID})
		told := slices.DeleteFunc(events, func(e perdure.Event) bool { return e.Kind != record.EventFalseAlarm })
		if err != nil || len(told) != 2 || !strings.Contains(string(told[0].Data), `"by":"ann"`) {
			t.Errorf("events %+v, %v", told, err)
		}
		for _, marks := range [][]record.FalseAlarm{nil, {{}}, {{Fingerprint: "0123456789ABCDEF"}},
			{{Fingerprint: "0123456789abcde"}}, make([]record.FalseAlarm, record.MaxMarked+1),
			{{Fingerprint: "0123456789abcdef", Reason: strings.Repeat("x", record.MaxReasonBytes+1)}},
			{{Fingerprint: "0123456789abcdef", Iteration: -1}}} {
			if _, err := b.records.MarkFalse(t.Context(), b.tree.ID, marks); code(err) != perdure.CodeInvalid {
				t.Errorf("%d marks: %v", len(marks), err)
			}
		}
		if _, err := b.records.MarkFalse(t.Context(), "tree-00000000",
			[]record.FalseAlarm{first}); code(err) != perdure.CodeNotFound {
			t.Errorf("no loop: %v", err)
		}
	})
}
