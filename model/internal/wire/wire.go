// Package wire is what the HTTP providers of models share: it sends a request as
// JSON and reads replies, streamed or not, within limits.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/sse"
	"github.com/perdure/perdure/model"
)

// userAgent names the program to servers. Some gateways refuse the name that
// net/http sends by default.
const userAgent = "perdure (https://github.com/perdure/perdure)"

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 10

// bytesPerAnswerByte is how many bytes of JSON may come for one byte of an
// answer that is not streamed: "\u0041" and the fields around it.
const bytesPerAnswerByte = 8

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 32 << 20

// ErrNotAnswer is the error of a reply that is not in the protocol's form of an
// answer.
var ErrNotAnswer = errors.New("the reply is not in the form of an answer")

// Caller sends requests to one endpoint. It is safe for concurrent use.
type Caller struct {
	// End is the endpoint. Required.
	End *model.Endpoint
	// Client sends the requests. Required.
	Client *http.Client
	// Header is added to each request.
	Header http.Header
	// Hint returns what a user can do about a refusal. Required.
	Hint func(model.Kind, model.Fault) string
}

// Post sends body as JSON to a path below the endpoint's address. The error is
// a [*model.Error], also for a reply with a status of 400 and more. The caller
// has to close the body of the response.
func (c *Caller) Post(ctx context.Context, path string, body any) (*http.Response, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "encode request", Err: err}
	}
	data := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.End.Address()+path, bytes.NewReader(data))
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
	said := model.ReadFault(resp.Body)
	e := c.End.Refused(resp, said)
	e.Hint = c.Hint(e.Kind, said)
	return nil, e
}

// checkRedirect refuses redirects to another server, which would receive the
// key and the request.
func (c *Caller) checkRedirect(req *http.Request, via []*http.Request) error {
	if origin(req.URL) != origin(via[0].URL) {
		return &model.Error{
			Kind: model.KindInvalid,
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

// Streamed reports whether a reply is a stream. A server that does not stream
// sends one JSON document.
func Streamed(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind != "application/json" && !strings.HasSuffix(kind, "+json")
}

// ReadWhole reads a reply that is not streamed into a value, and returns its
// bytes. maxAnswer is the largest answer accepted, in bytes. The error is
// io.ErrUnexpectedEOF for JSON that is cut, and otherwise wraps [ErrNotAnswer]
// for what is not JSON.
func ReadWhole(body io.Reader, maxAnswer int, into any) ([]byte, error) {
	limit := int64(maxAnswer)*bytesPerAnswerByte + 1<<16
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, model.TooLarge(maxAnswer)
	}
	if err := Decode(data, into); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, errors.Join(ErrNotAnswer, err)
	}
	return data, nil
}

// Events returns the events of a stream that have data. An error is the last
// element. maxAnswer is the largest answer accepted, in bytes; the error of an
// event that is too long names it.
func Events(body io.Reader, maxAnswer int) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for r := sse.NewReader(body, maxEvent); ; {
			e, err := r.Next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, sse.ErrTooLong):
				err = model.TooLarge(maxAnswer)
			case err == nil && len(e.Data) == 0:
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Decode parses JSON. A field of another type than expected stays empty:
// servers differ in fields that matter little.
func Decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return nil
	}
	return err
}

// Text is a JSON string, or a list of parts of which those with a text count.
// Anything else is an empty text. It keeps bytes that are not UTF-8, which
// encoding/json replaces: a server may split a character between two events.
type Text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = ""
	if data[0] == '[' {
		var parts []struct {
			Text Text `json:"text"`
		}
		err := Decode(data, &parts)
		for _, part := range parts {
			*t += part.Text
		}
		return err
	}
	if data[0] != '"' {
		return nil
	}
	var text strings.Builder
	for rest := data[1 : len(data)-1]; len(rest) > 0; {
		n := validPrefix(rest)
		var part string
		if err := json.Unmarshal(quote(rest[:n]), &part); err != nil {
			return err
		}
		text.WriteString(part)
		if n < len(rest) {
			text.WriteByte(rest[n])
			n++
		}
		rest = rest[n:]
	}
	*t = Text(text.String())
	return nil
}

func quote(text []byte) []byte { return append(append([]byte{'"'}, text...), '"') }

// validPrefix returns how many bytes at the beginning of data are valid UTF-8.
func validPrefix(data []byte) int {
	if utf8.Valid(data) {
		return len(data)
	}
	for n := 0; ; {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size == 1 {
			return n
		}
		n += size
	}
}
