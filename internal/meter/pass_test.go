package meter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// received is an answer as the client received it.
type received struct {
	Status  int
	Header  http.Header
	Body    []byte
	Trailer http.Header
	Length  int64
	Err     string
}

func plainClient(t testing.TB) *http.Client {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// ask sends a request with the headers of a real client.
func ask(t testing.TB, c *http.Client, address string, body io.Reader, header http.Header) received {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer sk-secret"}, "X-Api-Key": {"sk-ant-secret"},
		"X-Goog-Api-Key": {"goog"}, "Content-Type": {"application/json"}, "Accept-Encoding": {"gzip, br"},
		"Anthropic-Beta": {"a", "b"}, "Te": {"trailers"}, "X-Forwarded-For": {"10.0.0.1"}, "User-Agent": {"agent/1.0"}}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := c.Do(req)
	if err != nil {
		return received{Err: "no answer"}
	}
	defer resp.Body.Close()
	got := received{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength}
	got.Body, err = io.ReadAll(resp.Body)
	if err != nil {
		got.Err = "cut"
	}
	got.Trailer = resp.Trailer
	got.Header.Del("Date")
	return got
}

func TestPassesUnchanged(t *testing.T) {
	t.Parallel()
	for _, s := range scripts() {
		answers := map[string]http.HandlerFunc{
			"plain": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "r1")
				w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
				_, _ = io.WriteString(w, s.body)
			},
			"chunked": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, part := range strings.SplitAfter(s.body, ",") {
					_, _ = io.WriteString(w, part)
					_ = http.NewResponseController(w).Flush()
				}
			},
			"gzip": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(gzipped(t, strings.SplitAfter(s.body, "\n")...))
			},
			"trailers": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				_, _ = io.WriteString(w, s.body)
				w.Header().Set("X-Sum", "42")
				w.Header().Set(http.TrailerPrefix+"X-Late", "7")
			},
		}
		for form, answer := range answers {
			t.Run(s.name()+" "+form, func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, answer)
				m := start(t, p.URL)
				direct, through := m.address(s.api, s.stream)
				want := ask(t, plainClient(t), direct, strings.NewReader(requestOf(s.api)), nil)
				wanted := p.last(t)
				got := ask(t, plainClient(t), through, strings.NewReader(requestOf(s.api)), nil)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("answer differs (-direct +metered):\n%s", diff)
				}
				if diff := cmp.Diff(wanted, p.last(t), cmp.AllowUnexported(seen{})); diff != "" {
					t.Errorf("request differs (-direct +metered):\n%s", diff)
				}
				x := <-m.exchanges
				if x.Usage == nil || *x.Usage != s.want {
					t.Errorf("usage %+v, the provider counted %+v", x.Usage, s.want)
				}
				if x.CostMicros == nil || x.Context == nil || x.Context.Window != 1000 ||
					x.Context.Used != s.want.InputTokens+s.want.OutputTokens {
					t.Errorf("cost %v, context %+v", x.CostMicros, x.Context)
				}
			})
		}
	}
}

// The path, the query and bodies of other kinds pass as they are.
func TestPassesOtherRequests(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(http.StatusFound)
	})
	m := start(t, p.URL)
	for _, rest := range []string{"/v1/models?a=1&b=%zz;c&&", "/v1/files/a%2Fb%20c", "/v1beta/models/x:countTokens",
		"/v1//double/",
		"/"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
			req, err := http.NewRequestWithContext(t.Context(), method, m.URL(Anthropic), nil)
			if err != nil {
				t.Fatal(err)
			}
			path, query, _ := strings.Cut(rest, "?")
			base, _ := url.Parse(m.URL(Anthropic))
			req.URL.Opaque, req.URL.RawQuery = "//"+base.Host+base.Path+path, query
			resp, err := plainClient(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got := p.last(t)
			if got.uri != rest || got.method != method || resp.StatusCode != http.StatusFound ||
				resp.Header.Get("Location") != "https://elsewhere.example/" {
				t.Errorf("%s %s arrived as %s %s; status %d", method, rest, got.method, got.uri, resp.StatusCode)
			}
			if x := <-m.exchanges; x.API != "" || x.Usage != nil || x.Status != http.StatusFound {
				t.Errorf("reported %+v", x)
			}
		}
	}
	if s := m.Summary(); s.Others != 15 || s.Requests != 0 {
		t.Errorf("summary %+v", s)
	}
}

// Bodies that are not what they seem pass, and count as estimated or not read.
func TestPassesMalformedBodies(t *testing.T) {
	t.Parallel()
	bodies := []string{"", "null", "{", `{"usage":{"prompt_tokens":"x","completion_tokens":-5}}`, "data: {\"usage\"",
		"<html>",
		"\x00\xff\xfe", `{"usage":` + strings.Repeat("[", 20000), strings.Repeat("data: {}\n", 1000),
		`{"usage":{"prompt_tokens":1e400,"completion_tokens":NaN}}`}
	for i, body := range bodies {
		for _, encoding := range []string{"", "gzip", "deflate", "br", "zstd"} {
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				if encoding != "" {
					w.Header().Set("Content-Encoding", encoding)
				}
				_, _ = io.WriteString(w, body)
			})
			m := start(t, p.URL)
			_, through := m.address(Chat, false)
			header := http.Header{"Content-Encoding": {encoding}}
			got := ask(t, plainClient(t), through, strings.NewReader(body), header)
			if string(got.Body) != body || string(p.last(t).body) != body {
				t.Errorf("body %d with encoding %q was changed", i, encoding)
			}
			x := <-m.exchanges
			if x.Usage == nil && !x.Unread || x.Usage != nil && (x.Usage.InputTokens < 0 || x.Usage.OutputTokens < 0) {
				t.Errorf("body %d with encoding %q: reported %+v", i, encoding, x)
			}
		}
	}
}

// The first event arrives while the rest of the stream is still to come.
func TestStreamsAtOnce(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush() // the head alone
		for part := range next {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	})
	m := start(t, p.URL)
	_, through := m.address(Messages, true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, through, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plainClient(t).Do(req) // returns when the head has arrived
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, part := range []string{"d", "ata: {\"a\":1}\n", "\n", "data: {\"usage\":{\"output_tokens\":5}}\n\n"} {
		next <- part
		got := make([]byte, len(part))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != part {
			t.Fatalf("part %q arrived as %q, %v", part, got, err)
		}
	}
	close(next)
	_, _ = io.Copy(io.Discard, resp.Body)
	if x := <-m.exchanges; x.Usage == nil || x.Usage.OutputTokens != 5 {
		t.Errorf("reported %+v", x)
	}
}

func TestCutStream(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {\"message\":{\"usage\":{\"input_tokens\":70,\"output_tokens\":1}}}\n\n"+
			"data: {\"delta\":{\"text\":\""+strings.Repeat("word ", 100)+"\"}}\n\ndata: {\"del")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	m := start(t, p.URL)
	direct, through := m.address(Messages, true)
	want := ask(t, plainClient(t), direct, strings.NewReader(requestOf(Messages)), nil)
	got := ask(t, plainClient(t), through, strings.NewReader(requestOf(Messages)), nil)
	if diff := cmp.Diff(want, got); diff != "" || got.Err != "cut" {
		t.Errorf("answer differs (-direct +metered):\n%s", diff)
	}
	x := <-m.exchanges
	if !x.Cut || x.Usage == nil || !x.Usage.Estimated || x.Usage.InputTokens != 70 || x.Usage.OutputTokens != 125 ||
		x.CostMicros != nil {
		t.Errorf("reported %+v, usage %+v", x, x.Usage)
	}
}

func TestUpstreamDown(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	m := start(t, p.URL)
	p.Close()
	_, through := m.address(Chat, false)
	got := ask(t, plainClient(t), through, strings.NewReader(requestOf(Chat)), nil)
	if got.Status != http.StatusBadGateway || !bytes.Contains(got.Body, []byte("perdure meter")) {
		t.Errorf("status %d, body %s", got.Status, got.Body)
	}
	x := <-m.exchanges
	if x.Status != 0 || x.Usage != nil || x.Cut {
		t.Errorf("reported %+v", x)
	}
	if s := m.Summary(); s.Failed != 1 || s.Cost() == nil || *s.Cost() != 0 {
		t.Errorf("summary %+v", s)
	}
}

// A client that leaves ends the request to the provider.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	m := start(t, p.URL)
	_, through := m.address(Chat, true)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, through, strings.NewReader(requestOf(Chat)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plainClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-gone
	x := <-m.exchanges
	if !x.Cut || x.Usage == nil || !x.Usage.Estimated || x.Usage.OutputTokens != 2 {
		t.Errorf("reported %+v, usage %+v", x, x.Usage)
	}
}

// An answer that a client closes after its last event, before the provider does, is complete.
func TestClientClosesFirst(t *testing.T) {
	t.Parallel()
	for _, script := range scripts() {
		t.Run(script.name(), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, script.body)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			m := start(t, p.URL)
			_, through := m.address(script.api, script.stream)
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, through, strings.NewReader(requestOf(script.api)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := plainClient(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, len(script.body))); err != nil {
				t.Fatal(err)
			}
			cancel()
			if x := <-m.exchanges; x.Cut || x.Usage == nil || *x.Usage != script.want {
				t.Errorf("reported %+v, usage %+v", x, x.Usage)
			}
		})
	}
}

// Close ends requests that are under way and reports them.
func TestCloseEndsRequests(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	m := start(t, p.URL)
	_, through := m.address(Chat, true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, through, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plainClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if x := <-m.exchanges; !x.Cut {
		t.Errorf("reported %+v", x)
	}
}

// repeated is a body of n bytes without the memory for it.
type repeated struct {
	head, part, tail string
	n                int64
}

func (r repeated) reader() io.Reader {
	return io.MultiReader(strings.NewReader(r.head), io.LimitReader(&cycle{part: []byte(r.part)}, r.n),
		strings.NewReader(r.tail))
}

type cycle struct {
	part []byte
	at   int
}

func (c *cycle) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], c.part[c.at:])
		n, c.at = n+k, (c.at+k)%len(c.part)
	}
	return n, nil
}

// Not parallel, because it measures memory.
func TestLargeBodies(t *testing.T) { //nolint:paralleltest // see above
	const size = 100 << 20
	body := repeated{head: `{"choices":[{"message":{"content":"`, part: `line \"x\"\n`, n: size / 10 * 10,
		tail: `"}}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`}
	sum := func(r io.Reader) string {
		h := sha256.New()
		n, _ := io.Copy(h, r)
		return fmt.Sprintf("%d %x", n, h.Sum(nil))
	}
	var arrived string
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived = sum(r.Body)
		_, _ = io.Copy(w, body.reader())
	})}
	listener, err := listen("")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()

	m := start(t, "http://"+listener.Addr().String())
	_, through := m.address(Chat, false)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		highest := uint64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- highest
				return
			case <-tick.C:
				runtime.ReadMemStats(&after)
				highest = max(highest, after.HeapInuse)
			}
		}
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, through, body.reader())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plainClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	got := sum(resp.Body)
	_ = resp.Body.Close()
	x := <-m.exchanges
	close(stop)
	highest := <-peak
	if want := sum(body.reader()); got != want || arrived != want {
		t.Errorf("body arrived as %s, and came back as %s, want %s", arrived, got, want)
	}
	if !x.Unread && (x.Usage == nil || x.Usage.InputTokens != 7 || x.Usage.OutputTokens != 9) {
		t.Errorf("reported %+v", x)
	}
	const room = 2*maxQueued + 48<<20 // the queues, and garbage until the next collection
	if highest > before.HeapInuse+room {
		t.Errorf("heap grew from %d to %d bytes, limit %d more", before.HeapInuse, highest, room)
	}
	t.Logf("heap in use: %d MiB before, %d MiB at most; read: %v", before.HeapInuse>>20, highest>>20, !x.Unread)
}

// A reader that is too slow loses its copy and delays nothing.
func TestQueueNeverWaits(t *testing.T) {
	t.Parallel()
	q := newQueue()
	part := make([]byte, 1<<20)
	for range 2 * maxQueued / len(part) {
		q.add(part)
	}
	q.finish(io.EOF)
	if _, err := q.Read(make([]byte, 1)); !errors.Is(err, errSkipped) {
		t.Errorf("error %v, want that the body was skipped", err)
	}
	if q.length() != 2*maxQueued {
		t.Errorf("length %d", q.length())
	}
}
