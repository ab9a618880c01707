package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// conn is the connection of a client. Its requests are answered one after another, so a
// client that does not read blocks only itself, until the write timeout.
type conn struct {
	net.Conn
	s   *Server
	in  *lineReader
	out *bufio.Writer
	// tasks are the tasks it owns, guarded by workItems.mu.
	tasks map[perdure.TaskID]bool
	// ended is closed when the connection has ended and owns no tasks.
	ended chan struct{}
}

// deadlineWriter sets a deadline for each write.
type deadlineWriter struct {
	net.Conn
	timeout time.Duration
}

func (w deadlineWriter) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(b)
}

// serveConn serves a connection until it ends.
func (s *Server) serveConn(ctx context.Context, nc net.Conn) {
	c := &conn{Conn: nc, s: s, in: newLineReader(nc, s.cfg.MaxLineBytes),
		out: bufio.NewWriterSize(deadlineWriter{nc, s.cfg.WriteTimeout}, 64<<10), tasks: make(map[perdure.TaskID]bool),
		ended: make(chan struct{})}
	defer nc.Close()
	if !s.addConn(c) {
		_ = c.sendError(&Error{Code: CodeTooManyConns,
			Message: fmt.Sprintf("too many connections: the limit is %d", s.cfg.MaxConns),
			Data:    &ErrorData{Code: perdure.CodeUnavailable}})
		return
	}
	defer s.removeConn(c)
	defer func() {
		s.items.disconnect(c)
		close(c.ended)
	}()
	c.serve(ctx)
}

// serve answers lines until no more can be read or an answer cannot be sent.
func (c *conn) serve(ctx context.Context) {
	for {
		line, err := c.in.next()
		switch {
		case errors.Is(err, errLineTooLong):
			err = c.sendError(&Error{Code: CodeLineTooLong,
				Message: fmt.Sprintf("the line is longer than %d bytes and was skipped", c.s.cfg.MaxLineBytes),
				Data:    &ErrorData{Code: perdure.CodeInvalid}})
		case err == nil:
			err = c.answerLine(ctx, bytes.TrimSpace(line))
		}
		if err != nil {
			return
		}
	}
}

// answerLine answers a line.
func (c *conn) answerLine(ctx context.Context, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	requests, batch, refused := readMessage(line)
	if refused != nil {
		return c.sendError(refused)
	}
	if !batch {
		r, wanted := c.s.answer(ctx, c, requests[0])
		if !wanted {
			return nil
		}
		return c.write(nil, r, []byte("\n"))
	}
	// The answers are sent one by one: together they could be larger than memory.
	before := []byte("[")
	for _, raw := range requests {
		r, wanted := c.s.answer(ctx, c, raw)
		if !wanted {
			continue
		}
		if err := c.write(before, r, nil); err != nil {
			return err
		}
		before = []byte(",")
	}
	if before[0] == '[' {
		return nil // only notifications
	}
	_, err := c.out.WriteString("]\n")
	return errors.Join(err, c.out.Flush())
}

// sendError answers a line that is not a request.
func (c *conn) sendError(e *Error) error {
	return c.write(nil, reply{Version: "2.0", Error: e, ID: json.RawMessage("null")}, []byte("\n"))
}

// write sends an answer, with after the last one of a line.
func (c *conn) write(before []byte, r reply, after []byte) error {
	raw, err := jsontree.Marshal(r, "")
	if err != nil {
		return err
	}
	if _, err := c.out.Write(slices.Concat(before, raw, after)); err != nil || after == nil {
		return err
	}
	return c.out.Flush()
}
