package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// errStopping is the cause of the end of all turns: the editor is gone, or the process stops.
var errStopping = errors.New("the agent stops")

// writeGrace is the time that an editor has to read the last messages.
const writeGrace = 5 * time.Second

// server is the agent of one editor.
type server struct {
	cfg  Config
	conn *jsonrpc.Conn
	ctx  context.Context // of all turns; it ends before Serve returns
	work sync.WaitGroup  // of all turns

	mu       sync.Mutex // guards the following
	greeted  bool
	sessions map[string]*session
	// created are the trees that this process has created. Only their gates are answered with a
	// token: a program outside of the guard of a loop could start another process to answer.
	created map[perdure.TreeID]bool
}

// own reports whether this process has created a tree.
func (s *server) own(id perdure.TreeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created[id]
}

// Serve answers the requests of an editor from in until in or ctx ends. It then pauses the loops
// and stops the runs of this process, which can be continued, and returns.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.WriteCloser) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxMessageBytes == 0 {
		cfg.MaxMessageBytes = DefaultMaxMessageBytes
	}
	turns, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s := &server{cfg: cfg, conn: jsonrpc.NewConn(out, func() {}), ctx: turns, sessions: make(map[string]*session),
		created: make(map[perdure.TreeID]bool)}
	written, read := make(chan struct{}), make(chan struct{})
	go func() { defer close(written); s.conn.Write() }()
	go func() { defer close(read); s.conn.Read(in, cfg.MaxMessageBytes, s) }()
	select {
	case <-read:
	case <-ctx.Done(): // a read of standard input cannot be interrupted; the process is about to exit
	}
	stop(errStopping)
	s.work.Wait()
	s.conn.CloseInput()
	grace := time.NewTimer(writeGrace)
	defer grace.Stop()
	select {
	case <-written:
	case <-grace.C:
	}
	if err := s.conn.Err(); err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "serve editor", Err: err}
	}
	return context.Cause(ctx)
}

// Notified receives a notification of the editor.
func (s *server) Notified(m *jsonrpc.Message, _ json.RawMessage) {
	if m.Method != methodCancel {
		return // $/cancel_request and extensions need no answer
	}
	var p modeParams
	_ = jsonrpc.Lenient(m.Params, &p) // without an ID there is no session
	s.mu.Lock()
	ss := s.sessions[p.SessionID]
	s.mu.Unlock()
	if ss != nil {
		ss.cancel()
	}
}

// Asked answers a request of the editor. Turns and the loading of sessions take long and have
// goroutines of their own.
func (s *server) Asked(m *jsonrpc.Message, _ json.RawMessage) {
	if m.Version != "2.0" || !validID(m.ID) {
		s.conn.Refuse(idOf(m.ID), jsonrpc.CodeInvalidRequest,
			`invalid request: "jsonrpc" has to be "2.0", and "id" a string or a number`)
		return
	}
	if err := s.allowed(m.Method); err != nil {
		s.finish(m, nil, err)
		return
	}
	switch m.Method {
	case methodInitialize:
		s.finish(m, s.initialize(), nil)
	case methodAuthenticate:
		s.finish(m, object{}, nil) // no methods are offered, so nothing is missing
	case methodNew:
		s.open(m)
	case methodSetMode:
		s.setMode(m)
	case methodLoad:
		s.work.Go(func() { s.load(m) })
	case methodPrompt:
		s.prompt(m)
	}
}

// allowed returns an error for a method that is not known, or that needs initialize before it.
func (s *server) allowed(method string) error {
	switch method {
	case methodInitialize:
		return nil
	case methodAuthenticate, methodNew, methodLoad, methodSetMode, methodPrompt:
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.greeted {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "initialize has to be the first request"}
		}
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeNoMethod, Message: fmt.Sprintf("unknown method %.100q", method)}
}

// initialize returns what this agent can do. The version is its own, also if the editor asked for
// another: the editor then decides whether to continue.
func (s *server) initialize() object {
	s.mu.Lock()
	s.greeted = true
	s.mu.Unlock()
	return object{
		"protocolVersion": protocolVersion,
		"agentCapabilities": object{
			"loadSession":        true,
			"promptCapabilities": object{"image": false, "audio": false, "embeddedContext": true},
			"mcpCapabilities":    object{"http": false, "sse": false},
		},
		"authMethods": []any{},
		"agentInfo":   object{"name": "perdure", "title": "perdure", "version": s.cfg.Version},
	}
}

// Strange refuses JSON that is neither a request nor the response to one, except responses: the
// request may have been withdrawn.
func (s *server) Strange(line json.RawMessage) {
	var m jsonrpc.Message
	_ = jsonrpc.Lenient(line, &m) // fields of another type are not present
	if jsonrpc.Present(m.Result) || jsonrpc.Present(m.Error) {
		return
	}
	s.conn.Refuse(idOf(m.ID), jsonrpc.CodeInvalidRequest, `invalid request: "method" is missing or not a string`)
}

// Noise refuses a line that is not a JSON object.
func (s *server) Noise(line []byte) {
	if json.Valid(line) {
		s.conn.Refuse(nullID(), jsonrpc.CodeInvalidRequest,
			"invalid request: not an object; batches are not part of the protocol")
		return
	}
	s.conn.Refuse(nullID(), jsonrpc.CodeParse, "parse error: the line is not JSON")
}

// Left refuses a message over the limit. The connection continues.
func (s *server) Left(f jsonrpc.Frame) error {
	s.conn.Refuse(headID(f.Data), jsonrpc.CodeInvalidRequest,
		fmt.Sprintf("the message has %d bytes, at most %d are read", f.Size, s.cfg.MaxMessageBytes))
	return nil
}

// finish answers a request with its result or its error.
func (s *server) finish(m *jsonrpc.Message, result any, err error) {
	if err == nil {
		s.conn.Answer(m.ID, result)
		return
	}
	s.conn.Refuse(m.ID, codeOf(err), message(err))
}

// codeOf returns the code of JSON-RPC for an error.
func codeOf(err error) int64 {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code
	}
	switch perdure.CodeOf(err) {
	case perdure.CodeInvalid:
		return jsonrpc.CodeInvalidParams
	case perdure.CodeNotFound:
		return jsonrpc.CodeNotFound
	}
	return jsonrpc.CodeInternal
}

// message returns an error and its hint for the user.
func message(err error) string {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Message
	}
	if hint := perdure.HintOf(err); hint != "" {
		return err.Error() + "\n" + hint
	}
	return err.Error()
}

// invalidf returns an error for parameters that are not valid.
func invalidf(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// parse decodes the parameters of a request.
func parse(params json.RawMessage, to any) error {
	if !jsonrpc.Present(params) {
		return invalidf("the request has no parameters")
	}
	if err := json.Unmarshal(params, to); err != nil {
		return invalidf("invalid parameters: %s", err)
	}
	return nil
}

// validID reports whether JSON is the ID of a request: a string or a number.
func validID(id json.RawMessage) bool { return bytes.ContainsAny(id[:1], `"-0123456789`) }

// nullID is the ID of an error whose request is not known.
func nullID() json.RawMessage { return json.RawMessage("null") }

// idOf returns an ID, or null for one that is missing or not valid.
func idOf(id json.RawMessage) json.RawMessage {
	if len(id) == 0 || !validID(id) {
		return nullID()
	}
	return id
}

// headID returns the ID of the request whose line begins with head, null if it is not there.
func headID(head []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(head))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nullID()
	}
	for {
		key, err := dec.Token()
		if err != nil {
			return nullID()
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nullID()
		}
		if key == "id" {
			return idOf(value)
		}
	}
}
