package model

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ollamaPort is where Ollama listens by default.
const ollamaPort = "11434"

// Hint returns what a user can type about a permanent fault of the endpoint, "" for other kinds.
func (e *Endpoint) Hint(kind Kind, fault Fault) string {
	switch kind {
	case KindAuth:
		return e.hintAuth(fault)
	case KindNotFound:
		if fault.NamesModel() {
			return e.hintModel()
		}
		return "there is no model at this address" + e.suggestURL()
	case KindQuota:
		return "the account has no credit or quota left: add some on the provider's billing page, or use another model " +
			"(--model)"
	case KindInvalid, KindTooLong, KindRateLimit, KindUnavailable, KindRefused, KindCut, KindTimeout, KindEmpty,
		KindThoughts, KindTooLarge, KindFailed, KindCanceled: // the provider's to say
	}
	return ""
}

func (e *Endpoint) hintAuth(fault Fault) string {
	text := strings.ToLower(fault.Message + fault.Code)
	switch {
	case strings.Contains(text, "country") || strings.Contains(text, "location") || strings.Contains(text, "region"):
		return fmt.Sprintf("the provider does not serve this place: use another provider (--model, %s)", e.cfg.URLVariable)
	case e.cfg.Key == "":
		return fmt.Sprintf("this server needs a key: export %s=KEY", e.cfg.KeyVariable)
	}
	return fmt.Sprintf("the key is wrong, expired, or may not use this model: export %s=KEY", e.cfg.KeyVariable)
}

func (e *Endpoint) hintModel() string {
	if e.isOllama() {
		return fmt.Sprintf("`ollama pull %s` gets the model; `ollama list` prints those there are", e.cfg.Model)
	}
	return fmt.Sprintf("check the name %q of the model (--model); `curl %smodels` lists those of the server", e.cfg.Model,
		e.Server())
}

// hintStart is what to do about a server that does not answer.
func (e *Endpoint) hintStart() string {
	if e.isOllama() {
		return fmt.Sprintf("start the server: `ollama serve`; the address is set with %s", e.cfg.URLVariable)
	}
	return fmt.Sprintf("check that a server runs at %s; the address is set with %s", e.base.Redacted(), e.cfg.URLVariable)
}

func (e *Endpoint) isOllama() bool { return e.base.Port() == ollamaPort }

// suggestURL names the address that the user may have meant: the protocols differ in whether it
// ends in /v1.
func (e *Endpoint) suggestURL() string {
	u := *e.base
	path := strings.TrimSuffix(u.Path, "/")
	for _, own := range []string{"/chat/completions", "/completions", "/messages", "/models"} {
		path = strings.TrimSuffix(path, own)
	}
	wants := strings.Contains(e.cfg.URLExample, "/v1")
	switch {
	case wants && path == "":
		path = "/v1"
	case !wants:
		path = strings.TrimSuffix(path, "/v1")
	}
	if path == strings.TrimSuffix(u.Path, "/") {
		return fmt.Sprintf(" (%s)", e.cfg.URLVariable)
	}
	u.Path = path
	return fmt.Sprintf(": try %s (%s)", (&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path}).Redacted(),
		e.cfg.URLVariable)
}

// reachTimeout bounds the time of one connection that is only tried.
const reachTimeout = 10 * time.Second

// Reach reports whether the server, or the proxy before it, accepts a connection of a client. It sends
// nothing.
func (e *Endpoint) Reach(ctx context.Context, client *http.Client) error {
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return nil // a request has to show it
	}
	target := e.base
	if transport.Proxy != nil {
		if proxy, err := transport.Proxy(&http.Request{URL: e.base}); err == nil && proxy != nil {
			target = proxy
		}
	}
	port := map[string]string{"https": "443", "http": "80", "socks5": "1080", "socks5h": "1080"}[target.Scheme]
	dial := transport.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := dial(ctx, "tcp", net.JoinHostPort(target.Hostname(), cmp.Or(target.Port(), port)))
	if err != nil {
		return err
	}
	return conn.Close()
}
