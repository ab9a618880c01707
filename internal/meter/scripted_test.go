package meter

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/price"
)

// seen is a request as the provider received it.
type seen struct {
	method, uri, host string
	header            http.Header
	body              []byte
	trailer           http.Header
}

// provider is a scripted provider.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
}

// newProvider starts a provider that answers by answer, after it has read the request.
func newProvider(t testing.TB, answer http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.requests = append(p.requests, seen{r.Method, r.RequestURI, r.Host, r.Header.Clone(), body, r.Trailer})
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) last(t testing.TB) seen {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) == 0 {
		t.Fatal("the provider received no request")
	}
	return p.requests[len(p.requests)-1]
}

// metered is a meter in front of a provider, and the exchanges that it reported.
type metered struct {
	*Meter
	exchanges chan Exchange
}

func start(t testing.TB, upstream string) *metered {
	t.Helper()
	m := &metered{exchanges: make(chan Exchange, 1000)}
	var err error
	m.Meter, err = Start(Config{
		Upstreams: map[Provider]string{OpenAI: upstream + "/v1", Anthropic: upstream, Gemini: upstream},
		Rate:      testRate,
		Observe:   func(x Exchange) { m.exchanges <- x },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// testRate knows models whose name contains "priced".
func testRate(name, _ string) (price.Rate, error) {
	if !strings.Contains(name, "priced") {
		return price.Rate{}, nil
	}
	return price.Rate{Known: true, Input: 1, Output: 2, CacheRead: 0.1, CacheWrite: 1.5, Window: 1000}, nil
}

// address returns the address of a protocol's requests, direct or at the meter.
func (m *metered) address(api API, stream bool) (direct, metered string) {
	p, path := OpenAI, ""
	switch api {
	case Chat:
		path = "/chat/completions"
	case Responses:
		path = "/responses"
	case Messages:
		p, path = Anthropic, "/v1/messages"
	case Generate:
		p, path = Gemini, "/v1beta/models/gemini-priced:generateContent"
		if stream {
			path = "/v1beta/models/gemini-priced:streamGenerateContent?alt=sse"
		}
	}
	upstream := m.upstreams[p].String()
	return upstream + path, m.URL(p) + path
}

// requestOf is a request of a protocol.
func requestOf(api API) string {
	switch api {
	case Responses:
		return `{"model":"m-priced","instructions":"You fix tests.","input":[{"role":"user","content":"Fix it"}],` +
			`"tools":[{"name":"shell"}]}`
	case Generate:
		return `{"contents":[{"role":"user","parts":[{"text":"Fix it"}]}],` +
			`"tools":[{"functionDeclarations":[{"name":"shell"}]}]}`
	case Chat, Messages:
	}
	return `{"model":"m-priced","messages":[{"role":"user","content":"Fix it"}],"tools":[{"name":"shell"}]}`
}

// answers is an answer of each protocol with the usage that the provider counts in it.
type scripted struct {
	api    API
	stream bool
	body   string
	want   model.Usage
}

func scripts() []scripted {
	return []scripted{
		{Chat, false, `{"id":"1","model":"m-priced-2","choices":[{"message":{"role":"assistant","content":"done \"}{\""},` +
			`"finish_reason":"stop"}],"usage":{"prompt_tokens":400,"completion_tokens":50,"total_tokens":450,` +
			`"prompt_tokens_details":{"cached_tokens":300}}}`,
			model.Usage{InputTokens: 400, OutputTokens: 50, CachedTokens: 300}},
		{Chat, true, "data: {\"model\":\"m-priced-2\",\"choices\":[{\"delta\":{\"content\":\"do\"}}],\"usage\":null}\n\n" +
			": keep-alive\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"ne\"},\"finish_reason\":\"stop\"}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":401,\"completion_tokens\":51,\"prompt_tokens_details\":" +
			"{\"cached_tokens\":301}}}\n\ndata: [DONE]\n\n",
			model.Usage{InputTokens: 401, OutputTokens: 51, CachedTokens: 301}},
		{Responses, false, `{"object":"response","status":"completed","error":null,"incomplete_details":null,` +
			`"output":[{"type":"message","content":[{"type":"output_text","text":"done"}]}],"usage":{"input_tokens":402,` +
			`"input_tokens_details":{"cached_tokens":302},"output_tokens":52,"output_tokens_details":{"reasoning_tokens":9}}}`,
			model.Usage{InputTokens: 402, OutputTokens: 52, CachedTokens: 302}},
		{Responses, true, "event: response.created\r\ndata: {\"type\":\"response.created\"," +
			"\"response\":{\"usage\":null}}\r\n\r\n" +
			"event: response.output_text.delta\r\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"done\"}\r\n\r\n" +
			"event: response.completed\r\ndata: {\"type\":\"response.completed\",\r\ndata: \"response\":{\"error\":null," +
			"\"usage\":" +
			"{\"input_tokens\":403,\"input_tokens_details\":{\"cached_tokens\":303},\"output_tokens\":53}}}\r\n\r\n",
			model.Usage{InputTokens: 403, OutputTokens: 53, CachedTokens: 303}},
		{Messages, false, `{"type":"message","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":` +
			`{"input_tokens":4,"cache_creation_input_tokens":100,"cache_read_input_tokens":300,"output_tokens":54}}`,
			model.Usage{InputTokens: 404, OutputTokens: 54, CachedTokens: 300, CacheWriteTokens: 100}},
		{Messages, true, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-priced\"," +
			"\"usage\":" +
			"{\"input_tokens\":5,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":300," +
			"\"output_tokens\":1}}}\n\n" +
			"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\"," +
			"\"text\":\"done\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" +
			"\"end_turn\"},\"usage\":{\"output_tokens\":55}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			model.Usage{InputTokens: 405, OutputTokens: 55, CachedTokens: 300, CacheWriteTokens: 100}},
		{Generate, false, `[{"candidates":[{"content":{"parts":[{"text":"do"}]}}],` +
			`"usageMetadata":{"promptTokenCount":406}},` +
			`{"candidates":[{"content":{"parts":[{"text":"ne"}]},"finishReason":"STOP"}],` +
			`"usageMetadata":{"promptTokenCount":406,` +
			`"candidatesTokenCount":40,"thoughtsTokenCount":16,"cachedContentTokenCount":306,"totalTokenCount":462}}]`,
			model.Usage{InputTokens: 406, OutputTokens: 56, CachedTokens: 306}},
		{Generate, true, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"do\"}]}}],\"usageMetadata\":" +
			"{\"promptTokenCount\":407}}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ne\"}]}," +
			"\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":400,\"toolUsePromptTokenCount\":7," +
			"\"candidatesTokenCount\":41,\"thoughtsTokenCount\":16,\"cachedContentTokenCount\":307}}\r\n\r\n",
			model.Usage{InputTokens: 407, OutputTokens: 57, CachedTokens: 307}},
	}
}

func (s *scripted) name() string {
	if s.stream {
		return string(s.api) + " stream"
	}
	return string(s.api) + " whole"
}

func gzipped(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
