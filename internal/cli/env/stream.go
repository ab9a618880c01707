package env

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/perdure/perdure/internal/text/human"
)

const (
	defaultWidth = 80
	// MaxWidth bounds the width of lines on wide terminals.
	MaxWidth = 120
)

// Stream is standard output or standard error. It keeps the first error of a
// write, so that commands print without checking each line. Write may be called from many
// goroutines.
type Stream struct {
	mu sync.Mutex // guards w, err and rest
	w  io.Writer
	// Width is the number of cells of a line.
	Width int
	// Terminal reports whether the stream is a terminal, Color whether it shows
	// colors.
	Terminal, Color bool
	err             error
	rest            []byte // an incomplete character for the terminal
}

func (e *Env) stream(w io.Writer) *Stream {
	width, terminal := e.Terminal(w)
	if !terminal {
		width = defaultWidth
	}
	return &Stream{
		w: w, Width: min(width, MaxWidth), Terminal: terminal,
		Color: terminal && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb",
	}
}

// Write writes p. On a terminal, controls of eight bits and bidirectional controls are
// escaped, also in JSON. After an error it discards p and reports success.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return len(p), nil //nolint:nilerr // Failed reports it, once
	}
	shown := p
	if s.Terminal {
		shown, s.rest = human.Escaped(append(s.rest, p...))
	}
	if _, err := s.w.Write(shown); err != nil {
		s.err = err
	}
	return len(p), nil
}

// Stopped reports whether a write failed, so that further output is lost.
func (s *Stream) Stopped() bool { return s.first() != nil }

// first returns the first error of a write.
func (s *Stream) first() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Why describes the first error of a write.
func (s *Stream) Why() string {
	switch err := s.first(); {
	case err == nil:
		return ""
	case closedPipe(err):
		return "the reader closed the output"
	default:
		return err.Error()
	}
}

// Failed returns the first error of a write. A pipe that the reader closed is not an
// error.
func (s *Stream) Failed() error {
	err := s.first()
	if closedPipe(err) {
		return nil
	}
	return err
}

// closed reports whether the reader closed the pipe.
func (s *Stream) closed() bool { return closedPipe(s.first()) }

func closedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
