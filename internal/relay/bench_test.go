package relay_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/relay"
)

// BenchmarkApply records a step in a ledger of 1,000 entries.
func BenchmarkApply(b *testing.B) {
	bed := newBench(b)
	for i := range 100 {
		var ops []relay.Op
		for j := range 10 {
			name := fmt.Sprintf("f%d.go", j)
			bed.write(b, name, "package f")
			ops = append(ops, relay.Op{Kind: relay.OpStep, Text: fmt.Sprintf("step %d of %d", j, i), Created: []string{filepath.Join(bed.dir, name)}})
		}
		if _, err := bed.Apply(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := bed.Apply(b.Context(), relay.Op{Kind: relay.OpDecide, Text: "d"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLook reads a ledger of 1,000 entries.
func BenchmarkLook(b *testing.B) {
	bed := newBench(b)
	for i := range 10 {
		var ops []relay.Op
		for j := range 100 {
			ops = append(ops, relay.Op{Kind: relay.OpStep, Text: fmt.Sprintf("step %d of %d", j, i)})
		}
		if _, err := bed.Apply(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
	v := bed.look(b)
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			bed.look(b)
		}
	})
	b.Run("project", func(b *testing.B) {
		for b.Loop() {
			handoff.Project(v.Ledger, 0)
		}
	})
}
