package daemon_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/model"
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
		{"exec:", perdure.CodeInvalid, "needs a name behind it"},
		{"openai", perdure.CodeInvalid, "needs a name behind it"},
		{"gpt-4o", perdure.CodeInvalid, `did you mean "openai:gpt-4o"?`},
		{"anthropic:claude", perdure.CodeInvalid, "openai:NAME with --base-url"},
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
	env := func(name string) string { return map[string]string{"OPENAI_API_KEY": "sk-test"}[name] }
	for _, name := range []string{"builtin:extract", "exec:go version", "mock:echo", "mock:text=a: b", "openai:gpt-4o"} {
		if _, err := daemon.NewModels(daemon.ModelConfig{Getenv: env}).Resolve(name, rlm.ModelOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One model in a process is one value, so that a rate limit pauses everybody
// who asks it; with other options it is another.
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

// The key goes to the endpoint of the run; a pause after a rate limit is told.
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

// What is wrong with an endpoint is told while it is asked again.
func TestRetryIsTold(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close() // nobody listens there any more
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
	<-ended
	if len(told) != 1 || !strings.HasPrefix(told[0], "openai:small is asked again in ") || !strings.Contains(told[0], "connection refused") {
		t.Errorf("waiting: %q", told)
	}
}
