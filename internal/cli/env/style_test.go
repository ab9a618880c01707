package env

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

func TestSafeOnlyOnTerminals(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[31mb"
	if got := (&Stream{}).Safe(text); got != text {
		t.Errorf("a file gets %q, want the bytes as they are", got)
	}
	if got := (&Stream{Terminal: true}).Safe(text); got == text {
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
			s := New(Process{Terminal: test.terminal, Environ: test.env}).Out
			if colored := s.Bold("x") != "x"; colored != test.want {
				t.Errorf("coloured: %v, want %v", colored, test.want)
			}
			if s.Width > MaxWidth {
				t.Errorf("width %d, at most %d", s.Width, MaxWidth)
			}
		})
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	s := &Stream{w: brokenWriter{fmt.Errorf("write: %w", syscall.EPIPE)}}
	fmt.Fprintln(s, "text")
	if !s.closed() || s.Failed() != nil {
		t.Errorf("a closed pipe: gone %v, failed %v; want true, nil", s.closed(), s.Failed())
	}
	full := errors.New("no space left")
	s = &Stream{w: brokenWriter{full}}
	fmt.Fprintln(s, "text")
	if s.closed() || !errors.Is(s.Failed(), full) {
		t.Errorf("a full disk: gone %v, failed %v; want false, the error", s.closed(), s.Failed())
	}
}

func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b[2J", "\u202e", "\xff\xfe", "a\r\r\nb", "\x9b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if line := OneLine(text, 20); strings.ContainsAny(line, "\n\t") || Width(line) > 20 {
			t.Fatalf("OneLine(%q) = %q is not one line of 20 cells", text, line)
		}
	})
}

// Output for a terminal has no control of eight bits and no bidirectional control, also if a
// write ends within a character, and JSON stays valid; a pipe receives the bytes.
func TestStreamEscapes(t *testing.T) {
	t.Parallel()
	text := "{\"a\":\"x\u009b2J\u202e\u200f\"}\n"
	for terminal, want := range map[bool]string{true: `{"a":"x\u009b2J\u202e\u200f"}` + "\n", false: text} {
		for at := range text {
			var out strings.Builder
			s := &Stream{w: &out, Terminal: terminal}
			for _, part := range []string{text[:at], text[at:]} {
				if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
			if out.String() != want || !json.Valid([]byte(out.String())) {
				t.Errorf("cut at %d: %q, want %q", at, out.String(), want)
			}
		}
	}
}

func TestLogsHideSecrets(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: redacted}))
	log.Error("get https://me:geheim@host", "url", "https://host/?token=geheim", "error",
		errors.New("https://host/?sig=geheim: timeout"), "n", 3)
	if strings.Contains(out.String(), "geheim") || !strings.Contains(out.String(), "timeout") ||
		!strings.Contains(out.String(), "n=3") {
		t.Errorf("%s", out.String())
	}
	if got := paragraph("connect postgres://me:geheim@host/db: refused"); strings.Contains(got, "geheim") {
		t.Errorf("%s", got)
	}
}
