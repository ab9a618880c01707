package human_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/text/human"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "plain text\n\tindented", "plain text\n\tindented"},
		{"title", "\x1b]0;owned\x07", "␛]0;owned␇"},
		{"colour", "\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
		{"overwrite", "good\rbad", "good␍bad"},
		{"line end of Windows", "a\r\nb", "a\nb"},
		{"one-byte control of eight bits", "a\u009b31m", "a\ufffd31m"},
		{"delete", "a\x7f", "a␡"},
		{"bidirectional", "abc\u202ecba", "abc\ufffdcba"},
		{"invalid UTF-8", "a\xffb", "a\ufffdb"},
		{"marks of direction", "a\u200eb\u200fc\u061cd", "a\ufffdb\ufffdc\ufffdd"},
		{"without width, quoted", "unexpected '\u200b', \"\u2060x\", `a\ufeff`",
			"unexpected '\\u200b', \"\\u2060x\", `a\\ufeff`"},
		{"without width, not quoted", "\U0001f468\u200d\U0001f469 a\u200bb", "\U0001f468\u200d\U0001f469 a\u200bb"},
		{"letters", "żółw 日本 🐢", "żółw 日本 🐢"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := human.Visible(test.in); got != test.want {
				t.Errorf("visible(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestEscaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{\"a\":\"\u0085\u202e\u200f\x7f\"}": `{"a":"\u0085\u202e\u200f\u007f"}`,
		"\x1b[31mżółw 日本 🐢\x1b[0m\n":         "\x1b[31mżółw 日本 🐢\x1b[0m\n",
		"a\x9bb":                             "a\ufffdb",
		"a\xe2\x80":                          "a",
	} {
		shown, rest := human.Escaped([]byte(in))
		if string(shown) != want || (len(rest) > 0) != strings.HasSuffix(in, "\xe2\x80") {
			t.Errorf("%q: %q, rest %q; want %q", in, shown, rest, want)
		}
	}
}

func FuzzEscaped(f *testing.F) {
	f.Add("a\u0085b", 2)
	f.Add("\u202e\xff\xe2\x80", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		one, rest := human.Escaped([]byte(text[:at]))
		two, _ := human.Escaped(append(rest[:len(rest):len(rest)], text[at:]...))
		whole, _ := human.Escaped([]byte(text))
		if got := string(one) + string(two); got != string(whole) {
			t.Errorf("%q cut at %d: %q, whole %q", text, at, got, whole)
		}
		for _, r := range string(whole) {
			if r >= 0x7f && r < 0xa0 || r == '\u202e' {
				t.Errorf("%q still has %U", text, r)
			}
		}
	})
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b[2J", "\u202e", "\xff\xfe", "a\r\r\nb", "\x9b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := human.Visible(text)
		for _, r := range got {
			if r != '\n' && r != '\t' &&
				(unicode.IsControl(r) || strings.ContainsRune("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r) ||
					strings.ContainsRune("\u200e\u200f\u061c", r)) {
				t.Fatalf("visible(%q) = %q still holds %U", text, got, r)
			}
		}
		if human.Visible(got) != got {
			t.Fatalf("visible(%q) is not stable", text)
		}
	})
}

func TestDuration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   time.Duration
		want string
	}{
		{-time.Second, "0ms"}, {0, "0ms"}, {999 * time.Millisecond, "999ms"},
		{4250 * time.Millisecond, "4.2s"}, {9999 * time.Millisecond, "9.9s"}, {45 * time.Second, "45s"},
		{135 * time.Second, "2m 15s"}, {3*time.Hour + 5*time.Minute, "3h 05m"}, {52 * time.Hour, "2d 4h"},
	}
	for _, test := range tests {
		if got := human.Duration(test.in); got != test.want {
			t.Errorf("duration(%v) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestETA(t *testing.T) {
	t.Parallel()
	at := func(s float64) *float64 { return &s }
	for _, test := range []struct {
		in   *float64
		want string
	}{{nil, "unknown"}, {at(135), "~2m 15s"}, {at(-3), "~0ms"}} {
		if got := human.ETA(test.in); got != test.want {
			t.Errorf("eta = %q, want %q", got, test.want)
		}
	}
}

func TestBarIsFullOnlyWhenDone(t *testing.T) {
	t.Parallel()
	for percent, want := range map[float64]string{
		-5: "[▒▒▒▒]", 0: "[▒▒▒▒]", 50: "[██▒▒]", 99.9: "[███▒]", 100: "[████]", 250: "[████]",
	} {
		if got := human.Bar(percent, 4); got != want {
			t.Errorf("bar(%v) = %q, want %q", percent, got, want)
		}
	}
	if got := human.WholePercent(99.9); got != "99%" {
		t.Errorf("human.WholePercent(99.9) = %q, want 99%%", got)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0k", 12_345: "12.3k", 999_999: "999.9k",
		4_560_000: "4.5M"} {
		if diff := cmp.Diff(want, human.Compact(n)); diff != "" {
			t.Error(diff)
		}
	}
}
