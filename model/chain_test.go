package model_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
)

func chain(t *testing.T, links ...model.Link) *model.Chain {
	t.Helper()
	c, err := model.NewChain(links...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func says(text string) model.Model {
	return modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
		return &model.Response{Text: text, Tries: 1, Notes: []string{"own"}}, nil
	})
}

func refuses(e *model.Error) model.Model {
	return modelFunc(func(context.Context, *model.Request) (*model.Response, error) { return nil, e })
}

// Whatever the failure is, the next one is asked; who answered, and why not the
// ones before, is reported.
func TestChainAsksTheNext(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.Kind{
		model.KindInvalid, model.KindAuth, model.KindNotFound, model.KindRateLimit, model.KindUnavailable,
		model.KindCut, model.KindTimeout, model.KindEmpty, model.KindTooLarge, model.KindFailed,
	} {
		c := chain(t,
			model.Link{Name: "a", Model: refuses(&model.Error{Kind: kind, Msg: "no", Tries: 3})},
			model.Link{Name: "b", Model: says("from b")},
			model.Link{Name: "c", Model: says("never")})
		got, err := c.Generate(t.Context(), &model.Request{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		want := &model.Response{Text: "from b", Asked: "b", Tries: 4,
			Notes: []string{"own", "b answered instead of a: " + string(kind) + ": no (3 tries)"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	long := chain(t, model.Link{Name: "a", Model: refuses(&model.Error{Kind: model.KindTooLong, Msg: "no"})},
		model.Link{Name: "b", Model: says("b")})
	if got, err := long.Generate(t.Context(), &model.Request{}); err != nil || got.Text != "b" {
		t.Errorf("after a request that is too long: %+v, %v", got, err)
	}
	var e *model.Error
	if _, err := long.Generate(t.Context(), &model.Request{Divisible: true}); !errors.As(err, &e) ||
		e.Kind != model.KindTooLong {
		t.Errorf("a request that is too long and can be divided: %v", err)
	}
	c := chain(t, model.Link{Name: "a",
		Model: modelFunc(func(context.Context, *model.Request) (*model.Response, error) { return nil, nil })},
		model.Link{Name: "b", Model: says("b")})
	if got, err := c.Generate(t.Context(), &model.Request{}); err != nil || got.Text != "b" {
		t.Errorf("after neither answer nor error: %+v, %v", got, err)
	}
}

func TestChainFails(t *testing.T) {
	t.Parallel()
	c := chain(t,
		model.Link{Name: "a", Model: refuses(&model.Error{Kind: model.KindAuth, Msg: "bad key", Hint: "look at the key"})},
		model.Link{Name: "b", Model: refuses(&model.Error{Kind: model.KindUnavailable, Msg: "down", Status: 503,
			Hint: "wait", Tries: 6})},
		model.Link{Name: "c", Model: refuses(&model.Error{Kind: model.KindInvalid, Msg: "no", Hint: "ask otherwise"})})
	_, err := c.Generate(t.Context(), &model.Request{})
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.KindUnavailable || e.Status != 503 || e.Hint != "wait" || !e.Retryable() {
		t.Errorf("error = %+v, want that of b, which may pass", e)
	}
	want := "none of 3 models answered: a: auth: bad key; b: unavailable: down (6 tries); c: invalid: no"
	if !strings.Contains(e.Error(), want) {
		t.Errorf("error = %v, want %q", e, want)
	}
	c = chain(t,
		model.Link{Name: "a", Model: refuses(&model.Error{Kind: model.KindAuth, Msg: "bad key"})},
		model.Link{Name: "b", Model: refuses(&model.Error{Kind: model.KindInvalid, Msg: "no"})})
	_, err = c.Generate(t.Context(), &model.Request{})
	if !errors.As(err, &e) || e.Kind != model.KindInvalid || e.Retryable() {
		t.Errorf("error = %+v, want the last one's kind", e)
	}
	alone := &model.Error{Kind: model.KindInvalid, Msg: "no"}
	_, err = chain(t, model.Link{Name: "a", Model: refuses(alone)}).Generate(t.Context(), &model.Request{})
	if err == nil || err.Error() != alone.Error() {
		t.Errorf("error = %v, want that of the only model", err)
	}
	if _, err := model.NewChain(); err == nil {
		t.Error("a chain of nothing was made")
	}
	if _, err := model.NewChain(model.Link{Name: "a"}); err == nil {
		t.Error("a chain with a hole was made")
	}
}

// The end of the caller's context is not a failure of a model.
func TestChainStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c := chain(t,
		model.Link{Name: "a", Model: modelFunc(func(ctx context.Context, _ *model.Request) (*model.Response, error) {
			cancel()
			return nil, model.Canceled(ctx)
		})},
		model.Link{Name: "b", Model: modelFunc(func(context.Context, *model.Request) (*model.Response, error) {
			asked++
			return &model.Response{Text: "b"}, nil
		})})
	if _, err := c.Generate(ctx, &model.Request{}); !errors.Is(err, context.Canceled) || asked != 0 {
		t.Errorf("error = %v, the second was asked %d times", err, asked)
	}
}

// able is a model with a window and a price.
type able struct {
	model.Model
	window int
	price  int64
}

func (a able) Window() int                     { return a.window }
func (a able) Price(model.Usage) (int64, bool) { return a.price, a.price >= 0 }

func TestChainAbilities(t *testing.T) {
	t.Parallel()
	link := func(window int, price int64) model.Link { return model.Link{Model: able{says("x"), window, price}} }
	tests := []struct {
		links  []model.Link
		window int
		price  int64
		known  bool
	}{
		{[]model.Link{link(100, 5)}, 100, 5, true},
		{[]model.Link{link(0, 5), link(300, 9), link(200, 7)}, 200, 9, true},
		{[]model.Link{link(0, 5), link(0, -1)}, 0, 0, false},
		{[]model.Link{link(50, 5), {Model: says("x")}}, 50, 0, false},
	}
	for i, tt := range tests {
		c := chain(t, tt.links...)
		price, known := c.Price(model.Usage{})
		if c.Window() != tt.window || price != tt.price || known != tt.known {
			t.Errorf("%d: window %d, price %d, %t, want %d, %d, %t", i, c.Window(), price, known, tt.window, tt.price, tt.known)
		}
	}
}

// A model with a fallback does not let callers wait for a long
// pause: neither the one that was refused, nor those in the queue, nor those
// that come while it lasts.
func TestLongPausesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		requests := 0
		first := guarded(t, model.GuardedConfig{Name: "a", Concurrency: 1, MaxPause: 10 * time.Second, Model: modelFunc(
			func(ctx context.Context, _ *model.Request) (*model.Response, error) {
				mu.Lock()
				requests++
				n := requests
				mu.Unlock()
				time.Sleep(time.Second)
				if n == 1 {
					return nil, &model.Error{Kind: model.KindRateLimit, Msg: "slow", RetryAfter: time.Minute}
				}
				return &model.Response{Text: "from a", Tries: 1}, nil
			})})
		c := chain(t, model.Link{Name: "a", Model: first}, model.Link{Name: "b", Model: says("from b")})
		begun := time.Now()
		var wg sync.WaitGroup
		for range 3 { // one is sent, two wait for their turn
			wg.Go(func() {
				got, err := c.Generate(t.Context(), &model.Request{})
				if err != nil || got.Asked != "b" {
					t.Errorf("%+v, %v, want b's answer", got, err)
				}
			})
		}
		wg.Wait()
		within(t, "three answers", time.Since(begun), time.Second, time.Second)
		got, err := c.Generate(t.Context(), &model.Request{})
		if err != nil || got.Asked != "b" || !strings.Contains(got.Notes[1], "paused for") {
			t.Errorf("%+v, %v, want b's answer and a note on the pause", got, err)
		}
		time.Sleep(time.Minute + 10*time.Second)
		if got, err = c.Generate(t.Context(), &model.Request{}); err != nil || got.Asked != "a" {
			t.Errorf("%+v, %v, want a's answer again", got, err)
		}
		if requests != 2 {
			t.Errorf("a was sent %d requests, want 2", requests)
		}
	})
}

// Short pauses are waited for.
func TestShortPausesAreWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := failing(&model.Error{Kind: model.KindRateLimit, RetryAfter: 5 * time.Second})
		g := guarded(t, model.GuardedConfig{Model: m, MaxPause: 10 * time.Second})
		begun := time.Now()
		if got, err := g.Generate(t.Context(), &model.Request{}); err != nil || got.Tries != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		within(t, "the wait", time.Since(begun), 5*time.Second, 6*time.Second)
	})
}

func TestChainNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"":                                    {""},
		"openai:a":                            {"openai:a"},
		"openai:a,anthropic:b":                {"openai:a", "anthropic:b"},
		" openai:a , anthropic:b,\tmock:echo": {"openai:a", "anthropic:b", "mock:echo"},
		"mock:delay=1ms,text=a, b":            {"mock:delay=1ms,text=a, b"},
		"mock:text=a,b,builtin:extract":       {"mock:text=a,b", "builtin:extract"},
		"exec:sh -c 'cut -d, -f1',openai:x":   {"exec:sh -c 'cut -d, -f1'", "openai:x"},
		"openai:a,opnai:b":                    {"openai:a,opnai:b"},
		",openai:a":                           {"", "openai:a"},
		"openai:a,":                           {"openai:a,"},
	} {
		if diff := cmp.Diff(want, model.ChainNames(name)); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}
