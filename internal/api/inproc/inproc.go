// Package inproc serves HTTP requests inside the process: an
// [net/http.RoundTripper] over an [net/http.Handler], without a socket.
//
// A program that has no server to talk to gives its client this transport and
// runs the very handler that a server would run: the same requests, errors and
// streams. Bodies stream in both directions, through a bounded buffer, so a
// handler that writes faster than the caller reads waits as it would on a
// connection.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
)

// ErrClosed is returned for a request to a transport that was closed.
var ErrClosed = errors.New("in-process transport is closed")

// PanicError reports a handler that panicked. It is returned by RoundTrip, or
// by the response body when the header was already there.
type PanicError struct {
	// Value is what was given to panic.
	Value any
	// Stack is where, for a log; Error does not show it.
	Stack []byte
}

// Error shows the value.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// Transport serves requests with Handler, each in a goroutine of its own. It
// may be used from several goroutines at once and must not be copied.
type Transport struct {
	// Handler serves the requests. It is called with a request as a server
	// would make it: its context ends when the caller's does, when the caller
	// closes the response body, and when the transport is closed.
	Handler http.Handler

	mu      sync.Mutex // guards what follows
	closed  bool
	running map[*exchange]struct{}
	wait    sync.WaitGroup
}

// RoundTrip starts the handler and returns when it has written its header.
// When the request's context ends before, it returns the context's error at
// once; Close waits for the handler. The request's body is closed in all cases,
// possibly after RoundTrip returned.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	x := &exchange{
		cancel: cancel,
		body: &requestBody{req.Body, sync.OnceFunc(func() {
			if req.Body != nil {
				_ = req.Body.Close()
			}
		})},
		out: newResponse(ctx, req.Method == http.MethodHead),
	}
	if err := t.begin(x); err != nil {
		cancel(err)
		x.body.close()
		return nil, err
	}
	// A handler that waits for more of the request must not outlive the caller.
	stop := context.AfterFunc(ctx, x.body.close)
	go func() {
		defer t.end(x)
		defer stop()
		x.serve(t.Handler, serverRequest(ctx, req, x.body))
	}()
	select {
	case <-x.out.ready:
	case <-ctx.Done():
		if !x.out.begun() { // the handler's own end ends the context too
			return nil, context.Cause(ctx)
		}
	}
	return x.response(req)
}

// Close refuses further requests, ends the contexts of those that run and
// waits until their handlers have returned.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	for x := range t.running {
		x.cancel(ErrClosed)
	}
	t.mu.Unlock()
	t.wait.Wait()
}

func (t *Transport) begin(x *exchange) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if t.running == nil {
		t.running = make(map[*exchange]struct{})
	}
	t.running[x] = struct{}{}
	t.wait.Add(1)
	return nil
}

func (t *Transport) end(x *exchange) {
	x.cancel(nil)
	t.mu.Lock()
	delete(t.running, x)
	t.mu.Unlock()
	t.wait.Done()
}

// exchange is one request and its response.
type exchange struct {
	cancel context.CancelCauseFunc
	body   *requestBody
	out    *response
}

// serve runs the handler and turns a panic into the end of the response.
func (x *exchange) serve(h http.Handler, r *http.Request) {
	defer x.body.close()
	defer func() {
		switch v := recover(); v {
		case nil:
			x.out.finish(nil)
		case http.ErrAbortHandler:
			x.out.finish(io.ErrUnexpectedEOF)
		default:
			x.out.finish(&PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	h.ServeHTTP(x.out, r)
}

// response returns the response, or why the handler ended without one.
func (x *exchange) response(req *http.Request) (*http.Response, error) {
	x.out.mu.Lock()
	defer x.out.mu.Unlock()
	status := x.out.status
	if status == 0 && x.out.err != nil {
		return nil, x.out.err
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        x.out.sent,
		Body:          &responseBody{out: x.out, cancel: x.cancel},
		ContentLength: x.out.length,
		Request:       req,
	}, nil
}

// serverRequest is the request as a server reads it from a connection: the URL
// has a path and a query only, and the body is never nil.
func serverRequest(ctx context.Context, req *http.Request, body io.ReadCloser) *http.Request {
	r := req.Clone(ctx)
	r.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = "@"
	if r.Host == "" {
		r.Host = req.URL.Host
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Header = req.Header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.GetBody = nil
	r.Body = body
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		r.Body, r.ContentLength = http.NoBody, 0
	case req.ContentLength == 0:
		r.ContentLength = -1
	}
	return r
}

// requestBody is the caller's body, which is closed once.
type requestBody struct {
	io.Reader
	close func()
}

// Close closes the caller's body.
func (b *requestBody) Close() error {
	b.close()
	return nil
}

// responseBody is the reading end of a response.
type responseBody struct {
	out    *response
	cancel context.CancelCauseFunc
}

// Read waits for bytes, the end of the handler, or the end of the context.
func (b *responseBody) Read(p []byte) (int, error) { return b.out.read(p) }

// Close ends the handler's context when it still runs; its further writes
// fail.
func (b *responseBody) Close() error {
	b.out.hangUp()
	b.cancel(errHungUp)
	return nil
}
