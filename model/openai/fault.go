package openai

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/model"
)

// Limits of what is read and shown of a server's error.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 500
)

// maxRetryAfter keeps absurd figures from overflowing.
const maxRetryAfter = 24 * time.Hour

// readStatus turns an HTTP status of 400 and more into a [*model.Error]. It
// comes before the SDK, which would read an error of any size.
func (m *Model) readStatus(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, m.statusError(resp, body)
}

func (m *Model) statusError(resp *http.Response, body []byte) *model.Error {
	said := parseFault(body)
	text := said.text()
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	e := &model.Error{
		Kind: model.KindOfStatus(resp.StatusCode), Status: resp.StatusCode,
		RetryAfter: retryAfter(resp.Header, time.Now()),
		Msg:        fmt.Sprintf("%s answers %d: %s", m.where(), resp.StatusCode, m.redact(text)),
	}
	e.Hint = m.hint(e.Kind, said)
	return e
}

// hint says what a person can do about a refusal.
func (m *Model) hint(kind model.Kind, said fault) string {
	switch kind {
	case model.KindAuth:
		if m.cfg.APIKey == "" {
			return "this server needs a key: set OPENAI_API_KEY"
		}
		return "check OPENAI_API_KEY: the key is wrong, expired, or may not use this model"
	case model.KindNotFound:
		return fmt.Sprintf("check the model's name %q and the base URL, which mostly ends in /v1 (OPENAI_BASE_URL)", m.cfg.Model)
	case model.KindRateLimit:
		if strings.Contains(said.code()+said.Type, "quota") {
			return "the account's quota is used up: look at the provider's billing page"
		}
		return "the provider limits requests: use less concurrency, or wait"
	case model.KindInvalid:
		if strings.Contains(said.code(), "context_length") {
			return "the request is too long for the model: set a smaller context window"
		}
	}
	return ""
}

// where names the server and the model.
func (m *Model) where() string { return fmt.Sprintf("%s (model %q)", m.base.Redacted(), m.cfg.Model) }

func (m *Model) redact(s string) string { return model.Redact(s, m.secrets()...) }

func (m *Model) secrets() []string {
	secrets := []string{m.cfg.APIKey}
	if password, ok := m.base.User.Password(); ok {
		secrets = append(secrets, password)
	}
	return secrets
}

// fault is an error as servers send it: {"error": {…}}, {"error": "text"} or
// {"message": "text"}.
type fault struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	// raw is the body when it has another form.
	raw string
}

func parseFault(body []byte) fault {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return fault{raw: string(body)}
	}
	var f fault
	var text string
	switch {
	case json.Unmarshal(outer.Error, &f) == nil && f.Message != "":
		return f
	case json.Unmarshal(outer.Error, &text) == nil && text != "":
		return fault{Message: text}
	case outer.Message != "" || outer.Detail != "":
		return fault{Message: outer.Message + outer.Detail}
	}
	return fault{raw: string(body)}
}

// code is the error's code, which may be a text or a number.
func (f fault) code() string { return strings.Trim(string(f.Code), `"`) }

// text is what the error says, short and in one line.
func (f fault) text() string {
	text := f.Message
	if text == "" {
		text = f.raw
	}
	text, _ = model.Clean(strings.Join(strings.Fields(text), " "))
	if len(text) > maxErrorText {
		text, _ = model.Clean(text[:maxErrorText])
		text += "…"
	}
	return text
}

// retryAfter reads how long the server asks to wait: milliseconds, seconds or
// a date; 0 when it does not ask or makes no sense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds(s)
	}
	if date, err := http.ParseTime(value); err == nil {
		return seconds(date.Sub(now).Seconds())
	}
	return 0
}

func seconds(s float64) time.Duration {
	switch {
	case math.IsNaN(s) || s <= 0:
		return 0
	case s >= maxRetryAfter.Seconds():
		return maxRetryAfter
	}
	return time.Duration(s * float64(time.Second))
}

// sendError says why there was no reply.
func (m *Model) sendError(ctx context.Context, err error) *model.Error {
	var e *model.Error
	switch {
	case ctx.Err() != nil:
		return model.Canceled(ctx)
	case errors.As(err, &e):
		return e
	}
	e = &model.Error{
		Kind: model.KindUnavailable, Msg: "reach " + m.where(), Err: model.RedactError(innermost(err), m.secrets()...),
		Hint: fmt.Sprintf("check that a server runs at %s; the address is set with --base-url or OPENAI_BASE_URL", m.base.Redacted()),
	}
	var record tls.RecordHeaderError
	if certificate(err) || errors.As(err, &record) || strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		e.Kind = model.KindInvalid
		e.Hint = "check the certificate, and whether the base URL begins with http:// or https://; " + e.Hint
	}
	return e
}

func certificate(err error) bool {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
	)
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &verify)
}

// innermost leaves out the request line that net/http puts before a network
// error.
func innermost(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}

// readError says why a reply that began is no answer.
func (m *Model) readError(ctx context.Context, a *answer, err error) *model.Error {
	var e *model.Error
	var said *ssestream.StreamError
	switch {
	case ctx.Err() != nil:
		return model.Canceled(ctx)
	case errors.As(err, &e):
		return e
	case errors.As(err, &said):
		return m.streamError(said.Event.Data)
	case errors.Is(err, bufio.ErrTooLong):
		return model.TooLarge(a.limit)
	case errors.Is(err, errNoChoice) || errors.Is(err, errNotAnswer):
		return &model.Error{
			Kind: model.KindUnavailable, Msg: m.where(), Err: model.RedactError(err, m.secrets()...),
			Hint: "check that the base URL is that of an OpenAI-compatible server (OPENAI_BASE_URL)",
		}
	}
	return &model.Error{
		Kind: model.KindCut, Msg: fmt.Sprintf("the answer of %s broke off after %d bytes", m.where(), a.text.Len()),
		Err: model.RedactError(err, m.secrets()...),
	}
}

// streamErrorIn returns the error a reply with status 200 holds, or otherwise.
func streamErrorIn(data []byte, otherwise error) error {
	if f := parseFault(data); f.Message != "" {
		return &ssestream.StreamError{Message: f.Message, Event: ssestream.Event{Data: data}}
	}
	return otherwise
}

// streamError is an error that came in place of an answer, after a status of
// 200. Asking again is right unless it says otherwise.
func (m *Model) streamError(data []byte) *model.Error {
	said := parseFault(data)
	kind := model.KindCut
	if status, err := strconv.Atoi(said.code()); err == nil && status >= http.StatusBadRequest {
		kind = model.KindOfStatus(status)
	} else if words := said.Type + " " + said.code(); strings.Contains(words, "rate_limit") {
		kind = model.KindRateLimit
	} else if strings.Contains(words, "invalid_request") {
		kind = model.KindInvalid
	}
	return &model.Error{
		Kind: kind, Msg: m.where() + " broke off: " + m.redact(said.text()), Hint: m.hint(kind, said),
	}
}
