package mock_test

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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/mock"
)

const faults = `
model: tiny
replies:
  - {match: slow, text: late, delay: 1h}
  - {match: limited, status: 429, retry_after: 2s, message: slow down}
  - {match: down, status: 503}
  - {match: cut, text: "0123456789", cut: 5}
  - {match: empty, empty: true}
  - {match: dirty, text: abc, invalid_utf8: true}
  - {match: usage, text: abc, usage: {input: 5, output: 6, cached: 4}, stop_reason: length}
  - {match: silent, text: abc, usage: {omit: true}}
  - {match: large, text: "日本", size: 1000}
`

func TestModel(t *testing.T) {
	t.Parallel()
	m := mock.New(parse(t, faults))
	var heard []string
	generate := func(prompt string) (*model.Response, error) {
		heard = nil
		return m.Generate(t.Context(), &model.Request{Prompt: prompt, OnText: func(s string) { heard = append(heard, s) }})
	}
	for _, tt := range []struct {
		prompt string
		want   model.Error
	}{
		{"limited", model.Error{Kind: model.KindRateLimit, Status: 429, RetryAfter: 2 * time.Second, Msg: "slow down"}},
		{"down", model.Error{Kind: model.KindUnavailable, Status: 503, Msg: "scripted status 503"}},
		{"cut", model.Error{Kind: model.KindCut, Msg: "answer broke off after 5 bytes"}},
	} {
		_, err := generate(tt.prompt)
		var e *model.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: error = %v", tt.prompt, err)
		}
		if diff := cmp.Diff(tt.want, *e); diff != "" {
			t.Errorf("%s: %s", tt.prompt, diff)
		}
	}
	if strings.Join(heard, "") != "01234" {
		t.Errorf("heard %q of a broken answer", heard)
	}
	for _, tt := range []struct {
		prompt string
		want   model.Response
	}{
		{"empty", model.Response{StopReason: "stop", Usage: model.Usage{InputTokens: 2}}},
		{"dirty", model.Response{Text: "abc\uFFFD", StopReason: "stop", Usage: model.Usage{InputTokens: 2, OutputTokens: 2},
			Notes: []string{model.NoteReplaced}}},
		{"usage", model.Response{Text: "abc", StopReason: "length",
			Usage: model.Usage{InputTokens: 5, OutputTokens: 6, CachedTokens: 4}}},
		{"silent", model.Response{Text: "abc", StopReason: "stop",
			Usage: model.Usage{InputTokens: 2, OutputTokens: 1, Estimated: true}}},
		{"large", model.Response{Text: strings.Repeat("日本", 166) + "日", StopReason: "stop",
			Usage: model.Usage{InputTokens: 2, OutputTokens: 250}}},
	} {
		got, err := generate(tt.prompt)
		if err != nil {
			t.Errorf("%s: %v", tt.prompt, err)
			continue
		}
		tt.want.Model, tt.want.Tries = "tiny", 1
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.prompt, diff)
		}
		if strings.Join(heard, "") != got.Text {
			t.Errorf("%s: heard %q", tt.prompt, heard)
		}
	}
	if len(heard) < 10 {
		t.Errorf("a large answer came in %d pieces", len(heard))
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mock.New(parse(t, faults))
		start := time.Now()
		if got, err := ask(t, m, "slow"); err != nil || got.Text != "late" || time.Since(start) != time.Hour {
			t.Errorf("%+v, %v after %s", got, err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Generate(ctx, &model.Request{Prompt: "slow"})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.KindCanceled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
	})
}

func serve(t *testing.T, script string) (*mock.Server, string) {
	t.Helper()
	srv := mock.NewServer(parse(t, script))
	listener := httptest.NewServer(srv)
	t.Cleanup(listener.Close)
	return srv, listener.URL
}

// post sends a request and returns the whole reply.
func post(ctx context.Context, t *testing.T, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func chat(prompt, more string) string {
	text, _ := json.Marshal(prompt)
	return fmt.Sprintf(`{"model":"x","messages":[{"role":"user","content":%s}]%s}`, text, more)
}

func TestServerWithoutStreaming(t *testing.T) {
	t.Parallel()
	_, url := serve(t, faults)
	resp, text, err := post(t.Context(), t, url+"/v1/chat/completions", chat("usage", ""))
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v, %v", resp, err)
	}
	var got struct {
		Model   string
		Object  string
		Choices []struct {
			Message struct{ Role, Content string }
			Reason  string `json:"finish_reason"`
		}
		Usage map[string]any
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"prompt_tokens": 5.0, "completion_tokens": 6.0, "total_tokens": 11.0,
		"prompt_tokens_details": map[string]any{"cached_tokens": 4.0},
	}
	if diff := cmp.Diff(want, got.Usage); diff != "" {
		t.Error(diff)
	}
	if got.Model != "tiny" || got.Object != "chat.completion" || len(got.Choices) != 1 ||
		got.Choices[0].Message.Content != "abc" || got.Choices[0].Reason != "length" {
		t.Errorf("%s", text)
	}
	_, text, err = post(t.Context(), t, url+"/v1/chat/completions", chat("cut", ""))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasSuffix(text, `"01234"`) {
		t.Errorf("cut: %q, %v", text, err)
	}
}

func TestServerStreams(t *testing.T) {
	t.Parallel()
	_, url := serve(t, faults)
	_, text, err := post(t.Context(), t, url+"/chat/completions",
		chat("usage", `,"stream":true,"stream_options":{"include_usage":true}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"content":"abc"`, `"finish_reason":"length"`,
		`"choices":[],"usage":{"prompt_tokens":5`, "data: [DONE]\n\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
	for event := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Errorf("event %q", event)
		}
	}
	_, text, err = post(t.Context(), t, url+"/chat/completions",
		chat("silent", `,"stream":true,"stream_options":{"include_usage":true}`))
	if err != nil || strings.Contains(text, "usage") {
		t.Errorf("usage is reported: %s, %v", text, err)
	}
	_, text, err = post(t.Context(), t, url+"/chat/completions", chat("cut", `,"stream":true`))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(text, `"01234"`) || strings.Contains(text, "DONE") {
		t.Errorf("cut: %q, %v", text, err)
	}
	_, text, err = post(t.Context(), t, url+"/chat/completions", chat("dirty", `,"stream":true`))
	if err != nil || !strings.Contains(text, "abc\xff\xfe\"") {
		t.Errorf("not UTF-8: %q, %v", text, err)
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	_, url := serve(t, faults)
	tests := []struct {
		path, body string
		status     int
		says       string
	}{
		{"/v1/chat/completions", chat("limited", ""), 429, `"slow down"`},
		{"/v1/chat/completions", chat("down", `,"stream":true`), 503, "scripted status 503"},
		{"/v1/chat/completions", chat("unforeseen", ""), 400, "no reply left"},
		{"/v1/chat/completions", "{", 400, "not valid"},
		{"/v1/chat/completions", `{"messages":[{"content":5}]}`, 400, "neither a text nor a list"},
		{"/v2/chat/completions", "{}", 404, "there is no POST"},
	}
	for _, tt := range tests {
		resp, text, err := post(t.Context(), t, url+tt.path, tt.body)
		if err != nil || resp.StatusCode != tt.status || !strings.Contains(text, tt.says) || !json.Valid([]byte(text)) {
			t.Errorf("%s %s: %v %s, %v", tt.path, tt.body, resp, text, err)
		}
		if tt.status == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "2" {
			t.Errorf("header %v", resp.Header)
		}
	}
}

func TestServerKnowsPartsAndSystem(t *testing.T) {
	t.Parallel()
	srv, url := serve(t, "replies: [{text: '{{prompt}}'}]")
	body := `{"messages":[{"role":"system","content":"sys"},{"role":"user","content":[{"type":"text","text":"a"},` +
		`{"type":"text","text":"b"}]}]}`
	_, text, err := post(t.Context(), t, url+"/v1/chat/completions", body)
	if err != nil || !strings.Contains(text, `"sys\n\nab"`) {
		t.Errorf("%s, %v", text, err)
	}
	if got := srv.Ledger().Of("sys\n\nab"); got.Finished != 1 || got.Hash != mock.Hash("sys\n\nab") {
		t.Errorf("ledger: %+v", got)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	srv, url := serve(t, "replies: [{match: bad, status: 500}, {match: slow, delay: 1h, text: a}, {text: ok, repeat: -1}]")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			prompt := []string{"once bad", "twice", fmt.Sprint("single ", i)}[i%3]
			if _, _, err := post(t.Context(), t, url+"/v1/chat/completions", chat(prompt, "")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l := srv.Ledger()
	if got := l.Of("twice"); got.Started != 13 || got.Finished != 13 || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	if got := l.Of("once bad"); got.Started != 14 || got.Finished != 0 || got.Failed != 14 {
		t.Errorf("%+v", got)
	}
	if got := l.Repeated(); len(got) != 1 || got[0].Prompt != "twice" {
		t.Errorf("repeated: %+v", got)
	}
	if got := l.Totals(); got.First != 15 || got.Started != 40 || got.Finished != 26 || got.Failed != 14 {
		t.Errorf("totals: %+v", got)
	}
	for i, e := range l.Entries() {
		if e.First != i+1 {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if got := l.Of("never"); got.Started != 0 || got.Hash != mock.Hash("never") {
		t.Errorf("%+v", got)
	}

	// Who gives up was not answered.
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		if _, _, err := post(ctx, t, url+"/v1/chat/completions", chat("slow", "")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for l.InFlight() == 0 {
		<-time.After(time.Millisecond)
	}
	cancel()
	wg.Wait()
	for l.InFlight() > 0 {
		<-time.After(time.Millisecond)
	}
	if got := l.Of("slow"); got.Started != 1 || got.Failed != 1 || l.Peak() < 1 {
		t.Errorf("%+v, peak %d", got, l.Peak())
	}
}

func TestModelList(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	mock.NewServer(parse(t, faults)).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	if got, want := rec.Body.String(), `{"object":"list","data":[{"id":"tiny","object":"model"}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
