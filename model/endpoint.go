package model

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perdure/perdure/internal/text/resettime"
)

// idleConnections is how many connections are kept for the next calls; Go's
// default of two would open a new one for almost every call of many at once.
const idleConnections = 256

// maxRetryAfter keeps absurd figures from overflowing.
const maxRetryAfter = 60 * 24 * time.Hour

// EndpointConfig configures [NewEndpoint].
type EndpointConfig struct {
	// URL is the address before the protocol's own path. Required.
	URL string
	// Model is the model's name at the server. Required.
	Model string
	// Key is the API key. It may be empty for servers on this
	// machine or in a private network. It never appears in errors.
	Key string
	// Secrets are further values that never appear in errors, such as those of headers.
	Secrets []string
	// URLVariable and KeyVariable are the environment variables that hints
	// name, URLExample an address to name with the first.
	URLVariable, KeyVariable string
	URLExample               string
}

// Endpoint is one model at one HTTP server. All providers use it, so that their
// errors have the same form. It is safe for concurrent use.
type Endpoint struct {
	cfg  EndpointConfig
	base *url.URL
}

// NewEndpoint checks what can never work; it sends nothing. The error is an
// [*Error] with a hint.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) {
	if cfg.Model == "" {
		return nil, &Error{Kind: KindInvalid, Msg: "configure model", Err: errors.New("the name of the model is missing")}
	}
	if strings.ContainsAny(cfg.Key, "\r\n\x00") {
		return nil, &Error{
			Kind: KindInvalid, Msg: "configure model", Err: errors.New("the API key contains a line break or a NUL byte"),
		}
	}
	base, err := parseBaseURL(cfg.URL)
	if err != nil {
		return nil, &Error{
			Kind: KindInvalid, Msg: fmt.Sprintf("read base URL %q", Redact(cfg.URL, cfg.Key)), Err: err,
			Hint: fmt.Sprintf("set %s to an address such as %s", cfg.URLVariable, cfg.URLExample),
		}
	}
	if cfg.Key == "" && !private(base.Hostname()) {
		return nil, &Error{
			Kind: KindAuth, Msg: "no API key for " + base.Redacted(),
			Hint: fmt.Sprintf("set %s; if the server needs no key, set it to any value", cfg.KeyVariable),
		}
	}
	return &Endpoint{cfg: cfg, base: base}, nil
}

// parseBaseURL reads the address and refuses what can never work.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which the caller names
		}
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New(`it does not begin with "http://" or "https://"`)
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it has a query or a fragment")
	}
	return u, nil
}

// private reports whether a host is this machine or in a private network, where
// servers need no key.
func private(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	local := []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}
	return !strings.Contains(host, ".") ||
		slices.ContainsFunc(local, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// Address is the base URL with a slash at its end.
func (e *Endpoint) Address() string { return strings.TrimSuffix(e.base.String(), "/") + "/" }

// Host is the server's name in lower case, without the port.
func (e *Endpoint) Host() string { return strings.ToLower(e.base.Hostname()) }

// Server returns the address with a slash at its end, without a name and a password.
func (e *Endpoint) Server() string {
	plain := *e.base
	plain.User = nil
	return strings.TrimSuffix(plain.String(), "/") + "/"
}

// Model returns the model's name at the server.
func (e *Endpoint) Model() string { return e.cfg.Model }

// Where names the server and the model, for people.
func (e *Endpoint) Where() string {
	return fmt.Sprintf("%s (model %q)", e.base.Redacted(), e.cfg.Model)
}

// Redact masks the key and the address's password in s, and what looks like
// secrets.
func (e *Endpoint) Redact(s string) string { return Redact(s, e.secrets()...) }

// RedactError is Redact for the text of an error; see [RedactError].
func (e *Endpoint) RedactError(err error) error { return RedactError(err, e.secrets()...) }

func (e *Endpoint) secrets() []string {
	secrets := append([]string{e.cfg.Key}, e.cfg.Secrets...)
	if password, ok := e.base.User.Password(); ok {
		secrets = append(secrets, password)
	}
	return secrets
}

// Refused is the error of a reply with a status of 400 and more. The hint is
// the provider's to add.
func (e *Endpoint) Refused(resp *http.Response, fault Fault) *Error {
	text := fault.Text()
	text = cmp.Or(text, http.StatusText(resp.StatusCode))
	fault.RetryAfter = cmp.Or(retryAfter(resp), fault.RetryAfter, fault.wait(time.Now()))
	kind := fault.Kind(resp.StatusCode)
	limit, _ := fault.TokenLimit(resp.StatusCode)
	return &Error{
		Limit: limit,
		Kind:  kind, Status: resp.StatusCode, RetryAfter: fault.RetryAfter, AboutText: fault.aboutText(kind),
		Msg: fmt.Sprintf("%s answers %d: %s", e.Where(), resp.StatusCode, e.Redact(text)),
	}
}

// retryAfter reads the headers of a reply. The limits that every reply names count only for a refused
// request.
func retryAfter(resp *http.Response) time.Duration {
	h := resp.Header
	if resp.StatusCode != http.StatusTooManyRequests {
		h = http.Header{}
		for _, name := range []string{"Date", "Retry-After", "Retry-After-Ms"} {
			h[name] = resp.Header[name]
		}
	}
	return RetryAfter(h, time.Now(), maxRetryAfter)
}

// Unreachable is the error of a request that got no reply.
func (e *Endpoint) Unreachable(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return Canceled(ctx)
	}
	own, ok := errors.AsType[*Error](err)
	if ok {
		return own
	}
	own = &Error{
		Kind: KindUnavailable, Msg: "reach " + e.Where(), Err: e.RedactError(innermost(err)), Hint: e.hintStart(),
	}
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	unresolved, ok := errors.AsType[*net.DNSError](err)
	switch {
	case unverified:
		own.Kind = KindNotFound
		own.Hint = "the server's certificate is not trusted: add its authority to the system's certificates " +
			"(SSL_CERT_FILE), or correct the address, which is set with " + e.cfg.URLVariable
	case record || strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		own.Kind = KindNotFound
		own.Hint = fmt.Sprintf("the server speaks no TLS: use http:// in place of https:// (%s)", e.cfg.URLVariable)
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "actively refused"): // as Windows says it
		own.Kind = KindRefused
	case ok && unresolved.IsNotFound:
		own.Kind = KindRefused
		own.Hint = fmt.Sprintf("check the name of the host %q and the network; the address is set with %s", e.base.Hostname(),
			e.cfg.URLVariable)
	}
	return own
}

// innermost leaves out the request line that net/http puts before a network
// error.
func innermost(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	return err
}

// BrokeOff is the error of a reply that began and ended before it was whole,
// after n bytes of the answer.
func (e *Endpoint) BrokeOff(n int, err error) *Error {
	return &Error{
		Kind: KindCut, Msg: fmt.Sprintf("the answer of %s broke off after %d bytes", e.Where(), n), Err: e.RedactError(err),
	}
}

// Unexpected is the error of a reply that is not an answer of the protocol.
func (e *Endpoint) Unexpected(protocol string, err error) *Error {
	return &Error{
		Kind: KindUnavailable, Msg: e.Where(), Err: e.RedactError(err), Foreign: true,
		Hint: fmt.Sprintf("check that the base URL is that of a server that speaks the %s protocol%s", protocol,
			e.suggestURL()),
	}
}

// RetryAfter reads how long the headers of a server ask to wait, 0 if they do not say. The result is at
// most longest.
func RetryAfter(h http.Header, now time.Time, longest time.Duration) time.Duration {
	return min(resettime.Header(h, now), longest)
}

// NewHTTPClient returns a client for many calls at once: it keeps connections
// and has no time limit of its own, because the context limits calls.
func NewHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idleConnections, idleConnections
	return &http.Client{Transport: transport}
}
