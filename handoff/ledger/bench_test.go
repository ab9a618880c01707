package ledger_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/handoff/ledger"
)

// BenchmarkApply records one more decision of a ledger of 1,000 entries.
func BenchmarkApply(b *testing.B) {
	w := newBench(b)
	var ops []ledger.Op
	for i := range 1000 {
		switch i % 4 {
		case 0:
			ops = append(ops, ledger.Op{Kind: ledger.OpDecide, Text: fmt.Sprintf("Decision %d of the port", i),
				Because: "it keeps the callers as they are"})
		case 1:
			ops = append(ops, ledger.Op{Kind: ledger.OpCurrent, Text: fmt.Sprintf("Port part %d of the parser", i),
				Partial: "the table is done"})
		default:
			ops = append(ops, ledger.Op{Kind: ledger.OpStep, Text: fmt.Sprintf("Ported part %d of the parser", i),
				Modified: []string{fmt.Sprintf("src/%d.go", i%100)}})
		}
	}
	w.apply(b, ops[:500]...)
	w.apply(b, ops[500:]...)
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			w.look(b)
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		w.Snapshots = b.TempDir()
		for b.Loop() {
			w.look(b)
		}
		w.Snapshots = ""
	})
	b.Run("apply", func(b *testing.B) {
		for b.Loop() {
			w.apply(b)
		}
	})
}
