package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
)

// screen is a stream as a terminal of the given width shows it, without
// colours.
func screen(width int) (*stream, *bytes.Buffer) {
	var b bytes.Buffer
	return &stream{w: &b, width: width, terminal: true}, &b
}

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
		{"letters", "żółw 日本 🐢", "żółw 日本 🐢"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := visible(test.in); got != test.want {
				t.Errorf("visible(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b[2J", "\u202e", "\xff\xfe", "a\r\r\nb", "\x9b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := visible(text)
		for _, r := range got {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || reorders(r)) {
				t.Fatalf("visible(%q) = %q still holds %U", text, got, r)
			}
		}
		if visible(got) != got {
			t.Fatalf("visible(%q) is not stable", text)
		}
		if line := oneLine(text, 20); strings.ContainsAny(line, "\n\t") || cells(line) > 20 {
			t.Fatalf("oneLine(%q) = %q is not one line of 20 cells", text, line)
		}
	})
}

func TestSafeOnlyOnTerminals(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[31mb"
	if got := (&stream{}).safe(text); got != text {
		t.Errorf("a file gets %q, want the bytes as they are", got)
	}
	if got := (&stream{terminal: true}).safe(text); got == text {
		t.Error("a terminal gets the escape sequence")
	}
}

func TestColorOnlyWhereWanted(t *testing.T) {
	t.Parallel()
	terminal := func(any) (int, bool) { return 200, true }
	file := func(any) (int, bool) { return 0, false }
	tests := []struct {
		name     string
		terminal func(any) (int, bool)
		env      []string
		want     bool
	}{
		{"terminal", terminal, nil, true},
		{"file", file, nil, false},
		{"NO_COLOR", terminal, []string{"NO_COLOR=1"}, false},
		{"dumb", terminal, []string{"TERM=xterm", "TERM=dumb"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := Env{Terminal: test.terminal, Environ: test.env}.withDefaults()
			s := env.stream(&bytes.Buffer{})
			if colored := s.bold("x") != "x"; colored != test.want {
				t.Errorf("coloured: %v, want %v", colored, test.want)
			}
			if s.width > maxWidth {
				t.Errorf("width %d, at most %d", s.width, maxWidth)
			}
		})
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	s := &stream{w: brokenWriter{fmt.Errorf("write: %w", syscall.EPIPE)}}
	fmt.Fprintln(s, "text")
	if !s.gone() || s.failed() != nil {
		t.Errorf("a closed pipe: gone %v, failed %v; want true, nil", s.gone(), s.failed())
	}
	full := errors.New("no space left")
	s = &stream{w: brokenWriter{full}}
	fmt.Fprintln(s, "text")
	if s.gone() || !errors.Is(s.failed(), full) {
		t.Errorf("a full disk: gone %v, failed %v; want false, the error", s.gone(), s.failed())
	}
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
		if got := duration(test.in); got != test.want {
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
		if got := eta(test.in); got != test.want {
			t.Errorf("eta = %q, want %q", got, test.want)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		usage perdure.Usage
		want  string
	}{
		{perdure.Usage{}, "$0.0000"},
		{perdure.Usage{Calls: 2, CostUSD: 0.065}, "$0.0650"},
		{perdure.Usage{Calls: 2, CostUSD: 0.00001}, "<$0.0001"},
		{perdure.Usage{Calls: 2, UnpricedCalls: 2}, "unknown price"},
		{perdure.Usage{Calls: 3, CostUSD: 0.5, UnpricedCalls: 1}, "$0.5000 + 1 call of unknown price"},
	}
	for _, test := range tests {
		if got := cost(test.usage); got != test.want {
			t.Errorf("cost(%+v) = %q, want %q", test.usage, got, test.want)
		}
	}
}

func TestBarIsFullOnlyWhenDone(t *testing.T) {
	t.Parallel()
	for percent, want := range map[float64]string{
		-5: "[▒▒▒▒]", 0: "[▒▒▒▒]", 50: "[██▒▒]", 99.9: "[███▒]", 100: "[████]", 250: "[████]",
	} {
		if got := bar(percent, 4); got != want {
			t.Errorf("bar(%v) = %q, want %q", percent, got, want)
		}
	}
	if got := wholePercent(99.9); got != "99%" {
		t.Errorf("wholePercent(99.9) = %q, want 99%%", got)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0k", 12_345: "12.3k", 999_999: "999.9k", 4_560_000: "4.5M"} {
		if diff := cmp.Diff(want, compact(n)); diff != "" {
			t.Error(diff)
		}
	}
}
