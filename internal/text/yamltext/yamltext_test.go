package yamltext_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/text/yamltext"
)

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\n": "", "": "", strings.Repeat("x", 101): "larger than 100 bytes", "a\nb\xff": "line 2 is not valid UTF-8",
		"a\x00": "NUL",
	} {
		if got := yamltext.Unreadable([]byte(text), 100); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("{", 101), strings.Repeat("- ", 100) + "a"} {
		if got := yamltext.Unreadable([]byte(text), 1000); !strings.Contains(got, "too deeply") {
			t.Errorf("%.20q: %q", text, got)
		}
	}
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		strings.Repeat("[", 100):                           false,
		strings.Repeat("{[", 51):                           true,
		strings.Repeat("[]", 200):                          false,
		strings.Repeat("- ", 99) + "a":                     false,
		strings.Repeat("?\t: ", 50) + "a":                  true,
		strings.Repeat(strings.Repeat("- ", 99)+"a\n", 50): false,
		"a: 1\n" + strings.Repeat("- ", 100) + "a":         true,
	} {
		if got := yamltext.TooDeep([]byte(text)); got != want {
			t.Errorf("%.20q of %d bytes: %v", text, len(text), got)
		}
	}
}
