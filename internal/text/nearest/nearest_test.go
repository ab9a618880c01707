package nearest_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/text/nearest"
)

func TestWord(t *testing.T) {
	t.Parallel()
	models := []string{"gpt-5", "gpt-5-mini", "claude-sonnet-4-5-20250929", "claude-sonnet-4-20250514", "builtin:extract"}
	for _, test := range []struct {
		word       string
		candidates []string
		want       string
	}{
		{"modle", []string{"mock", "model"}, "model"},
		{"modle", []string{"mode", "model"}, "model"},
		{"modl", []string{"mode", "modes"}, "mode"},
		{"MODEL", []string{"model"}, "model"},
		{"concurency", []string{"currency", "concurrency"}, "concurrency"},
		{"gtp-5", models, "gpt-5"},
		{"gpt5-mini", models, "gpt-5-mini"},
		{"claude-sonnet-4", models, "claude-sonnet-4-20250514"},
		{"claude-sonet-4-5-20250929", models, "claude-sonnet-4-5-20250929"},
		{"builtin", models, "builtin:extract"},
		{"größe", []string{"grösse"}, ""},
		{"größen", []string{"grösen"}, "grösen"},
		{"ab", []string{"abc", "xy"}, "abc"},
		{"a", []string{"alpha"}, ""},
		{"", models, ""},
		{"zebra", models, ""},
		{"x", nil, ""},
		{"same", []string{"sane", "same"}, "same"},
		{"samx", []string{"sane", "same", "sama"}, "same"},
	} {
		got, ok := nearest.Word(test.word, test.candidates)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("Word(%q, %q) = %q, %v, want %q", test.word, test.candidates, got, ok, test.want)
		}
	}
}

func FuzzWord(f *testing.F) {
	f.Add("modle", "model concurrency")
	f.Add("\xff", "\xfe ")
	f.Fuzz(func(t *testing.T, word, list string) {
		candidates := strings.Fields(list)
		got, ok := nearest.Word(word, candidates)
		if ok && !strings.Contains(list, got) {
			t.Errorf("%q is not one of %q", got, candidates)
		}
		if word != "" && len(word) < 200 {
			if got, _ := nearest.Word(word, []string{word}); got != word {
				t.Errorf("the nearest to %q is %q, not itself", word, got)
			}
		}
	})
}
