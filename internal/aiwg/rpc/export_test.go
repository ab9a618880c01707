package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/perdure/perdure"
)

// AnswerForTest answers lines as a connection would, without one.
func (s *Server) AnswerForTest(ctx context.Context, lines []byte) []byte {
	var out bytes.Buffer
	c := &conn{s: s, in: newLineReader(bytes.NewReader(lines), s.cfg.MaxLineBytes), out: bufio.NewWriter(&out),
		tasks: make(map[perdure.TaskID]bool), ended: make(chan struct{})}
	defer s.items.disconnect(c)
	c.serve(ctx)
	return out.Bytes()
}

// OpenForTest opens the session that Serve would.
func (s *Server) OpenForTest(ctx context.Context) (err error) {
	s.session, err = s.store.OpenSession(ctx, "ipc")
	return err
}

// CloseForTest releases all leases, as Serve at its end.
func (s *Server) CloseForTest(ctx context.Context) error {
	s.releaseAll(ctx)
	return s.session.Close(ctx)
}

// DieForTest ends the session and releases nothing.
func (s *Server) DieForTest(ctx context.Context) error { return s.session.Close(ctx) }

// Lines reads lines of at most so many bytes; one that is too long is nil.
func Lines(r io.Reader, most int) (lines [][]byte, err error) {
	for in := newLineReader(r, most); ; {
		line, err := in.next()
		switch {
		case err == nil:
			lines = append(lines, append([]byte{}, line...))
		case errors.Is(err, errLineTooLong):
			lines = append(lines, nil)
		case errors.Is(err, io.EOF):
			return lines, nil
		default:
			return lines, err
		}
	}
}
