package score_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm/internal/score"
)

func TestRules(t *testing.T) {
	t.Parallel()
	answer := score.Input{Text: "Total: 42\nof which 7 are new\n", Citations: 2, Prompt: "why"}
	structured := score.Input{Text: `{"total": 42, "items": [1, 2, 3], "name": "x"}`}
	tests := []struct {
		rule string
		in   score.Input
		want float64
	}{
		{"len(text)", answer, 29},
		{"len(lines)", answer, 2},
		{"words * 10", answer, 70},
		{"text contains 'Total'", answer, 100},
		{"lower(text) contains 'nothing'", answer, 0},
		{"citations > 1 ? 50.5 : 0", answer, 50.5},
		{"data == nil", answer, 100},
		{"data.total", structured, 42},
		{"len(data.items) + 0.5", structured, 3.5},
		{"prompt == 'why' and text matches '[0-9]{2}'", answer, 100},
	}
	for _, tt := range tests {
		r, err := score.ParseRule(tt.rule)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if got, err := r.Score(tt.in); err != nil || got != tt.want {
			t.Errorf("%s is %v, %v, want %v", tt.rule, got, err, tt.want)
		}
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"":                        "it is empty",
		"len(text) >":             "column 11: unexpected token EOF",
		"len(tex) > 1":            "column 5: unknown name tex",
		"text + 1":                "column 6: invalid operation: + (mismatched types string and int)",
		"text":                    "it is a string, and a score is a number",
		"lines":                   "it is a []string, and a score is a number",
		"1 +\n1":                  "more than one line",
		"now().Unix()":            "column 1: unknown name now",
		"äöü + nix":               "column 1: unknown name äöü",
		"'ä' + nix":               "column 7: unknown name nix",
		strings.Repeat("1+", 3e3): "the limit is 4096",
	} {
		_, err := score.ParseRule(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", source[:min(len(source), 40)], err, want)
		}
	}
	for source, want := range map[string]string{
		"data.total": "column 6",
		"data":       "it has no value",
		"1.0 / 0":    "is not a number",
		"data ?? []": "is not a number",
		"[1][5]":     "out of range",
	} {
		r, err := score.ParseRule(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if _, err := r.Score(score.Input{Text: "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", source, err, want)
		}
	}
}

func FuzzRules(f *testing.F) {
	for _, source := range []string{"len(text)", "data.a.b > 1", "any(lines, # contains 'x')", "1 +", "text matches '('",
		"{'a': 1}", "let x = 1; x"} {
		f.Add(source, `{"a":{"b":2}}`)
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if len(source) > 60 || len(text) > 100 {
			return // no rules that take long
		}
		r, err := score.ParseRule(source)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: the error has several lines: %q", source, err)
			}
			return
		}
		a, errA := r.Score(score.Input{Text: text})
		b, errB := r.Score(score.Input{Text: text})
		if (errA == nil) != (errB == nil) || a != b && a == a && !strings.ContainsAny(source, "{d") { // maps have no order
			t.Errorf("%q of %q is %v and %v, %v and %v", source, text, a, b, errA, errB)
		}
	})
}
