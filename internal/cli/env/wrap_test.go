package env_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// TestWrap: lines on a terminal are broken between words and nowhere else, and keep all of the text.
func TestWrap(t *testing.T) {
	t.Parallel()
	s := &env.Stream{Terminal: true, Width: 40}
	for _, c := range []struct{ name, text, want string }{
		{"short", "a b", "a b"},
		{"words", "the changes are accepted, and the current results stay\n",
			"the changes are accepted, and the\ncurrent results stay\n"},
		{"indented", "      the loop ends; the files are not changed at all",
			"      the loop ends; the files are not\n      changed at all"},
		{"item", "- test_deletion (critical): 1 test was removed",
			"- test_deletion (critical): 1 test was\n  removed"},
		{"command", "perdure: `perdure loop resume make-the-tests-pass-1a2b3c4d` continues",
			"perdure:\n`perdure loop resume make-the-tests-pass-1a2b3c4d`\ncontinues"},
		{"long word", strings.Repeat("x", 50) + " y", strings.Repeat("x", 50) + "\ny"},
		{"styled", "\x1b[1mthe changes are accepted, and the current\x1b[m",
			"\x1b[1mthe changes are accepted, and the\ncurrent\x1b[m"},
		{"two spaces", "00:00:01  the changes are accepted, and the results",
			"00:00:01  the changes are accepted, and\nthe results"},
		{"no space", "", ""},
	} {
		if got := s.Wrap(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if text := strings.Repeat("word ", 50); (&env.Stream{Width: 40}).Wrap(text) != text {
		t.Error("text that is not for a terminal is changed")
	}
}

// FuzzWrap: only spaces become line breaks.
func FuzzWrap(f *testing.F) {
	f.Add("a `b c` - d", 31)
	f.Fuzz(func(t *testing.T, text string, width int) {
		s := &env.Stream{Terminal: true, Width: width}
		bare := func(s string) string {
			return strings.NewReplacer(" ", "", "\n", "").Replace(s)
		}
		if got := s.Wrap(text); bare(got) != bare(text) {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
