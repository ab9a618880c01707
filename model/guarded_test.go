package model_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
)

// modelFunc is a model made of a function.
type modelFunc func(ctx context.Context, req *model.Request) (*model.Response, error)

func (f modelFunc) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	return f(ctx, req)
}

func guarded(t *testing.T, cfg model.GuardedConfig) *model.Guarded {
	t.Helper()
	g, err := model.NewGuarded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// failing fails with each of the errors in turn, then answers. sent are the
// times of the requests.
func failing(failures ...error) (m model.Model, sent func() []time.Time) {
	var mu sync.Mutex
	var times []time.Time
	ask := func(context.Context, *model.Request) (*model.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
		if len(times) <= len(failures) {
			return nil, failures[len(times)-1]
		}
		return &model.Response{Text: "answer", Tries: 1}, nil
	}
	return modelFunc(ask), func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Time(nil), times...)
	}
}

func fail(kind model.Kind) *model.Error { return &model.Error{Kind: kind, Msg: "made up"} }

func gaps(times []time.Time) []time.Duration {
	var list []time.Duration
	for i := 1; i < len(times); i++ {
		list = append(list, times[i].Sub(times[i-1]))
	}
	return list
}

func within(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s = %s, want %s to %s", what, got, low, high)
	}
}

func TestRetriesWithGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, sent := failing(fail(model.KindUnavailable), fail(model.KindCut), fail(model.KindEmpty),
			fail(model.KindUnavailable))
		var retries []model.Retry
		g := guarded(t, model.GuardedConfig{Model: m, OnRetry: func(r model.Retry) { retries = append(retries, r) }})
		got, err := g.Generate(t.Context(), &model.Request{})
		if err != nil || got.Tries != 5 {
			t.Fatalf("%+v, %v", got, err)
		}
		middle := model.DefaultInitialBackoff
		for i, gap := range gaps(sent()) {
			within(t, fmt.Sprintf("wait %d", i+1), gap, middle/2, middle*3/2)
			if r := retries[i]; r.Wait != gap || r.Try != i+1 || r.Err.Tries != i+1 {
				t.Errorf("told of %+v, waited %s", r, gap)
			}
			middle *= 2
		}
	})
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	tests := []struct {
		name    string
		failure error
		tries   int
		kind    model.Kind
	}{
		{"invalid", fail(model.KindInvalid), 1, model.KindInvalid},
		{"auth", fail(model.KindAuth), 1, model.KindAuth},
		{"not found", fail(model.KindNotFound), 1, model.KindNotFound},
		{"too large", fail(model.KindTooLarge), 1, model.KindTooLarge},
		{"failed", fail(model.KindFailed), 1, model.KindFailed},
		{"unknown", other, 1, model.KindFailed},
		{"wrapped", fmt.Errorf("outer: %w", fail(model.KindUnavailable)), 6, model.KindUnavailable},
		{"unavailable", fail(model.KindUnavailable), 6, model.KindUnavailable},
		{"rate limit", fail(model.KindRateLimit), 6, model.KindRateLimit},
		{"cut", fail(model.KindCut), 6, model.KindCut},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				g := guarded(t, model.GuardedConfig{
					Model: modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
						calls++
						return nil, tt.failure
					})})
				_, err := g.Generate(t.Context(), &model.Request{})
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || e.Tries != tt.tries || calls != tt.tries {
					t.Errorf("%d calls, error %+v", calls, err)
				}
				if tt.kind == model.KindFailed && tt.failure == other && !errors.Is(err, other) { //nolint:errorlint // the table's own
					t.Error("the cause was lost")
				}
			})
		})
	}
}

func TestTheModelsOwnErrorStaysAsItIs(t *testing.T) {
	t.Parallel()
	failure := fail(model.KindInvalid)
	m, _ := failing(failure)
	_, _ = guarded(t, model.GuardedConfig{Model: m}).Generate(t.Context(), &model.Request{})
	if diff := cmp.Diff(fail(model.KindInvalid), failure); diff != "" {
		t.Error(diff)
	}
}

func TestRetryAfterIsAMinimum(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.Kind{model.KindUnavailable, model.KindRateLimit} {
		synctest.Test(t, func(t *testing.T) {
			m, sent := failing(
				&model.Error{Kind: kind, RetryAfter: 30 * time.Second},
				&model.Error{Kind: kind, RetryAfter: 100 * time.Hour},
				&model.Error{Kind: kind, RetryAfter: time.Nanosecond},
			)
			g := guarded(t, model.GuardedConfig{Model: m, MaxPause: -1})
			if _, err := g.Generate(t.Context(), &model.Request{}); err != nil {
				t.Fatal(err)
			}
			waits := gaps(sent())
			within(t, "first wait", waits[0], 30*time.Second, 33*time.Second)
			within(t, "long wait", waits[1], 100*time.Hour, 110*time.Hour)
			within(t, "third wait", waits[2], time.Second, 3*time.Second)
		})
	}
}

func TestRateLimitPausesEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		start := time.Now()
		resume := 20 * time.Second
		m := modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			since := time.Since(start)
			n := calls.Add(1)
			if n == 1 {
				return nil, &model.Error{Kind: model.KindRateLimit, Status: 429, RetryAfter: resume}
			}
			if since > 0 && since < resume {
				t.Errorf("request after %s, in the pause", since)
			}
			return &model.Response{Text: "answer"}, nil
		})
		var told []time.Time
		g := guarded(t, model.GuardedConfig{Model: m, Name: "openai:x", OnPause: func(until time.Time, reason string) {
			told = append(told, until)
			if !strings.Contains(reason, "openai:x") || !strings.Contains(reason, "rate_limit") {
				t.Errorf("reason %q", reason)
			}
		}})
		var wg sync.WaitGroup
		ask := func() {
			if _, err := g.Generate(t.Context(), &model.Request{}); err != nil {
				t.Error(err)
			}
		}
		wg.Go(ask)
		synctest.Wait()
		until, reason := g.Paused()
		within(t, "pause", until.Sub(start), resume, resume*11/10)
		if reason == "" || len(told) != 1 || !told[0].Equal(until) {
			t.Errorf("reason %q, told %v, until %v", reason, told, until)
		}
		for range 10 {
			time.Sleep(time.Second)
			wg.Go(ask)
		}
		wg.Wait()
		if until, reason := g.Paused(); !until.IsZero() || reason != "" {
			t.Errorf("paused until %v (%s) after the end", until, reason)
		}
		if calls.Load() != 12 {
			t.Errorf("%d requests, want 12", calls.Load())
		}
	})
}

// TestSmallLimitLetsAllThrough has 200 callers ask a provider that answers 10
// requests in 10 seconds, and counts refused ones too.
func TestSmallLimitLetsAllThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perWindow, window, callers = 10, 10 * time.Second, 200
		var mu sync.Mutex
		var used, refused int
		began := time.Now()
		m := modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			mu.Lock()
			if since := time.Since(began); since >= window {
				began, used = time.Now(), 0
			}
			used++
			ok, left := used <= perWindow, window-time.Since(began)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			if !ok {
				mu.Lock()
				defer mu.Unlock()
				refused++
				return nil, &model.Error{Kind: model.KindRateLimit, RetryAfter: left}
			}
			return &model.Response{Text: "answer"}, nil
		})
		pauses := 0
		g := guarded(t, model.GuardedConfig{Model: m, OnPause: func(time.Time, string) { pauses++ }})
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if _, err := g.Generate(t.Context(), &model.Request{}); err != nil {
					t.Error(err)
				}
			})
		}
		start := time.Now()
		wg.Wait()
		within(t, "time for all", time.Since(start), 19*window, 30*window)
		if refused > 3*callers || pauses > 60 {
			t.Errorf("%d requests were refused in %d pauses", refused, pauses)
		}
		t.Logf("%s, %d refused, %d pauses", time.Since(start), refused, pauses)
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, peak atomic.Int32
		m := modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			peak.Store(max(peak.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return &model.Response{Text: "answer"}, nil
		})
		g := guarded(t, model.GuardedConfig{Model: m, Concurrency: 3})
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := g.Generate(t.Context(), &model.Request{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if peak.Load() != 3 || time.Since(start) != 4*time.Second {
			t.Errorf("peak %d, took %s, want 3 and 4s", peak.Load(), time.Since(start))
		}
	})
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := modelFunc(func(ctx context.Context, _ *model.Request) (*model.Response, error) {
			<-ctx.Done()
			return nil, model.Canceled(ctx)
		})
		g := guarded(t, model.GuardedConfig{Model: hang, Name: "exec:x"})
		start := time.Now()
		_, err := g.Generate(t.Context(), &model.Request{})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.KindTimeout || e.Tries != 2 || e.Hint == "" ||
			!strings.Contains(e.Error(), "exec:x") {
			t.Errorf("error = %+v", err)
		}
		within(t, "time", time.Since(start), 2*model.DefaultTimeout, 2*model.DefaultTimeout+time.Second)

		never := guarded(t, model.GuardedConfig{Model: hang, Timeout: -1})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 24*time.Hour, errors.New("tree is over"))
		defer cancel()
		_, err = never.Generate(ctx, &model.Request{})
		if !errors.As(err, &e) || e.Kind != model.KindCanceled || e.Tries != 1 ||
			!strings.Contains(e.Error(), "tree is over") {
			t.Errorf("error = %+v", err)
		}
	})
}

// TestCancelWhereverItWaits ends the context while a call is sent, waits for
// its turn, waits for a retry, or waits for the end of a pause.
func TestCancelWhereverItWaits(t *testing.T) {
	t.Parallel()
	hang := modelFunc(func(ctx context.Context, _ *model.Request) (*model.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for name, m := range map[string]model.Model{
		"sent": hang,
		"retry": modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			return nil, &model.Error{Kind: model.KindUnavailable, RetryAfter: time.Hour}
		}),
		"pause": modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			return nil, &model.Error{Kind: model.KindRateLimit, RetryAfter: time.Hour}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := guarded(t, model.GuardedConfig{Model: m, Concurrency: 1, MaxPause: -1})
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 3 { // all but one wait for their turn
					wg.Go(func() {
						_, err := g.Generate(ctx, &model.Request{})
						var e *model.Error
						if !errors.As(err, &e) || e.Kind != model.KindCanceled || !errors.Is(err, context.Canceled) {
							t.Errorf("error = %v", err)
						}
					})
				}
				time.Sleep(time.Second)
				start := time.Now()
				cancel()
				wg.Wait()
				if time.Since(start) != 0 {
					t.Errorf("took %s to end", time.Since(start))
				}
				_, err := g.Generate(ctx, &model.Request{})
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != model.KindCanceled || e.Tries != 0 {
					t.Errorf("error = %+v", err)
				}
			})
		})
	}
}

func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := func(r *model.Response) model.Model {
			return modelFunc(func(context.Context, *model.Request) (*model.Response, error) { return r, nil })
		}
		kindOf := func(cfg model.GuardedConfig) model.Kind {
			_, err := guarded(t, cfg).Generate(t.Context(), &model.Request{})
			var e *model.Error
			errors.As(err, &e)
			if e == nil {
				return ""
			}
			return e.Kind
		}
		for _, tt := range []struct {
			resp *model.Response
			want model.Kind
		}{
			{&model.Response{Text: "12345"}, ""},
			{&model.Response{Text: "123456"}, model.KindTooLarge},
			{&model.Response{}, model.KindEmpty},
			{&model.Response{Text: " \n\t"}, model.KindEmpty},
			{&model.Response{Citations: []model.Citation{{File: "f"}}}, ""},
			{nil, model.KindFailed},
		} {
			if got := kindOf(model.GuardedConfig{Model: answer(tt.resp), MaxResponseBytes: 5}); got != tt.want {
				t.Errorf("%+v: kind %q, want %q", tt.resp, got, tt.want)
			}
		}
		dirty := &model.Response{Text: "a\xffb\x00", Notes: []string{"first"}}
		got, err := guarded(t, model.GuardedConfig{Model: answer(dirty)}).Generate(t.Context(), &model.Request{})
		if err != nil {
			t.Fatal(err)
		}
		want := &model.Response{Text: "a\uFFFDb\uFFFD", Notes: []string{"first", model.NoteReplaced}, Tries: 1,
			Separated: true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if dirty.Text != "a\xffb\x00" || dirty.Tries != 0 || len(dirty.Notes) != 1 {
			t.Errorf("the model's own response was changed: %+v", dirty)
		}
	})
}

func TestPanicGivesThePlaceBack(t *testing.T) {
	t.Parallel()
	calls := 0
	g := guarded(t, model.GuardedConfig{Concurrency: 1,
		Model: modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			if calls++; calls == 1 {
				panic("oh")
			}
			return &model.Response{Text: "answer"}, nil
		})})
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Generate(t.Context(), &model.Request{})
	}()
	if _, err := g.Generate(t.Context(), &model.Request{}); err != nil {
		t.Error(err)
	}
}

func TestGuardedConfiguration(t *testing.T) {
	t.Parallel()
	_, err := model.NewGuarded(model.GuardedConfig{
		MaxTries: -1, MaxTimeouts: -1, Concurrency: -1, MaxResponseBytes: -1, InitialBackoff: -1, MaxBackoff: -2,
		UntilAnswer: -1,
	})
	for _, field := range []string{"Model", "MaxTries", "MaxTimeouts", "Concurrency", "MaxResponseBytes",
		"InitialBackoff", "MaxBackoff", "UntilAnswer"} {
		if err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

type windowed struct{ model.Model }

func (windowed) Window() int { return 42 }

func TestAbilitiesAreFoundInside(t *testing.T) {
	t.Parallel()
	m, _ := failing()
	outer := guarded(t, model.GuardedConfig{Model: guarded(t, model.GuardedConfig{Model: windowed{m}})})
	if w, ok := model.AsWindower(outer); !ok || w.Window() != 42 {
		t.Error("window not found")
	}
	if _, ok := model.AsWindower(nil); ok {
		t.Error("found a Windower in nothing")
	}
}

// TestVariantSharesThePause asks through two limits of one model: what one of
// them learns from the server stops the other.
func TestVariantSharesThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited := &model.Error{Kind: model.KindRateLimit, RetryAfter: time.Minute}
		first, err := model.NewGuarded(model.GuardedConfig{Model: refusing{limited}, MaxTries: 1})
		if err != nil {
			t.Fatal(err)
		}
		second, err := first.Variant(model.GuardedConfig{Model: refusing{limited}, MaxTries: 2})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Generate(t.Context(), &model.Request{Prompt: "p"}); err == nil {
			t.Fatal("the refused call has an answer")
		}
		until, _ := second.Paused()
		if wait := time.Until(until); wait < time.Minute-time.Second {
			t.Errorf("the other is paused for %s, want a minute", wait)
		}
	})
}

type refusing struct{ err error }

func (r refusing) Generate(context.Context, *model.Request) (*model.Response, error) {
	return nil, r.err
}

// OnSend is called before each request, when it is its turn, and OnFailed when one failed and
// another one follows; what OnSend refuses is not sent.
func TestOnSend(t *testing.T) {
	t.Parallel()
	down := &model.Error{Kind: model.KindUnavailable, Msg: "down", Usage: model.Usage{InputTokens: 3}}
	var told []string
	m := modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
		told = append(told, "sent")
		return nil, down
	})
	first := guarded(t, model.GuardedConfig{Model: m, Name: "first", MaxTries: 2, InitialBackoff: 1, MaxBackoff: 1})
	chain, err := model.NewChain(model.Link{Name: "first", Model: first}, model.Link{Name: "second", Model: m})
	if err != nil || !model.Announces(chain) || !model.Announces(first) || model.Announces(m) {
		t.Fatal(err)
	}
	announced := 0
	refusal := errors.New("no more")
	req := &model.Request{
		OnSend: func(_ context.Context, name string) error {
			told = append(told, name)
			if announced++; announced == 4 {
				return refusal
			}
			return nil
		},
		OnFailed: func(_ context.Context, e *model.Error) error {
			told = append(told, fmt.Sprintf("%s, %d tokens", e.Msg, e.Usage.InputTokens))
			return nil
		},
	}
	_, err = chain.Generate(t.Context(), req)
	want := []string{"first", "sent", "down, 3 tokens", "first", "sent", "down, 3 tokens", "second", "sent"}
	if !slices.Equal(told, want) || err == nil {
		t.Errorf("%q, want %q; %v", told, want, err)
	}
	told = nil
	_, err = first.Generate(t.Context(), req)
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Kind != model.KindCanceled || !errors.Is(err, refusal) || !slices.Equal(told, []string{"first"}) {
		t.Errorf("%q after a refusal: %v", told, err)
	}
}
