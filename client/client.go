// Package client speaks the HTTP API /v1 of perdure: with a daemon over its
// Unix socket, or with a handler in the same process.
//
// There is one method for each endpoint. Errors are [*perdure.Error] with the
// code the server gave, so errors.Is(err, perdure.ErrNotFound) works here as it
// does on a store. An error to reach the server has perdure.CodeUnavailable, and
// one because the context ended perdure.CodeCanceled.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/perdure/perdure"
)

// Config says how to reach the server. Exactly one of Socket and Transport is
// set.
type Config struct {
	// Socket is the path of the daemon's Unix socket.
	Socket string
	// Transport carries the requests instead, to any host it knows; the client
	// does not close it.
	Transport http.RoundTripper
	// PingTimeout is how long Ping waits for an answer. Defaults to 2 s.
	PingTimeout time.Duration
	// Patience is how long Events keeps trying to reach a server that is
	// gone. Defaults to 1 min; negative means without end.
	Patience time.Duration
	// Silence is how long an event stream may be silent before Events connects
	// again; the server shows signs of life every 15 s. Defaults to 1 min.
	Silence time.Duration
}

// Client is a client of the API. It may be used from several goroutines at
// once.
type Client struct {
	cfg  Config
	http *http.Client
	own  *http.Transport // closed by Close; nil when the transport was given
}

func (c Config) withDefaults() Config {
	c.PingTimeout = cmp.Or(c.PingTimeout, 2*time.Second)
	c.Patience = cmp.Or(c.Patience, time.Minute)
	c.Silence = cmp.Or(c.Silence, time.Minute)
	return c
}

// New returns a client. It does not connect; Ping does. It fails with
// perdure.CodeInvalid when the configuration names no way to the server, two, or
// a path that no socket can have.
func New(cfg Config) (*Client, error) {
	const op = "make client"
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg}
	switch {
	case cfg.Socket == "" && cfg.Transport == nil:
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: "neither a socket nor a transport is given"}
	case cfg.Socket != "" && cfg.Transport != nil:
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: "both a socket and a transport are given"}
	case cfg.Transport != nil:
		c.http = &http.Client{Transport: cfg.Transport}
		return c, nil
	}
	if err := checkSocketPath(cfg.Socket); err != nil {
		return nil, err
	}
	c.own = socketTransport(cfg.Socket)
	c.http = &http.Client{Transport: c.own}
	return c, nil
}

// Close closes connections that no request uses. The client may be used
// further.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// host stands in the URLs; the transport decides where requests go.
const host = "http://perdure"

// request is one exchange of JSON.
type request struct {
	op     string // for errors
	method string
	path   string
	query  url.Values
	header http.Header
	body   any // nil for none; an io.Reader of a tar file is sent as it is
	out    any // what the response is decoded into
}

// get sends a request without a body and returns the decoded answer.
func get[T any](ctx context.Context, c *Client, op, path string, query url.Values) (T, error) {
	return do[T](ctx, c, &request{op: op, method: http.MethodGet, path: path, query: query})
}

// post sends a body and returns the decoded answer.
func post[T any](ctx context.Context, c *Client, op, path string, body any) (T, error) {
	return do[T](ctx, c, &request{op: op, method: http.MethodPost, path: path, body: body})
}

// do sends a request and returns the decoded answer.
func do[T any](ctx context.Context, c *Client, r *request) (T, error) {
	var out T
	r.out = &out
	err := c.do(ctx, r)
	return out, err
}

func (c *Client) do(ctx context.Context, r *request) error {
	body, kind := io.Reader(nil), "application/x-tar"
	if stream, ok := r.body.(io.Reader); ok {
		body = stream
	} else if r.body != nil {
		var encoded bytes.Buffer
		enc := json.NewEncoder(&encoded)
		enc.SetEscapeHTML(false) // values of variables stay as they are
		if err := enc.Encode(r.body); err != nil {
			return &perdure.Error{Code: perdure.CodeInvalid, Op: r.op, Msg: "the request cannot be written as JSON", Err: err}
		}
		body, kind = &encoded, "application/json"
	}
	req, err := newRequest(ctx, r, body)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.transportError(ctx, r.op, err)
	}
	return c.answer(ctx, r, resp)
}

func newRequest(ctx context.Context, r *request, body io.Reader) (*http.Request, error) {
	target := host + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: r.op, Msg: "the request cannot be made", Err: err}
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	return req, nil
}

// answer decodes a response, or the problem it reports, and closes it.
func (c *Client) answer(ctx context.Context, r *request, resp *http.Response) error {
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return problemError(r.op, resp)
	}
	dec := json.NewDecoder(resp.Body)
	if err := dec.Decode(r.out); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &kind) {
			return &perdure.Error{Code: perdure.CodeInternal, Op: r.op, Msg: "unknown form of the server's answer",
				Hint: "server and client may be of different versions", Err: err}
		}
		return c.transportError(ctx, r.op, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	return nil
}

// query returns the parameters of a request, given as names that are each followed by
// a value. Zero values are left out; a list repeats its parameter.
func query(pairs ...any) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name := fmt.Sprint(pairs[i])
		switch value := reflect.ValueOf(pairs[i+1]); {
		case value.Kind() == reflect.Slice:
			for k := range value.Len() {
				v.Add(name, fmt.Sprint(value.Index(k)))
			}
		case !value.IsZero():
			v.Set(name, fmt.Sprint(value))
		}
	}
	return v
}

// pages yields the entries of a list page by page; read returns the page after a place
// and the place of the next one, which is zero behind the last page. An error is
// yielded last.
func pages[T any, P comparable](after P, read func(after P) (page []T, next P, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var end P
		for at := after; ; {
			page, next, err := read(at)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if at = next; at == end {
				return
			}
		}
	}
}

func treePath(id perdure.TreeID, rest string) string {
	return "/v1/trees/" + url.PathEscape(string(id)) + rest
}

func taskPath(id perdure.TaskID, rest string) string { return "/v1/tasks/" + id.String() + rest }
