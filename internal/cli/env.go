package cli

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/term"
)

// Env is all a command knows of the world around it, so that commands run in
// tests without processes. The zero value of a field means: there is none.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal returns the width of the terminal behind one of the three
	// streams, and false when there is no terminal.
	Terminal func(stream any) (width int, ok bool)
	// Args are the command line without the program's name.
	Args []string
	// Environ are the environment's variables as NAME=value.
	Environ []string
	// Cwd is the working directory, absolute.
	Cwd string
	// Signals delivers Ctrl-C and the request to end. The first stops cleanly,
	// the second at once.
	Signals <-chan os.Signal
}

// System returns the environment of this process. It takes over its signals:
// a closed pipe becomes an error of the write instead of the end of the
// process, and children do not inherit that.
func System(cwd string) Env {
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: terminalWidth,
		Args:     os.Args[1:],
		Environ:  os.Environ(),
		Cwd:      cwd,
		Signals:  stops,
	}
}

// terminalWidth asks the system, not the terminal: a question to the terminal
// hangs where nobody answers it.
func terminalWidth(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return 0, false
	}
	width, _, err := term.GetSize(f.Fd())
	if err != nil || width <= 0 {
		width = defaultWidth
	}
	return width, true
}

const (
	defaultWidth = 80
	// maxWidth keeps lines readable on wide terminals.
	maxWidth = 120
)

func (e Env) withDefaults() Env {
	if e.Stdin == nil {
		e.Stdin = strings.NewReader("")
	}
	if e.Stdout == nil {
		e.Stdout = io.Discard
	}
	if e.Stderr == nil {
		e.Stderr = io.Discard
	}
	if e.Terminal == nil {
		e.Terminal = func(any) (int, bool) { return 0, false }
	}
	return e
}

// getenv looks up an environment variable; the last of its name counts.
func (e Env) getenv(name string) string {
	for _, entry := range slices.Backward(e.Environ) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// stream is one of the two streams a command prints to. It remembers the first
// error, so that commands print without asking after each line.
type stream struct {
	w     io.Writer
	width int
	// terminal: a person reads it. color: and wants colours.
	terminal, color bool
	err             error
}

func (e Env) stream(w io.Writer) *stream {
	width, terminal := e.Terminal(w)
	if !terminal {
		width = defaultWidth
	}
	return &stream{
		w: w, width: min(width, maxWidth), terminal: terminal,
		color: terminal && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb",
	}
}

// Write hands p on; after an error it swallows everything.
func (s *stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return len(p), nil //nolint:nilerr // failed tells of it, once
	}
	if _, err := s.w.Write(p); err != nil {
		s.err = err
	}
	return len(p), nil
}

// failed returns what went wrong with the stream. A reader that went away is
// nothing wrong: it had enough.
func (s *stream) failed() error {
	if s.gone() {
		return nil
	}
	return s.err
}

// gone tells whether the reader went away.
func (s *stream) gone() bool {
	return errors.Is(s.err, syscall.EPIPE) || errors.Is(s.err, io.ErrClosedPipe)
}
