package loop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/model/price"
)

// asks sends a request to the provider whose address the agent's environment has, and returns
// the status.
func (w *turn) asks(text string) (int, error) {
	address := w.endpoints["own"]
	for _, v := range w.env {
		if rest, ok := strings.CutPrefix(v, "ANTHROPIC_BASE_URL="); ok {
			address = rest
		}
	}
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"tools":[{"name":"bash"}]}`, text)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, address+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// metered returns a bench whose provider is a server that answers the n-th request, from 1.
func metered(t *testing.T, answer func(w http.ResponseWriter, n int64), turns ...func(w *turn) error) (*bench,
	*atomic.Int64) {
	t.Helper()
	var served atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, served.Add(1))
	}))
	t.Cleanup(provider.Close)
	t.Setenv("ANTHROPIC_BASE_URL", provider.URL)
	b := newBench(t, turns...)
	b.restart(loop.EngineConfig{Rate: func(string, string) (price.Rate, error) {
		return price.Rate{Known: true, Input: 1, Output: 2, Window: 1000}, nil
	}})
	return b, &served
}

func withMeter(c *config.Config) { c.Meter = true }

func usage(w http.ResponseWriter, input, output int) {
	_, _ = fmt.Fprintf(w, `{"content":[{"text":"x"}],"usage":{"input_tokens":%d,"output_tokens":%d}}`, input, output)
}

// TestMeteredTurn: tokens, cost and context of an agent that reports nothing are those that its
// provider counted, and the work is recorded at 75 % of the context.
func TestMeteredTurn(t *testing.T) {
	used := []int{300, 760, 800}
	b, served := metered(t, func(w http.ResponseWriter, n int64) { usage(w, used[n-1], 10) }, func(w *turn) error {
		for range used {
			if status, err := w.asks("Fix it"); status != http.StatusOK || err != nil {
				t.Errorf("status %d, %v", status, err)
			}
		}
		return w.write("tests/b", "pass")
	})
	b.launch(withMeter)
	if l := b.work(); l.Status != record.Completed || served.Load() != 3 {
		t.Fatalf("%s after %d requests", show(l), served.Load())
	}
	out := b.outcomes()[1]
	if out.InputTokens != 1860 || out.OutputTokens != 30 || out.CostUSD == nil || *out.CostUSD != 0.00192 {
		t.Errorf("%d tokens in, %d out, cost %v", out.InputTokens, out.OutputTokens, out.CostUSD)
	}
	if m := out.Measured; m.Usage != agent.SourceObserved || m.Context != agent.SourceObserved || m.ContextPercent != 81 {
		t.Errorf("measured %+v", m)
	}
	full := b.events(loop.EventContext)
	if len(full) != 1 || !strings.Contains(string(full[0].Data), `"used_percent":77`) ||
		!strings.Contains(string(full[0].Data), `"source":"observed"`) {
		t.Errorf("events %+v", full)
	}
	recorded := false
	for _, e := range b.entries("iteration-1") {
		var op ledger.Op
		b.ok(json.Unmarshal(e.Data, &op))
		recorded = recorded || e.Kind == ledger.OpContext && op.Source == string(agent.SourceObserved)
	}
	if !recorded {
		t.Error("the handoff has no entry about the context")
	}
	b.sound()
}

// TestMeterOff: without the setting the agent's environment has no meter, and the agent's own
// figures count.
func TestMeterOff(t *testing.T) {
	b, served := metered(t, nil, func(w *turn) error {
		for _, v := range w.env {
			if strings.Contains(v, "BASE_URL") {
				t.Errorf("variable %s", v)
			}
		}
		return w.write("tests/b", "pass")
	})
	b.launch()
	if l := b.work(); l.Status != record.Completed || served.Load() != 0 {
		t.Fatalf("%s", show(l))
	}
	if out := b.outcomes()[1]; out.InputTokens != 100 || out.Measured.Usage != agent.SourceReported ||
		out.Measured.Context != agent.SourceEstimated {
		t.Errorf("%d tokens, measured %+v", out.InputTokens, out.Measured)
	}
}

// TestMeteredBudget: a turn ends with the answer that exceeds its budget, and no request
// follows, although the agent reports nothing.
func TestMeteredBudget(t *testing.T) {
	b, served := metered(t, func(w http.ResponseWriter, _ int64) { usage(w, 900, 100) }, func(w *turn) error {
		for range 50 {
			if status, err := w.asks("Fix it"); err != nil || status != http.StatusOK {
				break
			}
		}
		<-w.ctx.Done()
		return w.ctx.Err()
	})
	b.restart(loop.EngineConfig{}) // without a window: the context is not full
	b.launch(withMeter, func(c *config.Config) { c.BudgetTokens, c.Unattended = 3000, true })
	l := b.work()
	if l.Status != record.Failed || served.Load() != 4 || !strings.Contains(b.reason(), "4,000 of 3,000 tokens") {
		t.Fatalf("%s after %d answers: %s", show(l), served.Load(), b.reason())
	}
}

// TestBudgetMeters: a budget puts the meter in front of an agent whose requests can be counted, by
// itself, at the address that the agent uses, and counts what the agent does not report.
func TestBudgetMeters(t *testing.T) {
	var served atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		served.Add(1)
		usage(w, 900, 100)
	}))
	t.Cleanup(provider.Close)
	b := newBench(t, func(w *turn) error {
		for range 50 {
			if status, err := w.asks("Fix it"); err != nil || status != http.StatusOK {
				break
			}
		}
		<-w.ctx.Done()
		return w.ctx.Err()
	})
	b.agent.addresses = func() (map[string]string, error) { return map[string]string{"own": provider.URL}, nil }
	b.launch(func(c *config.Config) { c.BudgetTokens, c.Unattended = 3000, true })
	l := b.work()
	if l.Status != record.Failed || served.Load() != 4 || !strings.Contains(b.reason(), "4,000 of 3,000 tokens") {
		t.Fatalf("%s after %d answers: %s", show(l), served.Load(), b.reason())
	}
}

// TestBudgetUncounted: a loop with a budget is refused if its agent's requests cannot be counted, and
// pauses if they pass the meter by, unless the budget counts only what is reported.
func TestBudgetUncounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(*turn) error { return nil }, write("tests/b", "pass"))
	unknown := errors.New("it asks a planet without addresses")
	b.agent.addresses = func() (map[string]string, error) { return nil, unknown }
	budget := config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "scripted", BudgetTokens: 1000}
	_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: budget})
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), "planet") ||
		!strings.Contains(perdure.HintOf(err), "--budget-unmetered") {
		t.Fatalf("launched: %v", err)
	}
	b.agent.addresses = func() (map[string]string, error) { return map[string]string{"own": "http://127.0.0.1:9"}, nil }
	b.launch(func(c *config.Config) { c.BudgetTokens = 1000 })
	if l := b.work(); l.Status != record.Paused || l.Iteration != 1 ||
		!strings.Contains(b.reason(), "the meter saw 0 tokens of scripted, which reports 110 tokens") {
		t.Fatalf("%s: %s", show(l), b.reason())
	}
	b.resume(request(`{"budget_unmetered":true}`, ""))
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s: %s", show(l), b.reason())
	}
}

// TestMeteredFullContext: at 90 % the turn ends before the next request, and a fresh session
// goes on.
func TestMeteredFullContext(t *testing.T) {
	b, served := metered(t, func(w http.ResponseWriter, _ int64) { usage(w, 930, 10) }, func(w *turn) error {
		_, first := w.asks("Fix it")
		if status, err := w.asks("Fix it"); err == nil && status == http.StatusOK {
			t.Error("a request passed although the context is full")
		}
		<-w.ctx.Done()
		return firstError(first, agent.Stopped(w.ctx))
	}, write("tests/b", "pass"))
	b.launch(withMeter)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 || b.agent.done != 2 || served.Load() != 1 {
		t.Fatalf("%s after %d turns and %d requests", show(l), b.agent.done, served.Load())
	}
}

func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// TestMeteredFailure: an agent that fails without a reason failed for that of its provider.
func TestMeteredFailure(t *testing.T) {
	failing := func(w *turn) error {
		_, err := w.asks("Fix it")
		return firstError(err, &agent.Error{Kind: agent.KindFailed, Msg: "exit status 1"})
	}
	b, served := metered(t, func(w http.ResponseWriter, n int64) {
		if n == 1 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}`)
			return
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"type":"rate_limit_error","message":"slow down"}}`)
	}, failing)
	b.launch(withMeter)
	b.soon = time.Minute
	l := b.work()
	kinds := ""
	for _, e := range b.events(loop.EventAgentError) {
		kinds += string(e.Data)
	}
	if served.Load() != 2 || !strings.Contains(kinds, `"context_overflow"`) || !strings.Contains(kinds, `"rate_limit"`) {
		t.Fatalf("%s after %d requests: %s", show(l), served.Load(), kinds)
	}
	if waits := b.events(loop.EventWaiting); len(waits) != 1 {
		t.Errorf("waits %+v", waits)
	}
}
