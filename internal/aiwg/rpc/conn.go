package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/perdure/perdure"
)

// conn is one client. Its requests are answered one after another, in order; a
// client that does not read holds up nobody but itself, and not for long.
type conn struct {
	net.Conn
	s   *Server
	in  *lineReader
	out *bufio.Writer
	// tasks are those it works on, guarded by the server's desks.
	tasks map[perdure.TaskID]bool
	// ended is closed when it works on none any more.
	ended chan struct{}
}

// patient gives each write its time.
type patient struct {
	net.Conn
	most time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(p.most)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// converse serves a connection until it ends.
func (s *Server) converse(ctx context.Context, nc net.Conn) {
	c := &conn{Conn: nc, s: s, in: newLineReader(nc, s.cfg.MaxLineBytes),
		out: bufio.NewWriterSize(patient{nc, s.cfg.WriteTimeout}, 64<<10), tasks: make(map[perdure.TaskID]bool),
		ended: make(chan struct{})}
	defer nc.Close()
	if !s.enter(c) {
		_ = c.tell(&Error{Code: CodeTooManyConns, Message: "there are too many connections",
			Data: &ErrorData{Code: perdure.CodeUnavailable}})
		return
	}
	defer s.leave(c)
	defer func() {
		s.desks.leftBy(c)
		close(c.ended)
	}()
	c.answerAll(ctx)
}

// answerAll answers until nothing comes any more, or nothing can be sent.
func (c *conn) answerAll(ctx context.Context) {
	for {
		line, err := c.in.next()
		switch {
		case errors.Is(err, errLineTooLong):
			err = c.tell(&Error{Code: CodeLineTooLong, Message: "the line is longer than " + byteCount(c.s.cfg.MaxLineBytes) +
				" and was not looked at",
				Data: &ErrorData{Code: perdure.CodeInvalid}})
		case err == nil:
			err = c.take(ctx, bytes.TrimSpace(line))
		}
		if err != nil {
			return
		}
	}
}

// take answers a line.
func (c *conn) take(ctx context.Context, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	requests, batch, refused := readMessage(line)
	if refused != nil {
		return c.tell(refused)
	}
	if !batch {
		r, wanted := c.s.answer(ctx, c, requests[0])
		if !wanted {
			return nil
		}
		return c.write(nil, r, []byte("\n"))
	}
	// The answers go out one by one: together they may be larger than memory.
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
		return nil // nothing but notifications
	}
	_, err := c.out.WriteString("]\n")
	return errors.Join(err, c.out.Flush())
}

// tell answers what could not be read as a request.
func (c *conn) tell(e *Error) error {
	return c.write(nil, reply{Version: "2.0", Error: e, ID: json.RawMessage("null")}, []byte("\n"))
}

// write sends an answer. With after it is the last one of the line.
func (c *conn) write(before []byte, r reply, after []byte) error {
	raw, err := encode(r)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{before, raw, after} {
		if _, err := c.out.Write(part); err != nil {
			return err
		}
	}
	if after == nil {
		return nil
	}
	return c.out.Flush()
}
