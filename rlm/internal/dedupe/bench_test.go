package dedupe_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm/internal/dedupe"
)

// What a vote takes for an answer of 10 KB.
func BenchmarkKey(b *testing.B) {
	text := strings.Repeat("An ordinary line of an answer, with some words in it.\n", 190) + "Answer: 1,024.\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if dedupe.Key(text) == "" {
			b.Fatal("no key")
		}
	}
}
