package inproc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// serve returns a client of the handler that waits for its handlers when the
// test ends.
func serve(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	transport := &inproc.Transport{Handler: h}
	t.Cleanup(transport.Close)
	return &http.Client{Transport: transport}
}

func request(ctx context.Context, t *testing.T, method, target string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://perdure"+target, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// outcome is what a caller sees of an exchange.
type outcome struct {
	status int
	kind   string
	body   string
	err    bool
}

func observe(t *testing.T, c *http.Client, req *http.Request) outcome {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		return outcome{err: true}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return outcome{status: resp.StatusCode, kind: resp.Header.Get("Content-Type"), body: string(body), err: err != nil}
}

// The same handlers behind a real server and in process: callers must not be
// able to tell the difference.
func TestLikeAServer(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 64<<10) // more than any buffer
	tests := []struct {
		name    string
		method  string
		target  string
		body    string
		handler http.HandlerFunc
	}{
		{"nothing written", "GET", "/", "", func(http.ResponseWriter, *http.Request) {}},
		{"text", "GET", "/", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }},
		{"sniffed", "GET", "/", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><body>") }},
		{"status", "GET", "/", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "x/y")
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Content-Type", "too/late")
			fmt.Fprint(w, "short and stout")
		}},
		{"no content", "GET", "/", "", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
				panic(err)
			}
		}},
		{"head", "HEAD", "/", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }},
		{"early hints", "GET", "/", "", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			fmt.Fprint(w, "hello")
		}},
		{"request", "PUT", "/a%2Fb/c?d=e%20f&d=g", "body", func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintln(w, r.Method, r.RequestURI, r.URL.String(), r.URL.Path, r.Host, r.Proto, r.ContentLength, string(body),
				err)
		}},
		{"no body", "POST", "", "", func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintln(w, r.RequestURI, r.URL.Path, r.ContentLength, string(body), err)
		}},
		{"echo large", "POST", "/", big, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		}},
		{"panic", "GET", "/", "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"panic after the header", "GET", "/", "", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		{"body unread", "POST", "/", big, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			build := func(base string) *http.Request {
				var body io.Reader
				if test.body != "" {
					body = strings.NewReader(test.body)
				}
				req, err := http.NewRequestWithContext(t.Context(), test.method, base+test.target, body)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = "perdure"
				return req
			}
			srv := httptest.NewUnstartedServer(test.handler)
			srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			srv.Start()
			defer srv.Close()
			want := observe(t, srv.Client(), build(srv.URL))
			got := observe(t, serve(t, test.handler), build("http://perdure"))
			if got != want {
				t.Errorf("in process %+v\nby a server %+v", got, want)
			}
		})
	}
}

// Both directions stream: each line is answered before the next is sent.
func TestStreamsBothWays(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 16)
		for {
			n, err := r.Body.Read(buf)
			if err != nil {
				return
			}
			fmt.Fprintf(w, "got %s", buf[:n])
		}
	})
	in, out := io.Pipe()
	resp, err := c.Do(request(t.Context(), t, "POST", "/", in))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 3 {
		line := fmt.Sprintf("line %d", i)
		if _, err := io.WriteString(out, line); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("got ")+len(line))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "got "+line {
			t.Fatalf("answer %q, %v", got, err)
		}
	}
	out.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// A handler that waits, for whatever, ends with the caller.
func TestCancellation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		handler func(w http.ResponseWriter, r *http.Request)
	}{
		{"waits for the context", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"reads the request", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }},
		{"writes the response", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name+" before the header", func(t *testing.T) {
			t.Parallel()
			started := make(chan struct{})
			transport := &inproc.Transport{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(started)
				test.handler(nowhere{ctx: r.Context()}, r)
			})}
			defer transport.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("changed my mind")
			go func() {
				<-started
				cancel(why)
			}()
			in, out := io.Pipe()
			defer out.Close()
			resp, err := (&http.Client{Transport: transport}).Do(request(ctx, t, "POST", "/", in))
			if err == nil {
				resp.Body.Close()
			}
			if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
				t.Errorf("Do = %v", err)
			}
		})
		t.Run(test.name+" after the header", func(t *testing.T) {
			t.Parallel()
			transport := &inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				test.handler(w, r)
			})}
			in, out := io.Pipe()
			defer out.Close()
			resp, err := (&http.Client{Transport: transport}).Do(request(t.Context(), t, "POST", "/", in))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
				t.Error("read after close succeeded")
			}
			transport.Close() // waits for the handler
		})
	}
}

// nowhere is a response that takes everything until the context ends.
type nowhere struct {
	http.ResponseWriter
	ctx context.Context
}

func (n nowhere) Write(p []byte) (int, error) { return len(p), n.ctx.Err() }

func TestPanic(t *testing.T) {
	t.Parallel()
	c := serve(t, func(http.ResponseWriter, *http.Request) { panic("boom") })
	resp, err := c.Do(request(t.Context(), t, "GET", "/", nil))
	if err == nil {
		resp.Body.Close()
	}
	var p *inproc.PanicError
	if !errors.As(err, &p) || p.Value != "boom" || !bytes.Contains(p.Stack, []byte("TestPanic")) {
		t.Fatalf("Do = %v", err)
	}

	c = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic("boom")
	})
	resp, err = c.Do(request(t.Context(), t, "GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if string(got) != "half" || !errors.As(err, &p) {
		t.Errorf("body %q, %v", got, err)
	}
}

// Writes wait for the reader, and no longer than the deadline.
func TestWriteDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var wrote int64
		var failed error
		transport := &inproc.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			var n int
			for failed == nil {
				n, failed = w.Write(make([]byte, 1000))
				wrote += int64(n)
			}
		})}
		resp, err := (&http.Client{Transport: transport}).Do(request(t.Context(), t, "GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(2 * time.Minute)
		got, err := io.Copy(io.Discard, resp.Body)
		transport.Close()
		if !errors.Is(failed, os.ErrDeadlineExceeded) || got != wrote || got < 32<<10 || err != nil {
			t.Errorf("wrote %d bytes until %v after %v, read %d, %v", wrote, failed, time.Since(begin), got, err)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	ended := make(chan struct{})
	transport := &inproc.Transport{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(ended)
		close(started)
		<-r.Context().Done()
	})}
	c := &http.Client{Transport: transport}
	go func() {
		<-started
		transport.Close()
		select {
		case <-ended:
		default:
			t.Error("Close returned before the handler")
		}
	}()
	for _, when := range []string{"during", "after"} {
		resp, err := c.Do(request(t.Context(), t, "GET", "/", nil))
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, inproc.ErrClosed) {
			t.Errorf("request %s Close: %v, %v", when, resp, err)
		}
		transport.Close()
	}
}

// Many exchanges at once, with bodies of all sizes, come back whole.
func TestParallel(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			want := make([]byte, rng.IntN(300<<10))
			for j := range want {
				want[j] = byte(i + j*j)
			}
			resp, err := c.Do(request(t.Context(), t, "POST", "/", bytes.NewReader(want)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back as %d, %v", len(want), len(got), err)
			}
		})
	}
	wg.Wait()
}
