package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// EndpointConfig configures [NewEndpoint].
type EndpointConfig struct {
	// URL is where messages are posted: http or https, without a user or
	// password. Required.
	URL string
	// Header is sent in addition, for example an Authorization; may be nil. It never
	// appears in errors.
	Header http.Header
	// MaxReply is the longest body of a reply that is read, in bytes. 0:
	// MaxReplyBytes, which is also the most.
	MaxReply int
	// Transport: nil is a copy of Go's own, which follows the environment's
	// settings for proxies.
	Transport http.RoundTripper
}

func (c EndpointConfig) withDefaults() EndpointConfig {
	c.MaxReply = cmp.Or(c.MaxReply, MaxReplyBytes)
	if c.Transport == nil {
		c.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	c.Header = c.Header.Clone()
	if c.Header == nil {
		c.Header = make(http.Header)
	}
	return c
}

// parseAddress reads an address that messages can be posted to. The error does
// not repeat it: it may contain secrets.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("url: is missing")
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address
		}
		return nil, fmt.Errorf("url: is not an address: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New(`url: does not begin with "http://" or "https://"`)
	case u.Hostname() == "":
		return nil, errors.New("url: names no host")
	case u.User != nil:
		return nil, errors.New("url: contains a user or password, which must not be stored in files")
	case u.Fragment != "":
		return nil, errors.New("url: contains a fragment")
	}
	return u, nil
}

// Endpoint is a [Handler] that posts each message to an address; see the
// package comment. Connections are kept until Close.
type Endpoint struct {
	cfg    EndpointConfig
	client *http.Client
	// where is the address without its query, for people.
	where string
}

// NewEndpoint checks the configuration; it sends nothing.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) {
	u, err := parseAddress(cfg.URL)
	if err := errors.Join(err, checkMaxReply(cfg.MaxReply)); err != nil {
		return nil, fmt.Errorf("configure handler: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Endpoint{
		cfg: cfg, where: u.Scheme + "://" + u.Host + u.EscapedPath(),
		client: &http.Client{
			Transport: cfg.Transport,
			// Returns the redirect itself: Handle reports it as a fault.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes idle connections. The endpoint can be used again.
func (e *Endpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Handle posts the message. The error is a [*FaultError].
func (e *Endpoint) Handle(ctx context.Context, m Message) (Reply, error) {
	doc, err := m.Encode()
	if err != nil {
		return Reply{}, &FaultError{Kind: FaultMessage, Msg: "nothing was sent", Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.cfg.URL, bytes.NewReader(doc))
	if err != nil {
		return Reply{}, &FaultError{Kind: FaultMessage, Msg: "nothing was sent", Err: e.hide(err)}
	}
	req.Header = e.cfg.Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return Reply{}, e.broken(ctx, "reach "+e.where, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(e.cfg.MaxReply)+1))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return Reply{}, e.refused(resp, text)
	case err != nil:
		return Reply{}, e.broken(ctx, "read the reply of "+e.where, err)
	case len(text) > e.cfg.MaxReply:
		return Reply{}, &FaultError{
			Kind: FaultTooLarge, Msg: "the reply of " + e.where + " was not read to its end",
			Err: &LimitError{What: "body", Limit: e.cfg.MaxReply},
		}
	}
	reply, err := readReply(text, "")
	if fault, ok := errors.AsType[*FaultError](err); ok {
		fault.Detail = model.Redact(fault.Detail, e.secrets()...)
	}
	return reply, err
}

// refused is the fault of a status other than 2xx.
func (e *Endpoint) refused(resp *http.Response, body []byte) *FaultError {
	f := &FaultError{
		Kind: FaultStatus, Msg: fmt.Sprintf("%s answers %s", e.where, clip.Bytes(clip.OneLine(resp.Status), MaxNameBytes)),
		Detail: clip.Bytes(clean(string(body), e.secrets()...), maxFaultBytes),
	}
	if resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" {
		f.Kind = FaultRedirect
		f.Msg = e.where + " answers with a redirect, which is not followed"
	}
	return f
}

func (e *Endpoint) broken(ctx context.Context, what string, err error) *FaultError {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return &FaultError{Kind: FaultNetwork, Msg: what, Err: e.hide(err)}
}

// hide leaves the address out of an error of net/http: its query may hold a
// secret.
func (e *Endpoint) hide(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return model.RedactError(err, e.secrets()...)
}

func (e *Endpoint) secrets() []string {
	var secrets []string
	for _, values := range e.cfg.Header {
		for _, value := range values {
			secrets = append(secrets, strings.Fields(value)...)
		}
	}
	return secrets
}
