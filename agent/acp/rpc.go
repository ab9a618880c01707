package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Codes of JSON-RPC and of the protocol.
const (
	codeAuthRequired  = -32000
	codeNotFound      = -32002
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
)

// Causes of the end of a connection.
var (
	errClosed     = errors.New("agent closed the connection")
	errNotReading = errors.New("agent asks without reading the answers")
)

// maxQueued bounds what waits to be read by the agent, in addition to one message
// of any size. An agent that floods with requests and reads nothing has failed.
const maxQueued = 4 << 20

// message is a request, a notification or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// present reports whether a field was given and is not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// rpcError is an error in a response.
type rpcError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message and the code.
func (e *rpcError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// readError decodes the member "error"; any value of it is an error.
func readError(raw json.RawMessage) *rpcError {
	e := &rpcError{}
	if err := lenient(raw, e); err != nil || (e.Message == "" && e.Code == 0) {
		e.Message = string(raw)
	}
	return e
}

// lenient decodes JSON and passes over fields that are of another type than
// expected: the rest still counts.
func lenient(raw json.RawMessage, to any) error {
	err := json.Unmarshal(raw, to)
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrongType.Field != "" {
		return nil
	}
	return err
}

// reply is what came of a request of ours.
type reply struct {
	result json.RawMessage
	// raw is the whole message.
	raw json.RawMessage
	err error // an *rpcError, or why no response comes any more
}

// handler receives what the agent sends, one message at a time. The connection
// reads on when a method returns.
type handler interface {
	// notified: a notification.
	notified(m *message, raw json.RawMessage)
	// asked: a request, to be answered once with conn.answer or conn.refuse.
	asked(m *message, raw json.RawMessage)
	// strange: unexpected JSON.
	strange(raw json.RawMessage)
	// noise: a line that is not a message.
	noise(line []byte)
	// left: a message over the limit that was left out; f has its head.
	left(f frame)
}

// conn is one side of a JSON-RPC connection over lines. Its methods are safe
// for concurrent use. Two goroutines serve it: read and write.
type conn struct {
	in io.WriteCloser
	// heard is called for each line of the agent.
	heard func()
	wake  chan struct{} // wakes write when there is something to do
	// dead is closed when no more replies come; err is set before.
	dead chan struct{}
	err  error

	mu      sync.Mutex // guards the following
	next    int64
	pending map[int64]func(reply)
	ended   bool // dead is closed or about to be
	queue   [][]byte
	queued  int
	closing bool // write closes the agent's input when the queue is empty
	broken  bool // write has ended
	// replaced is whether bytes that are no UTF-8 were replaced.
	replaced bool
}

func newConn(in io.WriteCloser, heard func()) *conn {
	return &conn{
		in: in, heard: heard, wake: make(chan struct{}, 1), dead: make(chan struct{}), pending: make(map[int64]func(reply)),
	}
}

// send sends a request. done is called once, from the goroutine that reads, or
// from this one when the connection has ended.
func (c *conn) send(method string, params any, done func(reply)) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		done(reply{err: c.err})
		return
	}
	c.next++
	id := c.next
	c.pending[id] = done
	c.mu.Unlock()
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

// notify sends a notification.
func (c *conn) notify(method string, params any) {
	c.post(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// answer answers a request of the agent.
func (c *conn) answer(id json.RawMessage, result any) {
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// refuse answers a request of the agent with an error.
func (c *conn) refuse(id json.RawMessage, code int64, text string) {
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "error": &rpcError{Code: code, Message: text}})
}

// post queues a message. It does not wait, so that reading never depends on
// whether the agent reads.
func (c *conn) post(m map[string]any) {
	line, err := json.Marshal(m)
	if err != nil { // an ID that came in as JSON goes out as such; nothing else can fail
		return
	}
	c.mu.Lock()
	full := len(c.queue) > 0 && c.queued+len(line) > maxQueued
	if !full && !c.broken && !c.closing {
		c.queue = append(c.queue, append(line, '\n'))
		c.queued += len(line)
	}
	c.mu.Unlock()
	if full {
		c.end(errNotReading)
	}
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// closeInput closes the agent's input when what is queued was written.
func (c *conn) closeInput() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.signal()
}

// write writes what is queued until the input is closed or broken.
func (c *conn) write() {
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

func (c *conn) take() (lines [][]byte, closing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines, c.queue, c.queued = c.queue, nil, 0
	return lines, c.closing
}

// giveUp drops what is queued: the agent does not read any more. That alone
// does not end the connection, since it may still have something to say.
func (c *conn) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken, c.queue, c.queued = true, nil, 0
}

// end ends the connection for all calls that wait for replies.
func (c *conn) end(err error) {
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
		done(reply{err: err})
	}
}

// read hands on what the agent sends until the stream ends.
func (c *conn) read(r io.Reader, limit int, h handler) {
	frames := newFrameReader(r, limit)
	for {
		f, err := frames.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: %w", errClosed, err)
			} else {
				err = errClosed
			}
			c.end(err)
			return
		}
		c.heard()
		switch {
		case !f.cut:
			c.handle(f.data, h)
		case droppable(f.data):
			h.left(f)
		default:
			h.left(f)
			c.end(tooLarge(f.size, limit))
		}
	}
}

// handle decodes a line and dispatches it.
func (c *conn) handle(line []byte, h handler) {
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		c.mu.Lock()
		c.replaced = true
		c.mu.Unlock()
	}
	var m message
	var syntax *json.SyntaxError
	if line[0] != '{' || errors.As(lenient(line, &m), &syntax) {
		h.noise(line)
		return
	}
	switch {
	case m.Method != "" && present(m.ID):
		h.asked(&m, line)
	case m.Method != "":
		h.notified(&m, line)
	default:
		c.replied(&m, line, h)
	}
}

// replied passes a response to the call that waits for it.
func (c *conn) replied(m *message, raw json.RawMessage, h handler) {
	id, err := strconv.ParseInt(string(bytes.Trim(m.ID, `"`)), 10, 64)
	c.mu.Lock()
	done := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if err != nil || done == nil {
		h.strange(raw)
		return
	}
	r := reply{result: m.Result, raw: raw}
	if present(m.Error) {
		r.err = readError(m.Error)
	}
	done(r)
}

// wasReplaced reports whether the agent sent bytes that are no UTF-8.
func (c *conn) wasReplaced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replaced
}
