package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Codes of errors: those of JSON-RPC, and two of the Agent Client Protocol.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeAuthRequired   = -32000
	CodeNotFound       = -32002
)

// Causes of the end of a connection.
var (
	ErrClosed     = errors.New("the peer closed the connection")
	ErrNotReading = errors.New("the peer sends requests without reading the responses")
)

// maxQueued bounds what waits to be read by the peer, in addition to one message
// of any size. A peer that floods with requests and reads nothing has failed.
const maxQueued = 4 << 20

// Message is a request, a notification or a response.
type Message struct {
	// Version is the version of JSON-RPC, which has to be "2.0".
	Version string `json:"jsonrpc"`

	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Present reports whether a field is in the JSON and is not null.
func Present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Error is an error in a response.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// readError decodes the member "error"; any value of it is an error.
func readError(raw json.RawMessage) *Error {
	e := &Error{}
	if err := Lenient(raw, e); err != nil || (e.Message == "" && e.Code == 0) {
		e.Message = string(raw)
	}
	return e
}

// Lenient decodes JSON and passes over fields that are of another type than
// expected: the rest still counts.
func Lenient(raw json.RawMessage, to any) error {
	err := json.Unmarshal(raw, to)
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrongType.Field != "" {
		return nil
	}
	return err
}

// Reply is the response to a request.
type Reply struct {
	Result json.RawMessage
	// Raw is the whole message.
	Raw json.RawMessage
	// Err is an [*Error], or the reason why no response comes any more.
	Err error
}

// Handler receives what the peer sends, one message at a time. The connection
// reads on when a method returns.
type Handler interface {
	// Notified receives a notification.
	Notified(m *Message, raw json.RawMessage)
	// Asked receives a request, to be answered once with [Conn.Answer] or [Conn.Refuse].
	Asked(m *Message, raw json.RawMessage)
	// Strange receives unexpected JSON.
	Strange(raw json.RawMessage)
	// Noise receives a line that is not a message.
	Noise(line []byte)
	// Left receives a message over the limit that was left out; f has its head. The error
	// ends the connection.
	Left(f Frame) error
}

// Conn is one side of a JSON-RPC connection over lines. Its methods are safe
// for concurrent use. Two goroutines serve it: Read and Write.
type Conn struct {
	in io.WriteCloser
	// heard is called for each line of the peer.
	heard func()
	wake  chan struct{} // wakes Write when there is something to do
	// dead is closed when no more replies come; err is set before.
	dead chan struct{}
	err  error

	mu      sync.Mutex // guards the following
	next    int64
	pending map[int64]func(Reply)
	ended   bool // dead is closed or about to be
	queue   [][]byte
	queued  int // bytes in queue
	largest int // bytes of its largest message
	// room is closed when Write takes the queue; nil if no call waits for that.
	room    chan struct{}
	closing bool // Write closes the peer's input when the queue is empty
	broken  bool // Write has ended
	// replaced is whether bytes that are no UTF-8 were replaced.
	replaced bool
}

// NewConn returns a connection that writes to in. It calls heard for each line of the peer.
func NewConn(in io.WriteCloser, heard func()) *Conn {
	return &Conn{
		in: in, heard: heard, wake: make(chan struct{}, 1), dead: make(chan struct{}), pending: make(map[int64]func(Reply)),
	}
}

// Send sends a request. done is called once, from the goroutine that reads, or
// from this one when the connection has ended. Send returns the ID of the request.
func (c *Conn) Send(method string, params any, done func(Reply)) int64 {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		done(Reply{Err: c.err})
		return 0
	}
	c.next++
	id := c.next
	c.pending[id] = done
	c.mu.Unlock()
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) {
	c.post(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// NotifyWhenRead is Notify for a sender of many notifications: it waits until the peer has read
// most of those before, or until ctx ends. The goroutine that reads must not call it.
func (c *Conn) NotifyWhenRead(ctx context.Context, method string, params any) {
	c.await(ctx)
	c.Notify(method, params)
}

// await waits while half of what may be queued is.
func (c *Conn) await(ctx context.Context) {
	for {
		c.mu.Lock()
		if c.broken || c.queued-c.largest <= maxQueued/2 {
			c.mu.Unlock()
			return
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
	}
}

// Answer answers a request of the peer.
func (c *Conn) Answer(id json.RawMessage, result any) {
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// Refuse answers a request of the peer with an error.
func (c *Conn) Refuse(id json.RawMessage, code int64, text string) {
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "error": &Error{Code: code, Message: text}})
}

// post queues a message. It does not wait, so that reading never depends on
// whether the peer reads.
func (c *Conn) post(m map[string]any) {
	line, err := json.Marshal(m)
	if err != nil { // an ID that came in as JSON goes out as such; nothing else can fail
		return
	}
	c.mu.Lock()
	largest := max(c.largest, len(line))
	full := c.queued+len(line)-largest > maxQueued
	if !full && !c.broken && !c.closing {
		c.queue = append(c.queue, append(line, '\n'))
		c.queued += len(line)
		c.largest = largest
	}
	c.mu.Unlock()
	if full {
		c.End(ErrNotReading)
	}
	c.signal()
}

func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// CloseInput closes the peer's input when what is queued was written.
func (c *Conn) CloseInput() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.signal()
}

// Write writes what is queued until the input is closed or broken.
func (c *Conn) Write() {
	defer c.in.Close()
	for range c.wake {
		lines, closing := c.take()
		for _, line := range lines {
			if _, err := c.in.Write(line); err != nil {
				c.giveUp()
				return
			}
		}
		if closing {
			return
		}
	}
}

func (c *Conn) take() (lines [][]byte, closing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines = c.queue
	c.empty()
	return lines, c.closing
}

// giveUp drops what is queued: the peer does not read any more. That alone
// does not end the connection, since it may still have something to say.
func (c *Conn) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	c.empty()
}

// empty empties the queue. It is called with mu held.
func (c *Conn) empty() {
	c.queue, c.queued, c.largest = nil, 0, 0
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// End ends the connection for all calls that wait for replies.
func (c *Conn) End(err error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended, c.err = true, err
	pending := c.pending
	c.pending = nil
	c.mu.Unlock()
	close(c.dead)
	for _, done := range pending {
		done(Reply{Err: err})
	}
}

// Read hands on what the peer sends until the stream ends.
func (c *Conn) Read(r io.Reader, limit int, h Handler) {
	frames := NewReader(r, limit)
	for {
		f, err := frames.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: %w", ErrClosed, err)
			} else {
				err = ErrClosed
			}
			c.End(err)
			return
		}
		c.heard()
		if !f.Cut {
			c.handle(f.Data, h)
		} else if err := h.Left(f); err != nil {
			c.End(err)
		}
	}
}

// handle decodes a line and dispatches it.
func (c *Conn) handle(line []byte, h Handler) {
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		c.mu.Lock()
		c.replaced = true
		c.mu.Unlock()
	}
	var m Message
	var syntax *json.SyntaxError
	if line[0] != '{' || errors.As(Lenient(line, &m), &syntax) {
		h.Noise(line)
		return
	}
	switch {
	case m.Method != "" && Present(m.ID):
		h.Asked(&m, line)
	case m.Method != "":
		h.Notified(&m, line)
	default:
		c.replied(&m, line, h)
	}
}

// replied passes a response to the call that waits for it.
func (c *Conn) replied(m *Message, raw json.RawMessage, h Handler) {
	id, err := strconv.ParseInt(string(bytes.Trim(m.ID, `"`)), 10, 64)
	c.mu.Lock()
	done := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if err != nil || done == nil {
		h.Strange(raw)
		return
	}
	r := Reply{Result: m.Result, Raw: raw}
	if Present(m.Error) {
		r.Err = readError(m.Error)
	}
	done(r)
}

// Err returns why the connection has ended, nil if it has not.
func (c *Conn) Err() error {
	select {
	case <-c.dead:
		return c.err
	default:
		return nil
	}
}

// WasReplaced reports whether the peer sent bytes that are no UTF-8.
func (c *Conn) WasReplaced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replaced
}
