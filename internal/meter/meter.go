// Package meter passes requests to the providers of models on from a loopback address,
// unchanged, and reads what the answers say of tokens, of the context, of overflows and of
// rate limits. So the usage of any program that accepts a base URL is known in the same
// way, while it runs.
//
// The meter reads copies of the bodies in other goroutines: reading neither alters nor
// delays them. A body that it cannot read passes all the same, and counts as not read.
//
// Requests go to the address that was fixed for their provider when the meter started, never
// to a host that a request names. The meter listens on loopback addresses only, its path
// begins with a random token, and it refuses requests with the name of another host, so
// that other users of the machine and web pages cannot use it.
package meter

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/model/price"
)

// Limits of a meter.
const (
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 5 * time.Minute
	idleConnections   = 256
)

// Config configures [Start].
type Config struct {
	// Listen is the address, 127.0.0.1:0 if it is empty. Its host has to be a loopback
	// address.
	Listen string
	// Upstreams are the addresses of the providers; see [Upstreams]. A missing one is that of
	// the provider's own service.
	Upstreams map[Provider]string
	// Rate returns what is known of a model at an address. Nil: nothing is known.
	Rate func(name, baseURL string) (price.Rate, error)
	// Observe, when set, receives the requests that ended. It is called from one goroutine at
	// a time.
	Observe func(Exchange)
	// Admit, when set, is asked before a request is sent, when those that ended before were
	// observed. With an error the request is refused.
	Admit func() error
	// Transport sends the requests. Nil: one that uses the proxies of the environment.
	Transport http.RoundTripper
	// Logger: nil discards.
	Logger *slog.Logger
}

// Meter passes requests on. It is safe for concurrent use.
type Meter struct {
	cfg       Config
	host      string // with the port
	token     string
	upstreams map[Provider]*url.URL
	proxies   map[Provider]*httputil.ReverseProxy
	server    *http.Server
	transport *http.Transport // nil if it is the caller's
	served    chan struct{}
	doors     sync.WaitGroup // further listeners

	observing sync.Mutex // held while Observe is called

	mu     sync.Mutex // guards the following
	closed bool
	open   sync.WaitGroup // requests, and the reading of their bodies
	sum    totals
	behind int           // requests that ended and are not observed yet
	caught chan struct{} // closed when behind is 0; nil if no request waits for it
}

// Start starts a meter. Close it after use.
func Start(cfg Config) (*Meter, error) {
	m := &Meter{cfg: cfg, token: rand.Text(), upstreams: make(map[Provider]*url.URL),
		proxies: make(map[Provider]*httputil.ReverseProxy), served: make(chan struct{})}
	m.sum.began = time.Now()
	if m.cfg.Logger == nil {
		m.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if m.cfg.Rate == nil {
		m.cfg.Rate = func(string, string) (price.Rate, error) { return price.Rate{}, nil }
	}
	if cfg.Transport == nil {
		m.transport = newTransport()
		m.cfg.Transport = m.transport
	}
	addresses, err := Upstreams(nil, cfg.Upstreams)
	if err != nil {
		return nil, err
	}
	for p, address := range addresses {
		if m.upstreams[p], err = parseUpstream(address); err != nil {
			return nil, err
		}
		m.proxies[p] = m.proxy(p)
	}
	listener, err := listen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	m.host = listener.Addr().String()
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(m.cfg.Logger.Handler(), slog.LevelDebug)}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(listener) // until Close
	}()
	return m, nil
}

// newTransport returns a transport that changes nothing of requests and answers.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2: true, DisableCompression: true, TLSHandshakeTimeout: 30 * time.Second,
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTimeout, ExpectContinueTimeout: time.Second,
	}
}

// listen listens on a loopback address.
func listen(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%q is not a loopback address; the meter passes keys on and listens on loopback only", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() { // a hosts file can say so
		return nil, errors.Join(fmt.Errorf("%q is not a loopback address", address), listener.Close())
	}
	return listener, nil
}

// Serve accepts connections at a further listener, until Close. Its address is that of the meter, in
// another network.
func (m *Meter) Serve(listener net.Listener) {
	m.doors.Go(func() { _ = m.server.Serve(listener) })
}

// Address returns the address at which the meter listens.
func (m *Meter) Address() string { return m.host }

// URL returns the address for the requests of a provider. It contains the token.
func (m *Meter) URL(p Provider) string {
	return "http://" + m.host + "/" + m.token + "/" + string(p) + m.suffix(p)
}

// suffix is the path of an upstream: clients see the same end of the address as without the
// meter.
func (m *Meter) suffix(p Provider) string { return m.upstreams[p].EscapedPath() }

// Close ends all requests, waits until what was received of them was read, and stops
// listening.
func (m *Meter) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	err := m.server.Close()
	<-m.served
	m.doors.Wait()
	m.open.Wait()
	if m.transport != nil {
		m.transport.CloseIdleConnections()
	}
	return err
}

// begin counts a request, which m.open.Done ends. It returns false after Close.
func (m *Meter) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.open.Add(1)
	}
	return !m.closed
}

// ServeHTTP passes a request on, or refuses it.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !m.begin() {
		refuse(w, http.StatusServiceUnavailable, "the meter is closing")
		return
	}
	defer m.open.Done()
	provider, path, ok := m.route(r)
	if !ok {
		refuse(w, http.StatusForbidden, "the address has no valid token: use the base URL that the meter has set")
		return
	}
	if m.cfg.Admit != nil {
		m.waitObserved(r.Context())
		if err := m.cfg.Admit(); err != nil {
			refuse(w, http.StatusForbidden, err.Error())
			return
		}
	}
	x := newExchange(m, provider, r, path)
	m.open.Go(x.read)
	defer x.finish(errUnread)
	m.proxies[provider].ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// maxBehind bounds the time that a request waits until those before it were observed.
const maxBehind = 2 * time.Second

// waitObserved waits until the requests that ended were observed.
func (m *Meter) waitObserved(ctx context.Context) {
	m.mu.Lock()
	if m.behind > 0 && m.caught == nil {
		m.caught = make(chan struct{})
	}
	caught := m.caught
	m.mu.Unlock()
	if caught == nil {
		return
	}
	limit := time.NewTimer(maxBehind)
	defer limit.Stop()
	select {
	case <-caught:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// fallBehind counts a request that ended and is to be observed, or one that was.
func (m *Meter) fallBehind(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.behind += n
	if m.behind == 0 && m.caught != nil {
		close(m.caught)
		m.caught = nil
	}
}

// route checks a request and splits its path into the provider and the path at the
// provider.
func (m *Meter) route(r *http.Request) (p Provider, path string, ok bool) {
	_, port, _ := net.SplitHostPort(m.host)
	if r.Host != m.host && r.Host != "localhost:"+port {
		return "", "", false
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(m.token)) != 1 {
		return "", "", false
	}
	name, path, _ := strings.Cut(rest, "/")
	_, known := m.proxies[Provider(name)]
	return Provider(name), "/" + path, known
}

// refuse answers a request that is not passed on, in a form that clients of all providers
// show.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"perdure_meter","message":%q}}`+"\n", "perdure meter: "+text)
}
