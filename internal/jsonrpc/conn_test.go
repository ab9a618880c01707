package jsonrpc_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/jsonrpc"
)

// writing returns a connection whose messages are written, and the end that the peer reads.
func writing(t *testing.T) (*jsonrpc.Conn, *io.PipeReader) {
	t.Helper()
	r, w := io.Pipe()
	c := jsonrpc.NewConn(w, func() {})
	done := make(chan struct{})
	go func() { defer close(done); c.Write() }()
	t.Cleanup(func() {
		_ = r.Close()
		c.CloseInput()
		<-done
	})
	return c, r
}

// lines counts the messages that the peer reads until the end.
func lines(r io.Reader) (n int) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		n++
	}
	return n
}

// A peer that reads more slowly than notifications are made receives all of them.
func TestNotifyWhenRead(t *testing.T) {
	t.Parallel()
	c, r := writing(t)
	const n = 200
	text := strings.Repeat("x", 200_000)
	go func() {
		for range n {
			c.NotifyWhenRead(t.Context(), "m", text)
		}
		c.CloseInput()
	}()
	<-time.After(100 * time.Millisecond) // the peer is slow
	if got := lines(r); got != n || c.Err() != nil {
		t.Errorf("the peer received %d of %d messages, %v", got, n, c.Err())
	}
}

// In addition to a message of any size, others are queued. A peer that then still does not read has
// failed.
func TestQueue(t *testing.T) {
	t.Parallel()
	c, r := writing(t)
	c.Notify("m", "first")
	c.Notify("m", strings.Repeat("x", 8<<20))
	c.Answer([]byte("7"), "the answer")
	c.CloseInput()
	if got := lines(r); got != 3 || c.Err() != nil {
		t.Errorf("the peer received %d of 3 messages, %v", got, c.Err())
	}
	c, _ = writing(t)
	for range 100 {
		c.Notify("m", strings.Repeat("x", 100_000))
	}
	if err := c.Err(); !errors.Is(err, jsonrpc.ErrNotReading) {
		t.Errorf("a peer that reads nothing: %v", err)
	}
}
