package meter

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/model"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                     string
		api                      API
		status                   int
		header                   http.Header
		body                     string
		overflow, limited, until bool
	}{
		{"chat overflow", Chat, 400, nil, `{"error":{"message":"This model's maximum context length is 128000 tokens.",` +
			`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true, false, false},
		{"chat overflow of a local server", Chat, 400, nil, `{"error":"the request exceeds the available context size"}`,
			true, false, false},
		{"responses overflow", Responses, 400, nil, `{"error":{"message":"Your input exceeds the context window of this ` +
			`model. Please adjust your input and try again.","type":"invalid_request_error","code":null}}`, true, false, false},
		{"responses overflow in a stream", Responses, 200, nil, "data: {\"type\":\"response.failed\"," +
			"\"response\":{\"error\":" +
			"{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window\"},\"usage\":null}}\n\n",
			true, false, false},
		{"responses error event", Responses, 200, nil, "data: {\"type\":\"error\",\"code\":\"context_length_exceeded\"," +
			"\"message\":\"too long\"}\n\n", true, false, false},
		{"messages overflow", Messages, 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":` +
			`"prompt is too long: 204000 tokens > 200000 maximum"}}`, true, false, false},
		{"messages overflow by output", Messages, 400, nil, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"input length and max_tokens exceed context limit: 190000 + 20000 > 200000"}}`, true, false, false},
		{"messages too large", Messages, 413, nil, `{"type":"error","error":{"type":"request_too_large","message":"no"}}`,
			true, false, false},
		{"messages window exceeded", Messages, 200, nil, `{"type":"message","stop_reason":"model_context_window_exceeded",` +
			`"usage":{"input_tokens":1,"output_tokens":1}}`, true, false, false},
		{"generate overflow", Generate, 400, nil, `{"error":{"code":400,"message":"The input token count (1200000) exceeds ` +
			`the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, true, false, false},
		{"other error", Chat, 400, nil, `{"error":{"message":"unknown parameter","code":null}}`, false, false, false},
		{"chat rate limit", Chat, 429, http.Header{"Retry-After": {"20"}}, `{"error":{"message":"slow down",` +
			`"code":"rate_limit_exceeded"}}`, false, true, true},
		{"responses rate limit in a stream", Responses, 200, nil, "data: {\"type\":\"response.failed\"," +
			"\"response\":{\"error\":" +
			"{\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached\"}}}\n\n", false, true, false},
		{"messages rate limit", Messages, 429, http.Header{"Retry-After": {"20"}}, `{"type":"error","error":{"type":` +
			`"rate_limit_error","message":"slow down"}}`, false, true, true},
		{"messages overloaded in a stream", Messages, 200, nil, "event: error\ndata: {\"type\":\"error\"," +
			"\"error\":{\"type\":" +
			"\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", false, false, false},
		{"generate rate limit", Generate, 429, nil, `[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"@type":"x","retryDelay":"20s"}]}}]`, false, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, values := range test.header {
					w.Header()[name] = values
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			m := start(t, p.URL)
			_, through := m.address(test.api, false)
			before := time.Now()
			got := ask(t, plainClient(t), through, strings.NewReader(requestOf(test.api)), nil)
			if got.Status != test.status || string(got.Body) != test.body ||
				got.Header.Get("Retry-After") != test.header.Get("Retry-After") {
				t.Errorf("answer differs: %+v", got)
			}
			x := <-m.exchanges
			if x.Overflow != test.overflow || x.Limited != test.limited || x.Until.IsZero() == test.until {
				t.Errorf("reported %+v", x)
			}
			if wait := x.Until.Sub(before); test.until && (wait < 20*time.Second || wait > time.Minute) {
				t.Errorf("limit ends in %s, want about 20 s", wait)
			}
			s := m.Summary()
			if s.Overflows+s.RateLimits+s.Failed != 1 {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

// All numbers of a summary are those that the provider counted.
func TestSummaryCounts(t *testing.T) {
	t.Parallel()
	all := scripts()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		i, _ := strconv.Atoi(r.Header.Get("X-Script"))
		_, _ = io.WriteString(w, all[i].body)
	})
	m := start(t, p.URL)
	want := model.Usage{}
	for i, s := range all {
		_, through := m.address(s.api, s.stream)
		ask(t, plainClient(t), through, strings.NewReader(requestOf(s.api)), http.Header{"X-Script": {strconv.Itoa(i)}})
		x := <-m.exchanges
		want.InputTokens += s.want.InputTokens
		want.OutputTokens += s.want.OutputTokens
		want.CachedTokens += s.want.CachedTokens
		want.CacheWriteTokens += s.want.CacheWriteTokens
		if x.Total.InputTokens != want.InputTokens || x.Total.OutputTokens != want.OutputTokens {
			t.Errorf("total after %s is %+v, want %+v", s.name(), x.Total, want)
		}
	}
	s := m.Summary()
	got := model.Usage{InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CachedTokens: s.CachedTokens,
		CacheWriteTokens: s.CacheWriteTokens}
	if got != want || s.Answers != len(all) || s.Estimated != 0 || len(s.Models) != 3 {
		t.Errorf("summary %+v, want %+v", s, want)
	}
	plain := want.InputTokens - want.CachedTokens - want.CacheWriteTokens
	cost := float64(plain) + 0.1*float64(want.CachedTokens) + 1.5*float64(want.CacheWriteTokens) +
		2*float64(want.OutputTokens)
	if s.Cost() == nil || float64(*s.Cost()) < cost-4 || float64(*s.Cost()) > cost+4 { // each answer is rounded
		t.Errorf("cost %v, want about %v", s.Cost(), cost)
	}
	if s.Highest == nil || *s.Highest != 46 {
		t.Errorf("highest fill %v %%, want 46", s.Highest)
	}
}

// A cost of which a part is unknown is unknown, never less.
func TestUnknownPrice(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":10,"completion_tokens":1}}`)
	})
	m := start(t, p.URL)
	_, through := m.address(Chat, false)
	for _, name := range []string{"m-priced", "m-unknown"} {
		ask(t, plainClient(t), through, strings.NewReader(`{"model":"`+name+`"}`), nil)
		<-m.exchanges
	}
	s := m.Summary()
	if s.Cost() != nil || s.Unpriced != 1 || s.CostMicros != 12 {
		t.Errorf("summary %+v", s)
	}
}

// Usage that a provider does not report is estimated, and marked.
func TestEstimatedUsage(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"}}]}\n\ndata: [DONE]\n\n")
	})
	m := start(t, p.URL)
	_, through := m.address(Chat, true)
	body := requestOf(Chat)
	ask(t, plainClient(t), through, strings.NewReader(body), nil)
	x := <-m.exchanges
	want := model.Usage{InputTokens: model.EstimateTokens(len(body)), OutputTokens: 2, Estimated: true}
	if x.Usage == nil || *x.Usage != want || x.Cut || x.CostMicros != nil || !x.Context.Estimated {
		t.Errorf("reported %+v, usage %+v, want %+v", x, x.Usage, want)
	}
}

// The context is that of the program's conversation, not of the small requests next to it.
func TestContextOfConversation(t *testing.T) {
	t.Parallel()
	const system = `,"system":[{"type":"text","text":"You are an agent."}]`
	main := func(first string) string {
		return `{"model":"m-priced","messages":[{"role":"user","content":"` + first + `"}],"tools":[{"name":"x"}]` +
			system + `}`
	}
	title := `{"model":"small","messages":[{"role":"user","content":"Title?"}]}`
	steps := []struct {
		request string
		tokens  int
		want    bool
	}{
		{title, 10, true}, // there is no other yet
		{main("Fix it"), 500, true},
		{title, 20, false},
		{main("Fix it"), 900, true},
		{main("Find the caller"), 300, false}, // an agent of the agent
		{title, 20, false},
		{main("Fix it"), 950, true},
		{main("Summary: …"), 100, false}, // the context was shortened
		{main("Summary: …"), 110, false},
		{main("Summary: …"), 120, false},
		{main("Summary: …"), 130, true},
		{main("Summary: …"), 140, true},
	}
	at := 0
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"usage":{"input_tokens":`+strconv.Itoa(steps[at].tokens)+`,"output_tokens":0}}`)
	})
	m := start(t, p.URL)
	_, through := m.address(Messages, false)
	for i, step := range steps {
		at = i
		ask(t, plainClient(t), through, strings.NewReader(step.request), nil)
		x := <-m.exchanges
		if (x.Context != nil) != step.want || step.want && x.Context.Used != int64(step.tokens) {
			t.Errorf("step %d: context %+v, want %v", i, x.Context, step.want)
		}
	}
	if s := m.Summary(); s.Highest == nil || *s.Highest != 95 || s.Context.Used != 140 {
		t.Errorf("summary: context %+v, highest %v", s.Context, s.Highest)
	}
}
