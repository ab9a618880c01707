package daemon_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/anthropic"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/model/openai"
	"github.com/perdure/perdure/model/price"
	"github.com/perdure/perdure/rlm"
)

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		code perdure.Code
		hint string // a part of it
	}{
		{"", perdure.CodeInvalid, "builtin:extract"},
		{"builtin:", perdure.CodeInvalid, "builtin:extract"},
		{"builtin:extrakt", perdure.CodeInvalid, `did you mean "builtin:extract"?`},
		{"extract", perdure.CodeInvalid, `did you mean "builtin:extract"?`},
		{"biultin:extract", perdure.CodeInvalid, `did you mean "builtin:extract"?`},
		{"opena:gpt", perdure.CodeInvalid, `did you mean "openai:gpt"?`},
		{"exce:cat -", perdure.CodeInvalid, `did you mean "exec:cat -"?`},
		{"exec:", perdure.CodeInvalid, "needs a name after the scheme"},
		{"openai", perdure.CodeInvalid, "needs a name after the scheme"},
		{"gpt-4o", perdure.CodeInvalid, `did you mean "openai:gpt-4o"?`},
		{"anthropic:claude", perdure.CodeUnavailable, "ANTHROPIC_API_KEY"},
		{"claude-haiku-4-5", perdure.CodeInvalid, `did you mean "anthropic:claude-haiku-4-5"?`},
		{"antropic:claude", perdure.CodeInvalid, `did you mean "anthropic:claude"?`},
		{"anthropic:", perdure.CodeInvalid, "needs a name after the scheme"},
		{"mock:echo,openai:gpt-4o", perdure.CodeUnavailable, "OPENAI_API_KEY"},
		{"mock:echo,openai:", perdure.CodeInvalid, "needs a name after the scheme"},
		{"openai:a,opnai:b", perdure.CodeInvalid, `did you mean "openai:b"?`},
		{"openai:a,,b", perdure.CodeInvalid, "between two commas"},
		{"openai:a,", perdure.CodeInvalid, "between two commas"},
		{"openai:a,b", perdure.CodeInvalid, `did you mean "openai:b"?`},
		{"something:else", perdure.CodeInvalid, "models are builtin:extract"},
		{"mock:nothing-like-it", perdure.CodeInvalid, "short forms"},
		{"mock:/no/such/script.yaml", perdure.CodeInvalid, "YAML"},
		{"exec:a && b", perdure.CodeInvalid, "without a shell"},
		{"exec:/no/such/program", perdure.CodeUnavailable, "installed"},
		{"openai:gpt-4o", perdure.CodeUnavailable, "OPENAI_API_KEY"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := daemon.NewModels(daemon.ModelConfig{}).Resolve(test.name, rlm.ModelOptions{})
			if got := perdure.CodeOf(err); err == nil || got != test.code {
				t.Fatalf("error %v has code %q, want %q", err, got, test.code)
			}
			if hint := perdure.HintOf(err); !strings.Contains(hint, test.hint) {
				t.Errorf("hint %q, want %q in it", hint, test.hint)
			}
			var own *perdure.Error
			if !errors.As(err, &own) || own.Msg == "" {
				t.Errorf("error %#v has no message: over HTTP nothing would be told", err)
			}
		})
	}
}

func TestResolveFinds(t *testing.T) {
	t.Parallel()
	env := func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "sk-test", "ANTHROPIC_API_KEY": "sk-test"}[name]
	}
	for _, name := range []string{"builtin:extract", "exec:go version", "mock:echo", "mock:text=a: b", "openai:gpt-4o",
		"anthropic:claude-haiku-4-5", "openai:gpt-4o,anthropic:claude-haiku-4-5"} {
		if _, err := daemon.NewModels(daemon.ModelConfig{Getenv: env}).Resolve(name, rlm.ModelOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnsentModelsNeedNoKey: a model that is asked nothing has its window and price without a
// key, and the model that is asked still needs it.
func TestUnsentModelsNeedNoKey(t *testing.T) {
	t.Parallel()
	models := daemon.NewModels(daemon.ModelConfig{})
	for _, name := range []string{"openai:gpt-4o", "anthropic:claude-haiku-4-5",
		"openai:gpt-4o,anthropic:claude-haiku-4-5"} {
		m, err := models.Resolve(name, rlm.ModelOptions{Unsent: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, ok := model.AsPricer(m)
		if !ok {
			t.Fatalf("%s has no price", name)
		}
		if micros, known := p.Price(model.Usage{InputTokens: 1_000_000}); !known || micros == 0 {
			t.Errorf("%s costs %d, known %v", name, micros, known)
		}
		if _, err := models.Resolve(name, rlm.ModelOptions{}); perdure.CodeOf(err) != perdure.CodeUnavailable {
			t.Errorf("%s without a key: %v", name, err)
		}
	}
}

// A process has one value for a model with its options, so that a rate limit pauses all its
// callers.
func TestResolveShares(t *testing.T) {
	t.Parallel()
	models := daemon.NewModels(daemon.ModelConfig{})
	resolve := func(opt rlm.ModelOptions) model.Model {
		m, err := models.Resolve("mock:echo", opt)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if resolve(rlm.ModelOptions{}) != resolve(rlm.ModelOptions{}) {
		t.Error("the same name gives two models")
	}
	if resolve(rlm.ModelOptions{}) == resolve(rlm.ModelOptions{BaseURL: "http://elsewhere/v1"}) {
		t.Error("two endpoints are one model")
	}
}

// The key is sent to the endpoint of the run; a pause after a rate limit is reported.
func TestOpenAIEndpointAndPause(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()
	models := daemon.NewModels(daemon.ModelConfig{Getenv: func(string) string { return "sk-test" }})
	m, err := models.Resolve("openai:small", rlm.ModelOptions{BaseURL: srv.URL + "/v1", Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), &model.Request{Prompt: "x"})
	var refused *model.Error
	if !errors.As(err, &refused) || refused.Kind != model.KindRateLimit {
		t.Fatalf("error %v, want a rate limit", err)
	}
	if got := <-asked; got != "POST /v1/chat/completions Bearer sk-test" {
		t.Errorf("the endpoint was asked %q", got)
	}
	waiting := models.Waiting()
	if len(waiting) != 1 || !strings.HasPrefix(waiting[0], "openai:small waits ") {
		t.Errorf("waiting: %q", waiting)
	}
}

// The error of an endpoint is reported while the request is retried.
func TestRetryIsTold(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close() // connections are refused from now on
	models := daemon.NewModels(daemon.ModelConfig{})
	m, err := models.Resolve("openai:small", rlm.ModelOptions{BaseURL: srv.URL + "/v1", Tries: 100})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Generate(ctx, &model.Request{Prompt: "x"})
		ended <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var told []string
	for ; len(told) == 0; told = models.Waiting() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it gave up: %v", err)
		}
	}
	cancel()
	<-ended //nolint:errcheck // it was stopped
	if len(told) != 1 || !strings.HasPrefix(told[0], "openai:small waits ") ||
		!strings.Contains(told[0], "connection refused") {
		t.Errorf("waiting: %q", told)
	}
}

// serve plays a script as an endpoint.
func serve(t *testing.T, script string) (*mock.Server, string) {
	t.Helper()
	s, err := mock.Parse("script", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	played := mock.NewServer(s)
	srv := httptest.NewServer(played)
	t.Cleanup(srv.Close)
	return played, srv.URL
}

// A chain falls back from one provider to another; the answer has the model that wrote it
// and its cost. The chain does not wait for a long rate limit.
func TestChainOfProviders(t *testing.T) {
	t.Parallel()
	limited, first := serve(t, "replies: [{status: 429, retry_after: 60s, repeat: -1}]")
	_, second := serve(t, "replies: [{text: from the second, repeat: -1, usage: {input: 1000, output: 100, cached: 400}}]")
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	text := "models:\n  anthropic:b: {input: 2, output: 10, cache_read: 0.5, context_window: 9000}\n" +
		"  openai:a: {input: 50, output: 50}\n"
	if err := os.WriteFile(prices, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	models := daemon.NewModels(daemon.ModelConfig{
		Getenv: func(name string) string { return map[string]string{"ANTHROPIC_BASE_URL": second}[name] },
		Prices: price.Config{File: prices},
	})
	opt := rlm.ModelOptions{BaseURL: first + "/v1", Timeout: rlm.Duration(time.Minute)}
	m, err := models.Resolve("openai:a, anthropic:b", opt)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second request is sent while the first model is paused
		got, err := m.Generate(t.Context(), &model.Request{Prompt: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if got.Asked != "anthropic:b" || got.CostMicros == nil || *got.CostMicros != 600*2+400/2+100*10 ||
			len(got.Notes) != 1 {
			t.Errorf("%+v", got)
		}
	}
	if sum := limited.Ledger().Totals(); sum.Started != 1 {
		t.Errorf("the first was sent %d requests, want 1: it is paused", sum.Started)
	}
	if w, ok := model.AsWindower(m); !ok || w.Window() != 9000 {
		t.Error("the window of the chain is not that of its smallest model")
	}
	p, ok := model.AsPricer(m)
	if !ok {
		t.Fatal("the chain has no price")
	}
	if micros, known := p.Price(model.Usage{InputTokens: 10}); !known || micros != 500 {
		t.Errorf("the chain may cost %d, %t, want the dearer one's 500", micros, known)
	}
	if waiting := models.Waiting(); len(waiting) != 1 || !strings.HasPrefix(waiting[0], "openai:a waits ") {
		t.Errorf("waiting: %q", waiting)
	}
	alone, err := models.Resolve("openai:a", opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := alone.Generate(ctx, &model.Request{Prompt: "x"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v: the model alone waits for the same pause", err)
	}
}

// Runs with a cache share answers; others do not see them.
func TestCacheIsForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	models := daemon.NewModels(daemon.ModelConfig{CacheDir: t.TempDir()})
	defer models.Close()
	answers := make([]string, 4)
	for i, with := range []bool{true, false, true, true} {
		m, err := models.Resolve("mock:text={{n}}", rlm.ModelOptions{Cache: with})
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Generate(t.Context(), &model.Request{Prompt: "x"})
		if err != nil || got.Cached != (i > 1) || got.CostMicros == nil || *got.CostMicros != 0 {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
		answers[i] = got.Text
	}
	if want := []string{"1", "2", "1", "1"}; !slices.Equal(answers, want) {
		t.Errorf("answers %q, want %q", answers, want)
	}
}

func TestBadPrices(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("models:\n  mock:echo: {inputt: 2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.NewModels(daemon.ModelConfig{Prices: price.Config{File: prices}}).Resolve("mock:echo",
		rlm.ModelOptions{})
	var own *perdure.Error
	if !errors.As(err, &own) || own.Code != perdure.CodeInvalid ||
		!strings.Contains(own.Msg, `prices.yaml:2: unknown key "inputt"; did you mean "input"?`) || own.Hint == "" {
		t.Errorf("error %#v", err)
	}
}

// Without a base URL of the user, models of providers use the provider's own host, over TLS.
func TestDefaultHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ address, host string }{
		"openai:m":    {openai.DefaultBaseURL, "https://api.openai.com/"},
		"anthropic:m": {anthropic.DefaultBaseURL, "https://api.anthropic.com/"},
	} {
		if !strings.HasPrefix(c.address+"/", c.host) {
			t.Errorf("%s: the default is %s, want the host %s", name, c.address, c.host)
		}
		_, err := daemon.NewModels(daemon.ModelConfig{}).Resolve(name, rlm.ModelOptions{})
		if err == nil || !strings.Contains(err.Error(), "no API key for "+c.address) {
			t.Errorf("%s without settings: %v, want an error that names %s", name, err, c.address)
		}
	}
}
