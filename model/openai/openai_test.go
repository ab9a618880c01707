package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/model/openai"
)

const key = "very-secret-key-0123456789"

// connect starts a server and returns a model that asks it.
func connect(t *testing.T, h http.Handler, change ...func(*openai.Config)) *openai.Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg := openai.Config{Model: "small", BaseURL: srv.URL + "/v1", APIKey: key}
	for _, c := range change {
		c(&cfg)
	}
	m, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func script(t *testing.T, text string) *mock.Server {
	t.Helper()
	s, err := mock.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return mock.NewServer(s)
}

// says is a server that answers every request with these bytes.
func says(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// stream is a server that streams these events.
func stream(events ...string) http.HandlerFunc {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return says("text/event-stream", b.String())
}

func wantKind(t *testing.T, err error, want model.Kind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error = %v, want kind %q", err, want)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %s %s %s", err, err, e.Msg, e.Hint, e.Detail), key) {
		t.Errorf("the key is in %+v", e)
	}
	return e
}

func ask(t *testing.T, m model.Model) (*model.Response, error) {
	t.Helper()
	return m.Generate(t.Context(), &model.Request{Prompt: "question"})
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	srv := script(t, `{model: tiny, replies: [{text: "{{prompt}}", usage: {input: 7, output: 8, cached: 3}}]}`)
	m := connect(t, srv)
	var pieces []string
	req := &model.Request{
		System: "be brief", Prompt: "question",
		Documents: []model.Document{{File: "ä.txt", StartLine: 1, Text: strings.Repeat("grün und weiß\n", 50)}},
		OnText:    func(text string) { pieces = append(pieces, text) },
	}
	got, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Response{
		Text: model.RenderAll(req), StopReason: "stop", Model: "tiny", Tries: 1,
		Usage: model.Usage{InputTokens: 7, OutputTokens: 8, CachedTokens: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(pieces) < 5 || strings.Join(pieces, "") != want.Text {
		t.Errorf("%d pieces: %q", len(pieces), pieces)
	}
	if e := srv.Ledger().Of(model.RenderAll(req)); e.Started != 1 || e.Finished != 1 {
		t.Errorf("ledger: %+v", e)
	}
}

// TestRequest looks at what goes over the wire. It is not parallel, because it
// shows that nothing is taken from the environment.
func TestRequest(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://from.the.environment.invalid")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	var header http.Header
	var body map[string]any
	h := func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/v1/chat/completions" {
			t.Errorf("path %q", r.URL.Path)
		}
		stream(`{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`)(w, r)
	}
	temperature, seed := 0.5, int64(42)
	req := &model.Request{System: "s", Prompt: "p <&>", Temperature: &temperature, Seed: &seed, MaxOutputTokens: 9}
	m := connect(t, http.HandlerFunc(h))
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"model": "small", "stream": true, "stream_options": map[string]any{"include_usage": true},
		"temperature": 0.5, "seed": 42.0, "max_tokens": 9.0,
		"messages": []any{
			map[string]any{"role": "system", "content": "s"},
			map[string]any{"role": "user", "content": "p <&>"},
		},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if got := header.Get("Authorization"); got != "Bearer "+key {
		t.Errorf("Authorization: %q", got)
	}

	body = nil
	m = connect(t, http.HandlerFunc(h), func(c *openai.Config) { c.APIKey = "" })
	if _, err := ask(t, m); err != nil {
		t.Fatal(err)
	}
	delete(body, "stream")
	delete(body, "stream_options")
	want = map[string]any{"model": "small", "messages": []any{map[string]any{"role": "user", "content": "question"}}}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(header); strings.Contains(text, "environment") || header.Get("Authorization") != "" {
		t.Errorf("header %v", header)
	}
}

// TestRequestBytes holds the body of a request byte by byte: another order or
// spelling could mean something to a gateway or a cache.
func TestRequestBytes(t *testing.T) {
	t.Parallel()
	temperature, seed := 0.1, int64(-9007199254740993)
	req := &model.Request{System: "s <&>", Prompt: "p \"\x00ä\u2028", Temperature: &temperature, Seed: &seed,
		MaxOutputTokens: 1 << 40}
	for base, name := range map[string]string{
		"http://localhost/v1": "max_tokens", "https://api.openai.com/v1": "max_completion_tokens",
		"https://own.openai.azure.com/openai/v1": "max_completion_tokens",
	} {
		want := `{"messages":[{"content":"s <&>","role":"system"},{"content":"p \"\u0000ä\u2028","role":"user"}],` +
			`"model":"small",` +
			`"` + name + `":1099511627776,"seed":-9007199254740993,"temperature":0.1,"stream_options":{"include_usage":true},` +
			`"stream":true}`
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != want {
				t.Errorf("%s: body %s, %v, want %s", base, body, err, want)
			}
			if got := r.URL.String(); got != base+"/chat/completions" {
				t.Errorf("URL %s", got)
			}
			reply := io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"ok"}}]}`))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: reply}, nil
		})}
		m, err := openai.New(openai.Config{Model: "small", BaseURL: base, APIKey: key, HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(t.Context(), req); err != nil {
			t.Error(err)
		}
	}
}

// transport is an [http.RoundTripper] without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Some models take no temperature. The first request finds out, the others know.
func TestTemperatureRefused(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests.Add(1)
		if strings.Contains(string(body), "temperature") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.7",`+
				`"code":"unsupported_value"}}`)
			return
		}
		stream(`{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`)(w, r)
	}))
	temperature := 0.7
	for range 3 {
		got, err := m.Generate(t.Context(), &model.Request{Prompt: "q", Temperature: &temperature})
		if err != nil || got.Text != "ok" || len(got.Notes) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if requests.Load() != 4 {
		t.Errorf("%d requests for three answers, want 4", requests.Load())
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		header [2]string
		body   string
		kind   model.Kind
		after  time.Duration
		text   string
		hint   string
	}{
		{status: 400, body: `{"error":{"message":"bad temperature"}}`, kind: model.KindInvalid, text: "400: bad temperature"},
		{status: 400, body: `{"error":{"message":"m","code":"context_length_exceeded"}}`, kind: model.KindTooLong,
			hint: "context window"},
		{status: 400, body: `{"error":{"message":"the request exceeds the available context size",` +
			`"type":"exceed_context_size_error"}}`, kind: model.KindTooLong, hint: "context window"},
		{status: 400, body: `{"error":{"message":"max_tokens is too large: 9; this model writes at most 8"}}`,
			kind: model.KindInvalid},
		{status: 401, body: `{"error":{"message":"Incorrect API key: ` + key + `"}}`, kind: model.KindAuth,
			text: "[redacted]", hint: "OPENAI_API_KEY"},
		{status: 403, kind: model.KindAuth, text: "403: Forbidden"},
		{status: 404, body: `{"error":"model 'x' not found"}`, kind: model.KindNotFound, text: "model 'x' not found",
			hint: "/v1/models"},
		{status: 404, body: "404 page not found", kind: model.KindNotFound, hint: "OPENAI_BASE_URL"},
		{status: 408, kind: model.KindUnavailable},
		{status: 409, kind: model.KindUnavailable},
		{status: 413, body: "<html>\ntoo large</html>", kind: model.KindTooLong, text: "<html> too large</html>"},
		{status: 422, body: `{"detail":"no"}`, kind: model.KindInvalid, text: "422: no"},
		{status: 429, header: [2]string{"Retry-After", "2"}, kind: model.KindRateLimit, after: 2 * time.Second},
		{status: 429, header: [2]string{"Retry-After", "1.5"}, kind: model.KindRateLimit, after: 1500 * time.Millisecond},
		{status: 429, header: [2]string{"Retry-After-Ms", "250"}, kind: model.KindRateLimit, after: 250 * time.Millisecond},
		{status: 429, header: [2]string{"Retry-After", "-1"}, kind: model.KindRateLimit},
		{status: 429, header: [2]string{"Retry-After", "1e300"}, kind: model.KindRateLimit, after: 60 * 24 * time.Hour},
		{status: 429, header: [2]string{"Retry-After", "soon"}, kind: model.KindRateLimit},
		{status: 429, header: [2]string{"Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"}, kind: model.KindRateLimit},
		{status: 429, body: `{"error":{"message":"m","code":"insufficient_quota"}}`, kind: model.KindQuota,
			hint: "quota"},
		{status: 500, kind: model.KindUnavailable, text: "500: Internal Server Error"},
		{status: 503, header: [2]string{"Retry-After", "3"}, body: "\xff\x00", kind: model.KindUnavailable,
			after: 3 * time.Second},
		{status: 529, body: strings.Repeat("x", 1<<20), kind: model.KindUnavailable, text: "xxx…"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d/%d", i, tt.status), func(t *testing.T) {
			t.Parallel()
			m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.header[0] != "" {
					w.Header().Set(tt.header[0], tt.header[1])
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			_, err := ask(t, m)
			e := wantKind(t, err, tt.kind)
			if e.Status != tt.status || e.RetryAfter != tt.after {
				t.Errorf("status %d, retry after %s, want %d, %s", e.Status, e.RetryAfter, tt.status, tt.after)
			}
			if !strings.Contains(e.Error(), tt.text) || len(e.Error()) > 800 || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("error = %v, hint %q, want %q, %q", e, e.Hint, tt.text, tt.hint)
			}
		})
	}
}

func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	_, err := ask(t, m)
	if e := wantKind(t, err, model.KindRateLimit); e.RetryAfter < 50*time.Minute || e.RetryAfter > time.Hour {
		t.Errorf("retry after %s, want about an hour", e.RetryAfter)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	piece := `{"choices":[{"delta":{"content":"part"}}]}`
	end := `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	tests := []struct {
		name string
		h    http.HandlerFunc
		text string
		kind model.Kind
		says string
	}{
		{name: "complete", h: stream(piece, end, "[DONE]"), text: "part"},
		{name: "no mark at the end", h: stream(piece, end), text: "part"},
		{name: "no reason to stop", h: stream(piece, "[DONE]"), text: "part"},
		{name: "rubbish after the end", h: stream(piece, end, "{"), text: "part"},
		{name: "comments and other fields", h: says("text/event-stream; charset=utf-8",
			": hello\n\nevent: x\nid: 1\ndata: "+piece+"\n\ndata: "+end+"\n\n"), text: "part"},
		{name: "not streamed", h: says("application/json; charset=utf-8",
			`{"model":"m","choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}`), text: "whole"},
		{name: "breaks off", h: stream(piece, piece), kind: model.KindCut, says: "after 8 bytes"},
		{name: "rubbish in the middle", h: stream(piece, "{", end), kind: model.KindCut},
		{name: "provider says error", h: stream(piece, `{"choices":[{"delta":{},"finish_reason":"error"}]}`),
			kind: model.KindCut},
		{name: "error in the stream", h: stream(piece, `{"error":{"message":"overloaded `+key+`","code":503}}`),
			kind: model.KindUnavailable, says: "overloaded"},
		{name: "rate limit in the stream", h: stream(`{"error":{"message":"slow down","type":"rate_limit_error"}}`),
			kind: model.KindRateLimit},
		{name: "bad request in the stream", h: stream(`{"error":{"message":"no","type":"invalid_request_error"}}`),
			kind: model.KindInvalid},
		{name: "unknown error in the stream", h: stream(`{"error":"lost it"}`), kind: model.KindCut, says: "lost it"},
		{name: "error with status 200", h: says("application/json", `{"error":{"message":"nope","code":429}}`),
			kind: model.KindRateLimit},
		{name: "half of a whole answer", h: says("application/json", `{"choices":[{"message":{"content":"who`),
			kind: model.KindCut},
		{name: "something else in JSON", h: says("application/json", `[1, 2]`), kind: model.KindUnavailable},
		{name: "no choices", h: says("application/json", `{}`), kind: model.KindUnavailable},
		{name: "a web page", h: says("text/html", "<html>Welcome</html>"), kind: model.KindUnavailable},
		{name: "nothing at all", h: says("text/event-stream", ""), kind: model.KindUnavailable},
		{name: "refusal", h: stream(`{"choices":[{"delta":{"refusal":"I will not"},"finish_reason":"stop"}]}`),
			kind: model.KindInvalid, says: "refuses"},
		{name: "filter", h: stream(`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`), kind: model.KindInvalid,
			says: "filter"},
		{name: "no room for text", h: stream(`{"choices":[{"delta":{},"finish_reason":"length"}]}`),
			kind: model.KindInvalid, says: "limit"},
		{name: "empty", h: stream(end, "[DONE]"), text: ""},
		{name: "a character in two events", h: stream(
			"{\"choices\":[{\"delta\":{\"content\":\"a\xe2\x82\"}}]}", "{\"choices\":[{\"delta\":{\"content\":\"\xac\"}}]}",
			end), text: "a€"},
		{name: "fields that are null", h: stream(`{"model":"m","error":null,"usage":null,`+
			`"choices":[{"delta":{"role":"assistant",`+
			`"content":null,"refusal":null},"finish_reason":null,"logprobs":null}]}`, piece, end, "[DONE]"), text: "part"},
		{name: "other types", h: stream(`{"model":7,"choices":[{"delta":{"content":"a"},"finish_reason":[]}]}`,
			`{"choices":[{"delta":{"content":[{"type":"text","text":"b"}]}}],"usage":"x"}`, end), text: "ab"},
		{name: "not UTF-8", h: stream(
			"{\"choices\":[{\"delta\":{\"content\":\"a\xffb\\u0000\"},\"finish_reason\":\"stop\"}]}"), text: "a\uFFFDb\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, connect(t, tt.h))
			if tt.kind != "" {
				if e := wantKind(t, err, tt.kind); !strings.Contains(e.Error(), tt.says) {
					t.Errorf("error = %v, want %q", e, tt.says)
				}
				return
			}
			if err != nil || got.Text != tt.text {
				t.Fatalf("%+v, %v, want %q", got, err, tt.text)
			}
			if !got.Usage.Estimated || got.Usage.InputTokens != 2 ||
				got.Usage.OutputTokens != model.EstimateTokens(len(tt.text)) {
				t.Errorf("usage %+v, want an estimate", got.Usage)
			}
		})
	}
}

func TestScriptedFaults(t *testing.T) {
	t.Parallel()
	limit := func(c *openai.Config) { c.MaxResponseBytes = 100_000 }
	_, err := ask(t, connect(t, script(t, "replies: [{text: abcdefgh, size: 1000, cut: 500}]")))
	if e := wantKind(t, err, model.KindCut); !e.Retryable() {
		t.Errorf("%v cannot be tried again", e)
	}
	_, err = ask(t, connect(t, script(t, "replies: [{size: 10000000}]"), limit))
	if e := wantKind(t, err, model.KindTooLarge); e.Retryable() || e.Hint == "" {
		t.Errorf("error = %+v", e)
	}
	whole := `{"choices":[{"message":{"content":"` + strings.Repeat("x", 100_001) + `"},"finish_reason":"stop"}]}`
	_, err = ask(t, connect(t, says("application/json", whole), limit))
	wantKind(t, err, model.KindTooLarge)
	_, err = ask(t, connect(t, says("application/json", strings.Repeat(" ", 2_000_000)), limit))
	wantKind(t, err, model.KindTooLarge)

	got, err := ask(t, connect(t, script(t, "replies: [{size: 10000000, text: xyz}]")))
	if err != nil || len(got.Text) != 10_000_000 {
		t.Errorf("10 MB: %v", err)
	}
	got, err = ask(t, connect(t, script(t, "replies: [{text: abc, invalid_utf8: true}]")))
	if err != nil || got.Text != "abc\uFFFD" || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	reset := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	resetting := httptest.NewServer(reset)
	t.Cleanup(resetting.Close)
	tests := []struct {
		base string
		kind model.Kind
	}{
		{closed.URL, model.KindRefused},
		{"http://user:" + key + "@" + strings.TrimPrefix(closed.URL, "http://"), model.KindRefused},
		{"http://no-such-host.invalid/v1", model.KindRefused},
		{resetting.URL, model.KindUnavailable},
		{secure.URL, model.KindNotFound},
		{strings.Replace(plain.URL, "http:", "https:", 1), model.KindNotFound},
	}
	for _, tt := range tests {
		m, err := openai.New(openai.Config{Model: "small", BaseURL: tt.base, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ask(t, m)
		m.Close()
		e := wantKind(t, err, tt.kind)
		if !strings.Contains(e.Hint, "OPENAI_BASE_URL") {
			t.Errorf("%s: error = %v, hint %q", tt.base, e, e.Hint)
		}
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cfg  openai.Config
		kind model.Kind
		hint string
	}{
		{openai.Config{}, model.KindInvalid, ""},
		{openai.Config{Model: "m"}, model.KindAuth, "OPENAI_API_KEY"},
		{openai.Config{Model: "m", BaseURL: "https://models.example.com/v1"}, model.KindAuth, "OPENAI_API_KEY"},
		{openai.Config{Model: "m", BaseURL: "localhost:8080"}, model.KindInvalid, "OPENAI_BASE_URL"},
		{openai.Config{Model: "m", BaseURL: "ftp://localhost"}, model.KindInvalid, "OPENAI_BASE_URL"},
		{openai.Config{Model: "m", BaseURL: "http://"}, model.KindInvalid, "OPENAI_BASE_URL"},
		{openai.Config{Model: "m", BaseURL: "http://[::1"}, model.KindInvalid, "OPENAI_BASE_URL"},
		{openai.Config{Model: "m", BaseURL: "http://localhost?key=" + key}, model.KindInvalid, "OPENAI_BASE_URL"},
		{openai.Config{Model: "m", BaseURL: "http://localhost", Window: -1}, model.KindInvalid, ""},
		{openai.Config{Model: "m", BaseURL: "http://localhost", MaxResponseBytes: -1}, model.KindInvalid, ""},
		{openai.Config{Model: "m", APIKey: key + "\n"}, model.KindInvalid, ""},
	}
	for _, tt := range tests {
		_, err := openai.New(tt.cfg)
		if e := wantKind(t, err, tt.kind); !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%+v: hint %q", tt.cfg, e.Hint)
		}
	}
	for _, base := range []string{"http://localhost:1/v1/", "http://127.0.0.1", "http://[::1]:8",
		"http://192.168.1.2/v1", "http://ollama:11434/v1", "http://gpu.local"} {
		m, err := openai.New(openai.Config{Model: "m", BaseURL: base, Window: 5})
		if err != nil || m.Window() != 5 {
			t.Errorf("%s without a key: %v", base, err)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client went
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := m.Generate(ctx, &model.Request{OnText: func(string) { cancel() }})
	if e := wantKind(t, err, model.KindCanceled); !errors.Is(e, context.Canceled) {
		t.Errorf("error = %v", e)
	}
	<-gone
	_, err = m.Generate(ctx, &model.Request{})
	wantKind(t, err, model.KindCanceled)
}

func TestManyAtOnceThroughARateLimit(t *testing.T) {
	t.Parallel()
	srv := script(t, `
replies:
  - {status: 429, retry_after: 20ms, repeat: 3}
  - {status: 500}
  - {text: abcdefgh, cut: 4}
  - {empty: true}
  - {text: "{{hash}}", repeat: -1}
`)
	g, err := model.NewGuarded(model.GuardedConfig{
		Model: connect(t, srv), Concurrency: 8, InitialBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			prompt := fmt.Sprint("question ", i)
			got, err := g.Generate(t.Context(), &model.Request{Prompt: prompt})
			if err != nil || got.Text != mock.Hash(prompt) {
				t.Errorf("%s: %+v, %v", prompt, got, err)
			}
		})
	}
	wg.Wait()
	sum := srv.Ledger().Totals()
	if sum.First != 100 || sum.Finished != 101 || sum.Failed != 5 { // the empty answer was finished, too
		t.Errorf("ledger: %+v", sum)
	}
	if peak := srv.Ledger().Peak(); peak > 8 {
		t.Errorf("%d requests at once, want at most 8", peak)
	}
}

// FuzzReply checks that no reply of a server makes the provider panic or return
// text that is not UTF-8.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"content":"x"}}]}`,
		"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n",
		`{"error":"x"}`, "data: {\"error\":7}\n\n", "data: {\n\n", "\x00",
	} {
		f.Add("text/event-stream", seed)
		f.Add("application/json", seed)
	}
	f.Fuzz(func(t *testing.T, contentType, body string) {
		client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			reply := io.NopCloser(strings.NewReader(body))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}},
				Body: reply}, nil
		})}
		m, err := openai.New(openai.Config{Model: "small", BaseURL: "http://localhost/v1", HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := ask(t, m)
		var e *model.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error = %v", err)
		}
		if err == nil && strings.ToValidUTF8(resp.Text, "") != resp.Text {
			t.Errorf("answer %q", resp.Text)
		}
	})
}
