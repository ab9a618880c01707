// Package replyserver is an HTTP server that answers requests to models with prepared bytes: raw
// answers as servers in use send them, or streamed replies of the OpenAI protocol.
package replyserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Request is one request that the server received.
type Request struct {
	// Number counts the requests from 1, in the order in which their bodies were read.
	Number int
	Path   string
	Header http.Header
	Body   []byte
}

// Server answers each POST with what a function returns for it. It is safe for concurrent use.
type Server struct {
	// URL is the base URL of the OpenAI protocol, which ends in /v1.
	URL    string
	server *httptest.Server
	answer func(Request) []byte

	mu       sync.Mutex // guards all below
	requests []Request
}

// Start starts a server that ends with the test. answer returns the whole answer, status line
// and headers included, for example by [Chat] or from a file; an empty one closes the connection.
// It is called concurrently.
func Start(tb testing.TB, answer func(Request) []byte) *Server {
	tb.Helper()
	s := &Server{answer: answer}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL + "/v1"
	tb.Cleanup(s.server.Close)
	return s
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Root returns the URL of the server without a path, as providers other than OpenAI take it.
func (s *Server) Root() string { return s.server.URL }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	req := Request{Number: len(s.requests) + 1, Path: r.URL.Path, Header: r.Header, Body: body}
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = conn.Write(s.answer(req))
	_ = conn.Close()
}

// Chat returns a streamed answer of the OpenAI protocol with this text.
func Chat(text string) []byte {
	var b bytes.Buffer
	chunk := func(delta map[string]any, finish any) {
		data, err := json.Marshal(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "data: %s\n\n", data)
	}
	chunk(map[string]any{"content": text}, nil)
	chunk(map[string]any{}, "stop")
	b.WriteString("data: [DONE]\n\n")
	return answer(http.StatusOK, "text/event-stream", b.Bytes())
}

// JSON returns an answer with a status and a body of JSON.
func JSON(status int, body string) []byte { return answer(status, "application/json", []byte(body)) }

func answer(status int, contentType string, body []byte) []byte {
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), contentType, len(body))
	return append([]byte(head), body...)
}
