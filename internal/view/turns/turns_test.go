package turns_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/rlm"
)

func TestHighlight(t *testing.T) {
	t.Parallel()
	got := turns.Highlight("for x in f(1_0, 'a # b'): # c\n    s = rf\"{x}\" + '''d\n'e''' \nformat = notin")
	want := []turns.Part{{"keyword", "for"}, {"", " x "}, {"keyword", "in"}, {"", " f("}, {"number", "1_0"}, {"", ", "},
		{"string", "'a # b'"}, {"", "): "}, {"comment", "# c"}, {"", "\n    s = "}, {"string", "rf\"{x}\""}, {"", " + "},
		{"string", "'''d\n'e'''"}, {"", " \nformat = notin"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The parts of any code are the code.
func FuzzHighlight(f *testing.F) {
	f.Add("x = '")
	f.Add("\"\"\"\\")
	f.Fuzz(func(t *testing.T, code string) {
		var b strings.Builder
		for _, p := range turns.Highlight(code) {
			b.WriteString(p.Text)
		}
		if b.String() != code {
			t.Errorf("%q became %q", code, b.String())
		}
	})
}

func TestFacts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end := at.Add(1500 * time.Millisecond)
	b := &rlm.TurnBlock{Failure: "ValueError: a\nb", SubCalls: 2, Variables: []string{"a", "b"}, StartedAt: at,
		EndedAt: &end}
	if got := turns.Facts(b); got != "ended with ValueError: a b; 2 sub-calls; set a, b; 1.5s" {
		t.Errorf("facts %q", got)
	}
	b = &rlm.TurnBlock{Output: strings.Repeat("line\n", 50)}
	if got := turns.Facts(b); got != "running" {
		t.Errorf("facts %q", got)
	}
	if got := turns.Output(b); strings.Count(got, "line\n") != turns.ShownLines ||
		!strings.HasSuffix(got, "… 10 lines more") {
		t.Errorf("output %q", got)
	}
	if turns.Parse(nil) != nil || turns.Parse([]byte(`{`)) != nil || len(turns.Parse([]byte(`[{"turn":1}]`))) != 1 {
		t.Error("turns are read wrongly")
	}
}
