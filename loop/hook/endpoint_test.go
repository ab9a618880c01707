package hook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/loop/hook"
)

// serve starts a server on the loopback address and returns a handler that
// posts to it. Both are closed at the end of the test.
func serve(t *testing.T, cfg hook.EndpointConfig, h http.HandlerFunc) *hook.Endpoint {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	cfg.URL = s.URL + cfg.URL
	e, err := hook.NewEndpoint(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestEndpointGetsTheMessage(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	e := serve(t, hook.EndpointConfig{URL: "/hooks?key=geheim", Header: http.Header{"Authorization": {"Bearer geheim"}}},
		func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + r.Header.Get("Authorization") +
				" " + string(body)
			_, _ = io.WriteString(w, seedDetection)
		})
	reply, err := e.Handle(t.Context(), message(hook.PostIteration, map[string]any{"quality_score": 70}))
	if err != nil || reply.Metadata.Verdict != hook.Block || reply.Metadata.RegressionType != hook.TestDeletion {
		t.Fatalf("%+v, %v", reply, err)
	}
	want := `POST /hooks?key=geheim application/json Bearer geheim {"role":"user","content":"what do you say?",` +
		`"metadata":{"hook_name":"post_iteration","loop_id":"fix-tests-a1b2c3d4","iteration":5,` +
		`"inputs":{"quality_score":70}}}`
	if text := <-got; text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
}

func TestEndpointReplies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   hook.Verdict
	}{
		{"no content", http.StatusNoContent, "", hook.Allow},
		{"empty", http.StatusOK, " \n", hook.Allow},
		{"JSON", http.StatusOK, `{"metadata":{"verdict":"WARN"}}`, hook.Warn},
		{"created", http.StatusCreated, `{"metadata":{"verdict":"BLOCK"}}`, hook.Block},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, hook.EndpointConfig{}, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			if got, err := e.Handle(t.Context(), message(hook.OnError, nil)); err != nil || got.Metadata.Verdict != tt.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestEndpointFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		h    http.HandlerFunc
		kind hook.FaultKind
		want string
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "database is down: password=geheim, and geheimer-schlüssel", http.StatusInternalServerError)
		}, hook.FaultStatus, "answers 500 Internal Server Error"},
		{"404 with a reply", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"metadata":{"verdict":"ALLOW"}}`)
		}, hook.FaultStatus, "answers 404 Not Found"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, hook.FaultRedirect, "redirect, which is not followed"},
		{"not modified", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
			hook.FaultStatus, "answers 304"},
		{"text", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>geheimer-schlüssel</html>")
		}, hook.FaultReply, "not a JSON object"},
		{"trailing", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, seedReply+"x") },
			hook.FaultReply, "after the end of the value"},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			page := []byte(strings.Repeat("x", 1<<16))
			for range 1 << 14 { // 1 GB, if it is read
				if _, err := w.Write(page); err != nil {
					return
				}
			}
			t.Error("1 GB was read")
		}, hook.FaultTooLarge, "body: exceeds the limit of 1048576"},
		{"breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"metadata":`)
		}, hook.FaultNetwork, "read the reply"},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, hook.FaultNetwork, "reach"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, hook.EndpointConfig{URL: "/p?token=geheim", Header: http.Header{"X-Key": {"geheimer-schlüssel"}}},
				tt.h)
			_, err := e.Handle(t.Context(), message(hook.OnError, nil))
			f := wantFault(t, err, tt.kind)
			if !strings.Contains(f.Error(), tt.want) || strings.Contains(f.Error()+f.Detail, "geheim") {
				t.Errorf("error is %v, %q; want %q", f, f.Detail, tt.want)
			}
		})
	}
}

// A slow server, before its reply and midway through it.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		waits := make(chan struct{}, 1)
		e := serve(t, hook.EndpointConfig{}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client went away
			if begun {
				_, _ = io.WriteString(w, `{"metadata":{"verdict":`)
				_ = http.NewResponseController(w).Flush()
			}
			waits <- struct{}{}
			<-r.Context().Done()
		})
		ctx, stop := context.WithCancel(t.Context())
		go func() { <-waits; stop() }()
		_, err := e.Handle(ctx, message(hook.OnError, nil))
		wantFault(t, err, hook.FaultCanceled)

		r := newRunner(t, hook.Config{
			Handlers: []hook.Registration{{Hook: hook.PreToolCall, Name: "slow", Handler: e, Timeout: 50 * time.Millisecond}}})
		got, err := r.Run(t.Context(), message(hook.PreToolCall, nil))
		if err != nil || got.Verdict != hook.Block || got.Records[0].Fault.Kind != hook.FaultTimeout ||
			got.Records[0].Kind != hook.KindHTTP {
			t.Errorf("begun %v: %+v, %v", begun, got, err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestEndpointThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	address := s.URL
	s.Close()
	e, err := hook.NewEndpoint(hook.EndpointConfig{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Handle(t.Context(), message(hook.OnError, nil))
	wantFault(t, err, hook.FaultNetwork)
	_, err = e.Handle(t.Context(), message(hook.OnError, map[string]any{"a": make(chan int)}))
	wantFault(t, err, hook.FaultMessage)
}

func TestEndpointAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://localhost:1/x?y=z": "", "https://example.org": "", "http://[::1]:8/": "", "HTTP://x": "",
		"": "is missing", "localhost:80": "does not begin with", "ftp://x": "does not begin with",
		"file:///etc/passwd": "does not begin with",
		"//x":                "does not begin with", "http://": "names no host", "http:///x": "names no host",
		"http://a:geheim@x": "contains a user or password",
		"http://geheim@x":   "contains a user or password", "http://x/#geheim": "contains a fragment",
		"http://x:geheim/": "is not an address", "http://x/%zz\n": "is not an address",
	} {
		_, err := hook.NewEndpoint(hook.EndpointConfig{URL: address})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "url: "+want) {
			t.Errorf("%q: error is %v, want %q", address, err, want)
		}
	}
	if _, err := hook.NewEndpoint(hook.EndpointConfig{URL: "http://x", MaxReply: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
}
