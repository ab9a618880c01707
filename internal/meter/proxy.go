package meter

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"github.com/perdure/perdure/model"
)

// exchangeKey is the key of the exchange in the context of a request.
type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// proxy returns the handler that passes requests on to a provider.
func (m *Meter) proxy(p Provider) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        func(pr *httputil.ProxyRequest) { m.rewrite(p, pr) },
		Transport:      m.cfg.Transport,
		FlushInterval:  -1, // at once
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(m.cfg.Logger.Handler(), slog.LevelDebug),
		ModifyResponse: answered,
		ErrorHandler:   unanswered,
	}
}

// rewrite addresses a request to the provider and leaves the rest as it is, except the
// headers that concern the connection only.
func (m *Meter) rewrite(p Provider, pr *httputil.ProxyRequest) {
	upstream := m.upstreams[p]
	raw := strings.TrimPrefix(pr.In.URL.EscapedPath(), "/"+m.token+"/"+string(p))
	path, err := url.PathUnescape(raw)
	if err != nil { // the server has parsed it
		path = raw
	}
	pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = upstream.Scheme, upstream.Host, ""
	pr.Out.URL.Path, pr.Out.URL.RawPath, pr.Out.URL.RawQuery = path, raw, pr.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := pr.In.Header[name]; ok { // the proxy has removed it
			pr.Out.Header[name] = values
		}
	}
	x := exchangeOf(pr.In.Context())
	if pr.Out.Body == nil || pr.Out.Body == http.NoBody {
		x.request.finish(io.EOF)
	} else {
		pr.Out.Body = &tapped{ReadCloser: pr.Out.Body, queue: x.request}
	}
}

// answered begins to read an answer.
func answered(resp *http.Response) error {
	x := exchangeOf(resp.Request.Context())
	x.answer(resp)
	if resp.StatusCode == http.StatusSwitchingProtocols { // not a body any more
		x.response.finish(io.EOF)
		return nil
	}
	resp.Body = &tapped{ReadCloser: resp.Body, queue: x.response, left: resp.ContentLength, ended: x.ended}
	return nil
}

// unanswered answers a request for which the provider's answer did not begin.
func unanswered(w http.ResponseWriter, r *http.Request, err error) {
	exchangeOf(r.Context()).finish(err)
	if r.Context().Err() != nil { // the client has gone
		return
	}
	text := model.RedactError(err).Error()
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		refuse(w, http.StatusGatewayTimeout, text)
		return
	}
	refuse(w, http.StatusBadGateway, text)
}

// bufferSize is the size of the buffers for bodies.
const bufferSize = 32 << 10

// buffers reuses buffers for bodies.
type buffers struct{ pool sync.Pool }

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, bufferSize)
}

// Put takes a buffer back.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
