package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
)

func TestBytes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text                       string
		n                          int
		prefix, suffix, bytes, end string
	}{
		{"", 0, "", "", "", ""},
		{"short", 5, "short", "short", "short", "short"},
		{"shorter", 5, "short", "orter", "sh…", "…er"},
		{"shorter", 3, "sho", "ter", "…", "…"},
		{"shorter", 2, "sh", "er", "", ""},
		{"shorter", 0, "", "", "", ""},
		{"shorter", -1, "", "", "", ""},
		{"żółw", 6, "żół", "ółw", "ż…", "…łw"}, // 7 bytes
		{"żółw", 4, "żó", "łw", "…", "…w"},
		{"日本語", 8, "日本", "本語", "日…", "…語"}, // 3 bytes and 2 columns each
		{"日本語", 5, "日", "語", "…", "…"},
		{"🐢🐢", 7, "🐢", "🐢", "🐢…", "…🐢"}, // 4 bytes each
		{"🐢🐢", 3, "", "", "…", "…"},
		{"a\x00b\x1bc", 4, "a\x00b\x1b", "\x00b\x1bc", "a…", "…c"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80", "\x80\x80…", "…"},
	}
	for _, tt := range tests {
		for name, got := range map[string][2]string{"Prefix": {clip.Prefix(tt.text, tt.n), tt.prefix},
			"Suffix": {clip.Suffix(tt.text, tt.n), tt.suffix}, "Bytes": {clip.Bytes(tt.text, tt.n), tt.bytes},
			"End": {clip.End(tt.text, tt.n), tt.end}} {
			if got[0] != got[1] {
				t.Errorf("%s(%q, %d) = %q, want %q", name, tt.text, tt.n, got[0], got[1])
			}
		}
	}
}

func TestStorable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "größer\n": "größer\n", "a\x00b": "a\uFFFDb", "a\xffb": "a\uFFFDb",
		"\xed\xa0\x80": "\uFFFD"} {
		if got := clip.Storable(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestRunes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abcd", 1, "…"}, {"abcd", 0, ""}, {"abcd", -1, ""},
		{"żółw", 4, "żółw"}, {"żółwie", 4, "żół…"}, {"日本語だ", 3, "日本…"}, {"🐢🐢🐢", 2, "🐢…"},
		{"two words", 5, "two…"}, {"a\nb\tc", 4, "a\nb…"}, {"\xff\xff\xff", 2, "\xff…"},
	} {
		if got := clip.Runes(tt.text, tt.n); got != tt.want {
			t.Errorf("Runes(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, one, first, last string }{
		{"", "", "", ""}, {" \n\t\r\n", "", "", ""}, {"a", "a", "a", "a"},
		{"\n  first\tline \r\n\n b \n last  \n\n", "first line b last", "first\tline", "last"},
		{"日本\u00a0語\u2028x", "日本 語 x", "日本\u00a0語\u2028x", "日本\u00a0語\u2028x"},
	} {
		if got := clip.OneLine(tt.text); got != tt.one {
			t.Errorf("OneLine(%q) = %q, want %q", tt.text, got, tt.one)
		}
		if got := clip.FirstLine(tt.text); got != tt.first {
			t.Errorf("FirstLine(%q) = %q, want %q", tt.text, got, tt.first)
		}
		if got := clip.LastLine(tt.text); got != tt.last {
			t.Errorf("LastLine(%q) = %q, want %q", tt.text, got, tt.last)
		}
	}
}

// FuzzClip keeps the limits, whole characters, and everything that fits.
func FuzzClip(f *testing.F) {
	for _, text := range []string{"", "text", "żółw 日本 🐢", "a\xff\x80", "a \n b"} {
		f.Add(text, 5)
		f.Add(text, -1)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = min(max(n, -1), 1000)
		valid := utf8.ValidString(text)
		for name, got := range map[string]string{"Prefix": clip.Prefix(text, n), "Suffix": clip.Suffix(text, n),
			"Bytes": clip.Bytes(text, n), "End": clip.End(text, n)} {
			if len(got) > max(n, 0) || len(text) <= n && got != text || valid && !utf8.ValidString(got) {
				t.Errorf("%s(%q, %d) = %q", name, text, n, got)
			}
		}
		if p := clip.Prefix(text, n); !strings.HasPrefix(text, p) || n >= 0 && len(text) > n && len(p) < n-3 {
			t.Errorf("Prefix(%q, %d) = %q", text, n, p)
		}
		if s := clip.Suffix(text, n); !strings.HasSuffix(text, s) || n >= 0 && len(text) > n && len(s) < n-3 {
			t.Errorf("Suffix(%q, %d) = %q", text, n, s)
		}
		got := clip.Runes(text, n)
		fits := utf8.RuneCountInString(text) <= n
		if utf8.RuneCountInString(got) > max(n, 0) || fits && got != text || valid && !utf8.ValidString(got) {
			t.Errorf("Runes(%q, %d) = %q", text, n, got)
		}
		if one := clip.OneLine(text); strings.ContainsAny(one, "\n\t\r") || clip.OneLine(one) != one {
			t.Errorf("OneLine(%q) = %q", text, one)
		}
	})
}
