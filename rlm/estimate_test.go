package rlm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
	"github.com/perdure/perdure/rlm"
)

// counter answers as long as it may, or in a few words, and counts.
type counter struct {
	*httptest.Server
	brief bool

	mu                      sync.Mutex // guards the fields below
	calls, input, output, n int64
}

func newCounter(t *testing.T, brief bool) *counter {
	t.Helper()
	e := &counter{brief: brief}
	e.Server = httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(e.Close)
	return e
}

func (e *counter) answer(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages  []struct{ Content string }
		MaxTokens int             `json:"max_tokens"`
		Most      int             `json:"max_completion_tokens"`
		Format    json.RawMessage `json:"response_format"`
	}
	raw, _ := io.ReadAll(r.Body)
	if json.Unmarshal(raw, &req) != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	var all strings.Builder
	for i, m := range req.Messages {
		if i > 0 {
			all.WriteString("\n\n")
		}
		all.WriteString(m.Content)
	}
	limit := max(req.MaxTokens, req.Most)
	e.mu.Lock()
	e.n++
	text, tokens := fmt.Sprintf("answer %d ", e.n), int64(4)
	switch {
	case strings.Contains(all.String(), "strict and fair judge"):
		text = `{"score": 50, "critique": "longer"}`
	case len(req.Format) > 0:
		text = fmt.Sprintf(`{"n": %d}`, e.n)
	case !e.brief:
		text, tokens = text+strings.Repeat("x", 4*limit-len(text)), int64(limit)
	}
	in := model.EstimateTokens(all.Len())
	e.calls, e.input, e.output = e.calls+1, e.input+in, e.output+tokens
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(M{"choices": []M{{"message": M{"content": text}, "finish_reason": "stop"}},
		"usage": M{"prompt_tokens": in, "completion_tokens": tokens}})
}

// estimated is a run of TestEstimateIsWhatTheRunTakes.
type estimated struct {
	*bench
	rng    *rand.Rand
	end    *counter
	prompt string
	files  []file
	config M
}

func newEstimated(t *testing.T, seed, number uint64) *estimated {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, number))
	end := newCounter(t, r.IntN(2) == 0)
	own, err := openai.New(openai.Config{Model: "m", BaseURL: end.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	e := &estimated{bench: newBench(t, models{"openai:a": own, "openai:b": own}), rng: r, end: end,
		prompt: strings.Repeat("Find it. ", 1+r.IntN(20))}
	e.exec, err = rlm.New(rlm.ExecutorConfig{Store: e.store, Resolver: e.models, Price: priceOf})
	e.ok(err)
	e.config = M{"model": "openai:a", "planner": "split", "concurrency": 8, "chunk_tokens": 100 + r.IntN(900),
		"max_children": 2 + r.IntN(12), "answer_tokens": 20 + r.IntN(200), "context_window": 4000 + r.IntN(8000)}
	e.choose()
	if e.maybe(8) {
		e.config = M{"model": "openai:a", "planner": "search", "concurrency": 8, "answer_tokens": 20 + r.IntN(200),
			"search_replies": 1 + r.IntN(5), "context_window": 8000 + r.IntN(8000)}
	}
	return e
}

func priceOf(_ string, u model.Usage) (int64, bool) { return u.InputTokens + 5*u.OutputTokens, true }

func (e *estimated) maybe(one int) bool { return e.rng.IntN(one) == 0 }

func (e *estimated) choose() {
	c := e.config
	for i := range 1 + e.rng.IntN(6)*e.rng.IntN(4) {
		text := ""
		switch e.rng.IntN(5) {
		case 0: // an empty file
		case 1:
			text = strings.Repeat("a,b,c\n1,2,3\n", e.rng.IntN(400))
		case 2:
			text = strings.Repeat("wörter ", e.rng.IntN(2000))
		default:
			text = numbered(e.rng.IntN(300))
		}
		e.files = append(e.files, file{fmt.Sprintf("dir/%03d.csv", i), text})
	}
	e.files = append(e.files, file{"last.txt", numbered(1 + e.rng.IntN(50))})
	c["merge"] = []string{"merge", "concatenate", "vote", "summarize", "summarize", "best-of-n"}[e.rng.IntN(6)]
	switch e.rng.IntN(6) {
	case 0:
		c["batch"] = true
	case 1:
		c["strategy"] = "sequential"
	case 2:
		c["strategy"], c["fan_in"] = "map-reduce", 2+e.rng.IntN(4)
	case 3:
		c["schema"] = M{"type": "object", "properties": M{"n": M{"type": "integer"}}, "required": []string{"n"}}
	case 4:
		c["cite"] = true
	}
	if e.maybe(4) {
		c["sub_model"] = "openai:b"
	}
	if e.maybe(6) {
		c["sub_model"] = "builtin:extract"
		if c["merge"] == "vote" || c["merge"] == "best-of-n" {
			c["merge"] = "merge"
		}
	}
	if c["merge"] == "best-of-n" && e.maybe(2) {
		c["judge"] = "rule:len(text)"
	}
	if c["schema"] == nil && e.maybe(6) {
		c["min_score"], c["gate_rounds"] = []int{40, 90}[e.rng.IntN(2)], 1+e.rng.IntN(3)
	}
}

// TestEstimateIsWhatTheRunTakes compares the estimates of random runs with what an
// endpoint counts while they are executed.
func TestEstimateIsWhatTheRunTakes(t *testing.T) {
	t.Parallel()
	first := rand.Uint64()
	t.Logf("seed %d", first)
	for i := range effort.Of(40, 600) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			newEstimated(t, first, uint64(i)).run()
		})
	}
}

func (e *estimated) run() {
	e.Helper()
	id := e.put(e.files...)
	raw, err := json.Marshal(e.config)
	e.ok(err)
	est, err := e.exec.Estimate(e.Context(), rlm.LaunchRequest{Prompt: e.prompt, ContextID: id, Config: raw})
	if err != nil {
		if _, refused := e.tryLaunch(e.prompt, id, e.config); refused == nil || refused.Error() != err.Error() {
			e.Fatalf("estimate: %v, launch: %v", err, refused)
		}
		e.Skip(err)
	}
	e.config["budget_calls"], e.config["budget_tokens"] = *est.Budget.Calls, max(*est.Budget.Tokens, 1)
	if *est.Budget.CostUSD > 0 {
		e.config["budget_usd"] = *est.Budget.CostUSD
	}
	tree := e.launch(e.prompt, id, e.config)
	got, root := e.finish(tree.ID, 8)
	u := e.usage(tree.ID)
	fail := func(format string, args ...any) {
		e.Helper()
		e.Errorf("%s\nconfig %s\nusage %+v\nestimate %+v", fmt.Sprintf(format, args...), raw, u, est)
	}
	gate := e.config["min_score"] != nil // then the result may count as incomplete
	if got.State != perdure.Completed && !gate {
		fail("tree is %s with the budget that suffices: %+v %s", got.State, root.Error, root.Data)
	}
	if e.calls(tree.ID) != u.Calls {
		fail("%d calls counted", e.calls(tree.ID))
	}
	between := func(what string, least, n, most int64) {
		if n < least || n > most {
			fail("%s: %d is not between %d and %d", what, n, least, most)
		}
	}
	between("calls", est.LeastCalls, u.Calls, *est.Calls)
	between("input", est.LeastInputTokens, u.InputTokens, *est.InputTokens)
	between("output", 0, u.OutputTokens, *est.OutputTokens)
	between("cost", int64(*est.LeastCostUSD*1e6)-u.Calls, int64(u.CostUSD*1e6), int64(*est.CostUSD*1e6)+u.Calls)
	p, err := e.store.Progress(e.Context(), tree.ID)
	e.ok(err)
	between("tasks", 1, p.Total, *est.Tasks)
	search := e.config["planner"] == "search"
	asks := search || e.config["merge"] == "summarize" || e.config["schema"] != nil || e.config["min_score"] != nil ||
		e.config["merge"] == "best-of-n" && e.config["judge"] == nil
	if !asks && est.LeastCalls != *est.Calls {
		fail("the calls are determined by the plan")
	}
	full := !search && !e.end.brief && e.config["min_score"] == nil && e.config["sub_model"] != "builtin:extract"
	if full && u.Calls != *est.Calls {
		fail("each reply is as long as it may be")
	}
}

// calls counts the requests of a tree: those of the endpoint, and those of builtin:extract.
func (e *estimated) calls(id perdure.TreeID) int64 {
	e.end.mu.Lock()
	defer e.end.mu.Unlock()
	n := e.end.calls
	p, err := e.store.Progress(e.Context(), id)
	e.ok(err)
	for _, c := range p.Costs {
		if c.Model == "builtin:extract" {
			n += c.Calls
		}
	}
	return n
}
