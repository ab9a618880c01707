// Package wire is what the HTTP providers of models share: it sends a request as
// JSON and reads replies, streamed or not, within limits.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/text/sse"
	"github.com/perdure/perdure/model"
)

// userAgent names the program to servers. Some gateways refuse the name that
// net/http sends by default.
const userAgent = "perdure (https://github.com/perdure/perdure)"

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 10

// The errors of a reply that is not in the protocol's form of an answer, and of a
// stream that ended early.
var (
	ErrNotAnswer = errors.New("the reply contains no answer")
	ErrNoEnd     = errors.New("the stream ended without saying that it is complete")
)

// ServerError is an error that a server sends in place of an answer, with a
// status of 200.
type ServerError struct{ fault model.Fault }

// ReadServerError parses a ServerError in the JSON of a reply or an event.
func ReadServerError(data []byte) *ServerError {
	return &ServerError{model.ReadFault(bytes.NewReader(data))}
}

// Error returns the server's message.
func (e *ServerError) Error() string { return e.fault.Text() }

// Caller sends requests to one endpoint. It is safe for concurrent use.
type Caller struct {
	// End is the endpoint. Required.
	End *model.Endpoint
	// Client sends the requests. Required.
	Client *http.Client
	// Header is added to each request.
	Header http.Header
	// Protocol is the name of the protocol, for errors.
	Protocol string
	// Path is where the protocol takes requests, below the endpoint's address.
	Path string
	// Hint returns what a user can do about a refusal. Required.
	Hint func(model.Kind, model.Fault) string
	// ServerErrorKind returns the kind of a [ServerError]. Required.
	ServerErrorKind func(model.Fault) model.Kind
	// MaxAnswer is the largest answer accepted, in bytes. Required.
	MaxAnswer int
	// NoSchema and NoTools are set if schemas of answers and tools are not to be sent.
	NoSchema, NoTools bool
	// Params are further fields of each request.
	Params map[string]json.RawMessage
	// LimitName is the field for the limit of an answer, and MaxOutput the limit if a request has
	// none; 0 for none.
	LimitName string
	MaxOutput int
	// Findings keeps what the server refuses for other processes; nil: only this one knows.
	Findings model.Findings
	// Keeps is set if the server keeps the beginning of prompts when it is asked to.
	Keeps bool

	memory memory
}

// Post sends body as JSON. The error wraps
// a [*model.Error], also for a reply with a status of 400 and more. The caller
// has to close the body of the response.
func (c *Caller) Post(ctx context.Context, body any) (*http.Response, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "encode request", Err: err}
	}
	data := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.End.Address()+c.Path, bytes.NewReader(data))
	if err != nil {
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "make request", Err: c.End.RedactError(err)}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	maps.Copy(req.Header, c.Header)
	client := *c.Client
	client.CheckRedirect = c.checkRedirect
	resp, err := client.Do(req)
	if err != nil {
		return nil, c.End.Unreachable(ctx, err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	defer resp.Body.Close()
	fault := model.ReadFault(resp.Body)
	e := c.End.Refused(resp, fault)
	e.Hint = c.Hint(e.Kind, fault)
	return nil, &refusedError{e, fault}
}

// checkRedirect refuses redirects to another server, which would receive the
// key and the request.
func (c *Caller) checkRedirect(req *http.Request, via []*http.Request) error {
	if origin(req.URL) != origin(via[0].URL) {
		return &model.Error{
			Kind: model.KindNotFound,
			Msg:  fmt.Sprintf("%s redirects to another server, %s", c.End.Where(), c.End.Redact(origin(req.URL))),
			Hint: "check the base URL: requests and keys are sent to no other server",
		}
	}
	if c.Client.CheckRedirect != nil {
		return c.Client.CheckRedirect(req, via)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// origin returns the scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// readError returns the error of a reply that began and could not be read to its
// end; n bytes of the answer were read.
func (c *Caller) readError(ctx context.Context, n int, err error) *model.Error {
	if ctx.Err() != nil {
		return model.Canceled(ctx)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	if failed, ok := errors.AsType[*ServerError](err); ok {
		kind := c.ServerErrorKind(failed.fault)
		return &model.Error{
			Kind: kind, Msg: c.End.Where() + " broke off: " + c.End.Redact(failed.Error()), Hint: c.Hint(kind, failed.fault),
		}
	}
	if errors.Is(err, ErrNotAnswer) {
		return c.End.Unexpected(c.Protocol, err)
	}
	return c.End.BrokeOff(n, err)
}

// Answer is a reply as a protocol reads it.
type Answer interface {
	// ReadEvents and ReadWhole read the reply, streamed or as one JSON document.
	ReadEvents(events iter.Seq2[sse.Event, error]) error
	ReadWhole(document []byte) error
	// Len is how many bytes of the answer were read. Usage is what the server has reported so far.
	Len() int
	Usage() model.Usage
	// Response returns what was read, or why it is no answer. sent is the length of the
	// request in bytes.
	Response(sent int) (*model.Response, *model.Error)
}

// Ask posts body and reads the reply into a. sent is the length of the prompts in bytes. An
// error has the usage of the request: as reported, or estimated if the answer began.
func (c *Caller) Ask(ctx context.Context, req *model.Request, body any, sent int, a Answer) (*model.Response, error) {
	reply, err := c.Post(ctx, body)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	err = read(reply.Body, c.MaxAnswer, a)
	cut := errors.Is(err, model.ErrOverLimit)
	if err != nil && !cut {
		failed := c.readError(ctx, a.Len(), err)
		failed.Usage = spentUsage(a, sent)
		if server, ok := errors.AsType[*ServerError](err); ok && a.Len() == 0 {
			return nil, &refusedError{failed, server.fault}
		}
		return nil, failed
	}
	resp, failed := a.Response(sent)
	if failed != nil {
		failed.Usage = spentUsage(a, sent)
		return nil, failed
	}
	noteCutRequest(resp, req)
	noteOverLimit(resp, req.MaxOutputTokens, cut)
	return resp, nil
}

// spentUsage returns the usage of a request that failed: as reported, or estimated if the answer
// began.
func spentUsage(a Answer, sent int) model.Usage {
	u := plausible(a.Usage())
	if u == (model.Usage{}) && a.Len() > 0 {
		u = estimated(sent, a.Len())
	}
	return u
}

// noteOverLimit notes an answer that is longer than the request allowed, in tokens; 0
// allows any length. cut is set if the rest was not read: the usage is estimated then if
// the server did not report it.
func noteOverLimit(resp *model.Response, allowed int, cut bool) {
	u := &resp.Usage
	if cut {
		if read := model.EstimateTokens(len(resp.Text)); u.OutputTokens < read {
			u.OutputTokens, u.Estimated = read, true
		}
		resp.StopReason = "length"
		resp.Notes = append(resp.Notes,
			fmt.Sprintf("the server ignores the limit of %d tokens for answers; the answer was cut", allowed))
		return
	}
	if allowed > 0 && u.OutputTokens > int64(allowed) && !u.Estimated {
		resp.Notes = append(resp.Notes, fmt.Sprintf("the server ignores the limit of %d tokens for answers: it counted %d",
			allowed, u.OutputTokens))
	}
}

// maxReported is the most tokens that are believed of a report, so that sums do not overflow.
const maxReported = 1 << 40

// plausible returns a reported usage, or none if a figure in it is negative or too large.
func plausible(u model.Usage) model.Usage {
	for _, n := range [...]int64{u.InputTokens, u.OutputTokens, u.CachedTokens, u.CacheWriteTokens} {
		if n < 0 || n > maxReported {
			return model.Usage{}
		}
	}
	return u
}

// estimated estimates the usage of a request and an answer from their lengths in bytes.
func estimated(sent, read int) model.Usage {
	return model.Usage{InputTokens: model.EstimateTokens(sent), OutputTokens: model.EstimateTokens(read), Estimated: true}
}

// Response returns the response with a collected text. sent is the length of
// the request in bytes; usage that was not reported is estimated.
func Response(text *model.Collector, sent int, u model.Usage) *model.Response {
	answer, changed := text.Finish()
	if u = plausible(u); u == (model.Usage{}) {
		u = estimated(sent, len(answer))
	}
	resp := &model.Response{Text: answer, Usage: u, Tries: 1}
	if changed {
		resp.Notes = append(resp.Notes, model.NoteReplaced)
	}
	return resp
}
