package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/model"
)

// Webhook posts notices as JSON to a URL. Chat servers show the member "text".
type Webhook struct {
	client *http.Client
	url    string
	host   string
}

// Retries of a webhook. The pause before the second try doubles before the third.
const (
	webhookTries = 3
	firstPause   = 300 * time.Millisecond
)

// NewWebhook checks the address and sends nothing. Errors never contain the address, which
// may contain a secret.
func NewWebhook(address string) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the webhook's address is not a URL like https://host/path")
	}
	return &Webhook{url: address, host: u.Host, client: &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Send posts the notice and retries when the host is unreachable or busy.
func (w *Webhook) Send(ctx context.Context, n *Notice) error {
	f := fitted(n)
	doc, err := f.document()
	if err != nil {
		return err
	}
	defer w.client.CloseIdleConnections()
	pause := firstPause
	for try := 1; ; try++ {
		again, err := w.post(ctx, doc)
		if err == nil || !again || try == webhookTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// post sends once; again reports whether a retry may succeed.
func (w *Webhook) post(ctx context.Context, doc []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(doc))
	if err != nil {
		return false, errors.New("the webhook's address is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(req)
	if err != nil {
		var known *url.Error
		if errors.As(err, &known) {
			err = known.Err // without the address
		}
		return ctx.Err() == nil, fmt.Errorf("webhook %s: %w", w.host, model.RedactError(err))
	}
	defer resp.Body.Close()
	const most = 64 << 10 // read so that the connection closes cleanly
	_, _ = io.CopyN(io.Discard, resp.Body, most)
	if resp.StatusCode/100 != 2 {
		busy := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError
		return busy, fmt.Errorf("webhook %s answers with status %d", w.host, resp.StatusCode)
	}
	return false, nil
}
