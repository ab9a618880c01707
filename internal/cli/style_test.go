package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// screen is a stream as a terminal of the given width shows it, without
// colours.
func screen(width int) (*stream, *bytes.Buffer) {
	var b bytes.Buffer
	return &stream{w: &b, width: width, terminal: true}, &b
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

func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b[2J", "\u202e", "\xff\xfe", "a\r\r\nb", "\x9b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if line := oneLine(text, 20); strings.ContainsAny(line, "\n\t") || cells(line) > 20 {
			t.Fatalf("oneLine(%q) = %q is not one line of 20 cells", text, line)
		}
	})
}
