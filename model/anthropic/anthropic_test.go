package anthropic_test

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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/anthropic"
	"github.com/perdure/perdure/model/mock"
)

const key = "very-secret-key-0123456789"

// connect starts a server and returns a model that asks it.
func connect(t *testing.T, h http.Handler, change ...func(*anthropic.Config)) *anthropic.Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg := anthropic.Config{Model: "small", BaseURL: srv.URL, APIKey: key}
	for _, c := range change {
		c(&cfg)
	}
	m, err := anthropic.New(cfg)
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

// stream is a server that streams these events, each named by its type.
func stream(events ...string) http.HandlerFunc {
	var b strings.Builder
	for _, e := range events {
		var named struct{ Type string }
		_ = json.Unmarshal([]byte(e), &named)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", named.Type, e)
	}
	return says("text/event-stream; charset=utf-8", b.String())
}

// The events of a small answer.
const (
	start = `{"type":"message_start","message":{"model":"m"}}`
	piece = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"part"}}`
	ended = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
	stop  = `{"type":"message_stop"}`
)

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
	srv := script(t, `{model: tiny, replies: [{text: "{{prompt}}", usage: {input: 17, output: 8, cached: 3, written: `+
		`4}}]}`)
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
		Text: model.RenderAll(req), StopReason: "end_turn", Model: "tiny", Tries: 1,
		Usage: model.Usage{InputTokens: 17, OutputTokens: 8, CachedTokens: 3, CacheWriteTokens: 4},
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
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://from.the.environment.invalid")
	var header http.Header
	var body map[string]any
	h := func(w http.ResponseWriter, r *http.Request) {
		header, body = r.Header, nil
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/v1/messages" {
			t.Errorf("path %q", r.URL.Path)
		}
		stream(start, piece, ended, stop)(w, r)
	}
	temperature, seed := 0.5, int64(42)
	req := &model.Request{System: "s", Prompt: "p <&>", Temperature: &temperature, Seed: &seed, MaxOutputTokens: 9}
	m := connect(t, http.HandlerFunc(h))
	got, err := m.Generate(t.Context(), req)
	if err != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "seed") {
		t.Fatalf("%+v, %v, want a note on the seed", got, err)
	}
	user := func(text string) []any {
		return []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}}}
	}
	want := map[string]any{
		"model": "small", "stream": true, "temperature": 0.5, "max_tokens": 9.0, "messages": user("p <&>"),
		"system": []any{map[string]any{"type": "text", "text": "s"}},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if got := header.Get("X-Api-Key"); got != key {
		t.Errorf("x-api-key: %q", got)
	}
	if header.Get("Anthropic-Version") == "" {
		t.Error("the version of the protocol is missing")
	}

	hot := 1.7
	m = connect(t, http.HandlerFunc(h), func(c *anthropic.Config) {
		c.APIKey, c.BaseURL, c.MaxOutput = "",
			c.BaseURL+"/v1/", 77
	})
	if got, err = m.Generate(t.Context(), &model.Request{Prompt: "question", Temperature: &hot}); err != nil {
		t.Fatal(err)
	}
	want = map[string]any{"model": "small", "stream": true, "temperature": 1.0, "max_tokens": 77.0,
		"messages": user("question")}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "temperature") {
		t.Errorf("notes %q", got.Notes)
	}
	if text := fmt.Sprint(header); strings.Contains(text, "environment") || header.Get("X-Api-Key") != "" ||
		header.Get("Authorization") != "" {
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
	m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		want := `{"max_tokens":1099511627776,"messages":[{"content":[{"text":"p \"\u0000ä\u2028","type":"text"}],` +
			`"role":"user"}],` +
			`"model":"small","temperature":0.1,"system":[{"text":"s <&>","type":"text"}],"stream":true}`
		if err != nil || string(body) != want {
			t.Errorf("body %s, %v, want %s", body, err, want)
		}
		stream(start, piece, ended, stop)(w, r)
	}))
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// Some models take no temperature. The first request finds out, the others know.
func TestTemperatureRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requests := 0
	m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		requests++
		mu.Unlock()
		if strings.Contains(string(body), "temperature") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"temperature: is not `+
				`supported"}}`)
			return
		}
		stream(start, piece, ended, stop)(w, r)
	}))
	temperature := 0.7
	for range 3 {
		got, err := m.Generate(t.Context(), &model.Request{Prompt: "q", Temperature: &temperature})
		if err != nil || got.Text != "part" || len(got.Notes) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if requests != 4 {
		t.Errorf("%d requests for three answers, want 4", requests)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	said := func(kind, text string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, text)
	}
	tests := []struct {
		status int
		header [2]string
		body   string
		kind   model.Kind
		after  time.Duration
		text   string
		hint   string
	}{
		{status: 400, body: said("invalid_request_error", "bad"), kind: model.KindInvalid, text: "400: bad"},
		{status: 400, body: said("invalid_request_error", "prompt is too long: 9 > 8"), kind: model.KindTooLong,
			hint: "context window"},
		{status: 400, body: said("invalid_request_error", "Your credit balance is too low"), kind: model.KindQuota,
			hint: "billing"},
		{status: 400, body: said("invalid_request_error", "max_tokens: 9 > 8"), kind: model.KindInvalid, hint: "lower limit"},
		{status: 401, body: said("authentication_error", "invalid x-api-key "+key), kind: model.KindAuth,
			text: "[redacted]", hint: "ANTHROPIC_API_KEY"},
		{status: 403, kind: model.KindAuth, text: "403: Forbidden"},
		{status: 404, body: said("not_found_error", "model: x"), kind: model.KindNotFound, text: "model: x",
			hint: "ANTHROPIC_BASE_URL"},
		{status: 413, body: said("request_too_large", "too large"), kind: model.KindTooLong, hint: "context window"},
		{status: 429, header: [2]string{"Retry-After", "2"}, body: said("rate_limit_error", "slow"),
			kind: model.KindRateLimit, after: 2 * time.Second},
		{status: 429, header: [2]string{"Retry-After-Ms", "250"}, kind: model.KindRateLimit, after: 250 * time.Millisecond},
		{status: 500, body: said("api_error", "oops"), kind: model.KindUnavailable, text: "500: oops"},
		{status: 529, body: said("overloaded_error", "Overloaded"), kind: model.KindUnavailable, text: "529: Overloaded",
			hint: "--model a,b"},
		{status: 529, body: strings.Repeat("x", 1<<20), kind: model.KindUnavailable, text: "xxx…"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d/%d", i, tt.status), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			requests := 0
			m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				requests++
				mu.Unlock()
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
			want := 1
			if tt.hint == "lower limit" {
				want = 3 // twice with a lower one
			}
			if requests != want {
				t.Errorf("%d requests, want %d: the provider does not retry", requests, want)
			}
		})
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	fault := func(kind string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"said %s"}}`, kind, key)
	}
	limit := `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`
	refusal := `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`
	full := `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`
	tests := []struct {
		name string
		h    http.HandlerFunc
		text string
		kind model.Kind
		says string
	}{
		{name: "complete", h: stream(start, piece, ended, stop), text: "part"},
		{name: "text in the block's beginning", h: stream(start, `{"type":"content_block_start",`+
			`"content_block":{"type":"text","text":"a "}}`, piece, ended, stop), text: "a part"},
		{name: "thoughts only", h: stream(start, `{"type":"content_block_delta","delta":{"type":"thinking_delta",`+
			`"thinking":"hm","text":"hm"}}`, piece, ended, stop), text: "part"},
		{name: "unknown events", h: stream(start, `{"type":"news"}`, `{"type":"ping"}`, piece, ended, stop), text: "part"},
		{name: "rubbish after the end", h: stream(start, piece, ended, stop, "{"), text: "part"},
		{name: "events without names",
			h: says("text/event-stream", ": hello\n\ndata: "+start+"\n\ndata: "+piece+"\n\ndata: "+stop+"\n\n"), text: "part"},
		{name: "not streamed", h: says("application/json; charset=utf-8",
			`{"type":"message","model":"m","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"whole"}],`+
				`"stop_reason":"end_turn"}`), text: "whole"},
		{name: "breaks off", h: stream(start, piece, piece), kind: model.KindCut, says: "after 8 bytes"},
		{name: "ends without the last event", h: stream(start, piece, ended), text: "part"},
		{name: "rubbish in the middle", h: stream(start, piece, "{", ended, stop), kind: model.KindCut},
		{name: "overloaded in the stream", h: stream(start, piece, fault("overloaded_error")), kind: model.KindUnavailable,
			says: "said"},
		{name: "rate limit in the stream", h: stream(fault("rate_limit_error")), kind: model.KindRateLimit},
		{name: "bad request in the stream", h: stream(fault("invalid_request_error")), kind: model.KindInvalid},
		{name: "key in the stream", h: stream(fault("authentication_error")), kind: model.KindAuth},
		{name: "unknown error in the stream", h: stream(start, fault("strange_error")), kind: model.KindCut},
		{name: "malformed error", h: says("text/event-stream", "event: error\ndata: lost\n\n"), kind: model.KindCut},
		{name: "error with status 200", h: says("application/json", fault("rate_limit_error")), kind: model.KindRateLimit},
		{name: "half of a whole answer", h: says("application/json", `{"type":"message","content":[{"type":"te`),
			kind: model.KindCut},
		{name: "something else in JSON", h: says("application/json", `[1, 2]`), kind: model.KindUnavailable,
			says: "contains no answer"},
		{name: "another protocol", h: says("application/json", `{"choices":[]}`), kind: model.KindUnavailable},
		{name: "a web page", h: says("text/html", "<html>Welcome</html>"), kind: model.KindUnavailable},
		{name: "nothing at all", h: says("text/event-stream", ""), kind: model.KindUnavailable},
		{name: "refusal", h: stream(start, piece, refusal, stop), kind: model.KindInvalid, says: "refuses"},
		{name: "no room for text", h: stream(start, limit, stop), kind: model.KindInvalid, says: "limit"},
		{name: "no room for an answer", h: stream(start, full, stop), kind: model.KindTooLong, says: "window"},
		{name: "cut at the limit", h: stream(start, piece, limit, stop), text: "part"},
		{name: "empty", h: stream(start, ended, stop), text: ""},
		{name: "a character in two events", h: stream(start,
			"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\xe2\x82\"}}",
			"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"\xac\"}}", stop), text: "a€"},
		{name: "other types", h: stream(`{"type":"message_start","message":{"model":7}}`, piece,
			`{"type":"news","delta":[]}`, stop), text: "part"},
		{name: "not UTF-8", h: stream(start,
			"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\xffb\\u0000\"}}", stop),
			text: "a\uFFFDb\uFFFD"},
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
				got.Usage.OutputTokens != model.EstimateTokens(len(tt.text))+model.EstimateTokens(len(got.Thoughts)) {
				t.Errorf("usage %+v, want an estimate", got.Usage)
			}
		})
	}
}

// Reports of usage are cumulative: the last one counts, and what it leaves out
// stays.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	m := connect(t, stream(
		`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"cache_read_input_tokens":5,`+
			`"output_tokens":1}}}`,
		piece,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":40}}`, stop))
	got, err := ask(t, m)
	want := model.Usage{InputTokens: 15, OutputTokens: 40, CachedTokens: 5}
	if err != nil || got.Usage != want {
		t.Errorf("%+v, %v, want usage %+v", got, err, want)
	}
}

func TestScriptedFaults(t *testing.T) {
	t.Parallel()
	limit := func(c *anthropic.Config) { c.MaxResponseBytes = 100_000 }
	_, err := ask(t, connect(t, script(t, "replies: [{text: abcdefgh, size: 1000, cut: 500}]")))
	if e := wantKind(t, err, model.KindCut); !e.Retryable() {
		t.Errorf("%v cannot be tried again", e)
	}
	_, err = ask(t, connect(t, script(t, "replies: [{size: 10000000}]"), limit))
	if e := wantKind(t, err, model.KindTooLarge); e.Retryable() || e.Hint == "" {
		t.Errorf("error = %+v", e)
	}
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
	got, err = ask(t, connect(t, script(t, "replies: [{text: abc, stop_reason: length}]")))
	if err != nil || !got.IsCut() || got.StopReason != "max_tokens" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for base, kind := range map[string]model.Kind{
		closed.URL: model.KindRefused,
		"http://user:" + key + "@" + strings.TrimPrefix(closed.URL, "http://"): model.KindRefused,
		secure.URL: model.KindNotFound,
	} {
		m, err := anthropic.New(anthropic.Config{Model: "small", BaseURL: base, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ask(t, m)
		m.Close()
		if e := wantKind(t, err, kind); !strings.Contains(e.Hint, "ANTHROPIC_BASE_URL") {
			t.Errorf("%s: error = %v, hint %q", base, e, e.Hint)
		}
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cfg  anthropic.Config
		kind model.Kind
		hint string
	}{
		{anthropic.Config{}, model.KindInvalid, ""},
		{anthropic.Config{Model: "m"}, model.KindAuth, "ANTHROPIC_API_KEY"},
		{anthropic.Config{Model: "m", BaseURL: "https://models.example.com"}, model.KindAuth, "ANTHROPIC_API_KEY"},
		{anthropic.Config{Model: "m", BaseURL: "localhost:8080"}, model.KindInvalid, "ANTHROPIC_BASE_URL"},
		{anthropic.Config{Model: "m", BaseURL: "http://localhost?key=" + key, APIKey: key}, model.KindInvalid,
			"ANTHROPIC_BASE_URL"},
		{anthropic.Config{Model: "m", BaseURL: "http://localhost", Window: -1}, model.KindInvalid, ""},
		{anthropic.Config{Model: "m", BaseURL: "http://localhost", MaxOutput: -1}, model.KindInvalid, ""},
		{anthropic.Config{Model: "m", BaseURL: "http://localhost", MaxResponseBytes: -1}, model.KindInvalid, ""},
		{anthropic.Config{Model: "m", APIKey: key + "\n"}, model.KindInvalid, ""},
	}
	for _, tt := range tests {
		_, err := anthropic.New(tt.cfg)
		if e := wantKind(t, err, tt.kind); !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%+v: hint %q", tt.cfg, e.Hint)
		}
	}
	m, err := anthropic.New(anthropic.Config{Model: "m", BaseURL: "http://127.0.0.1:1/v1", Window: 5})
	if err != nil || m.Window() != 5 {
		t.Errorf("without a key: %v", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	m := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client went
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: message_start\ndata: %s\n\nevent: content_block_delta\ndata: %s\n\n", start, piece)
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
  - {status: 529}
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
// text that is not text.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{start, "event: x\ndata: " + piece + "\n\n", `{"type":"message","content":[]}`,
		`{"type":"error"}`, "data: {\n\n", "\x00"} {
		f.Add("text/event-stream", seed)
		f.Add("application/json", seed)
	}
	f.Fuzz(func(t *testing.T, contentType, body string) {
		if strings.ContainsAny(contentType, "\r\n\x00") {
			return
		}
		resp, err := ask(t, connect(t, says(contentType, body)))
		var e *model.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error = %v", err)
		}
		if err == nil && strings.ToValidUTF8(resp.Text, "") != resp.Text {
			t.Errorf("answer %q", resp.Text)
		}
	})
}
