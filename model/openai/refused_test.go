package openai_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
)

// memory keeps findings in memory.
type memory struct {
	mu    sync.Mutex // guards found
	found []model.Finding
}

func (m *memory) Recall(context.Context, string, string) ([]model.Finding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]model.Finding{}, m.found...), nil
}

func (m *memory) Keep(_ context.Context, _, _ string, f model.Finding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = append(m.found, f)
	return nil
}

// refusing is a server that refuses some requests.
type refusing struct {
	name string
	// refused reports whether a request has what the server does not take.
	refused func(body map[string]any) bool
	status  int
	body    string
	// sent is in the body of the request that is answered.
	sent string
}

func has(field string) func(map[string]any) bool {
	return func(body map[string]any) bool { return body[field] != nil }
}

func hasRole(role string) func(map[string]any) bool {
	return func(body map[string]any) bool {
		first, _ := body["messages"].([]any)[0].(map[string]any)
		return first["role"] == role
	}
}

func above(field string, most float64) func(map[string]any) bool {
	return func(body map[string]any) bool { n, _ := body[field].(float64); return n > most }
}

func said(message, param, code string) string {
	data, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "param": param, "code": code,
		"type": "invalid_request_error"}})
	return string(data)
}

func schemaForm(form string) func(map[string]any) bool {
	return func(body map[string]any) bool {
		f, _ := body["response_format"].(map[string]any)
		return f["type"] == form
	}
}

func servers() []refusing {
	extra := func(field string) string {
		return `{"detail":[{"type":"extra_forbidden","loc":["body","` + field + `"],"msg":"Extra inputs are not permitted"}]}`
	}
	return []refusing{
		{"OpenAI o1", has("max_tokens"), 400, said("Unsupported parameter: 'max_tokens' is not supported with this model. "+
			"Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter"), `"max_completion_tokens":900`},
		{"a router of OpenAI o1", has("max_tokens"), 400, `{"error":{"message":"[x] [400]: {\"error\":{\"message\":` +
			`\"Unsupported parameter: 'max_tokens' is not supported with this model.\",\"param\":\"max_tokens\"}} (reset)"}}`,
			`"max_completion_tokens":900`},
		{"a strict gateway without limits", func(b map[string]any) bool {
			return b["max_tokens"] != nil || b["max_completion_tokens"] != nil
		}, 400, said("Unknown parameter: max_tokens, max_completion_tokens", "", ""), ``},
		{"Mistral", has("stream_options"), 422, extra("stream_options"), `"stream":true`},
		{"Azure", has("stream_options"), 400, said("Unrecognized request argument supplied: stream_options", "", ""), ``},
		{"a list of pydantic as text", has("stream_options"), 400, said("[{'type': 'extra_forbidden', 'loc': ('body', "+
			"'stream_options'), 'msg': 'Extra inputs are not permitted'}]", "", ""), ``},
		{"Mistral's seed", has("seed"), 422, extra("seed"), ``},
		{"Gemini's seed", has("seed"), 400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name ` +
			`\"seed\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`, ``},
		{"Gemma in vLLM", hasRole("system"), 400, said("System role not supported", "", ""), `"content":"Be brief.\n\nq"`},
		{"Mixtral in vLLM", hasRole("system"), 400,
			said("Conversation roles must alternate user/assistant/user/assistant/...",
				"", ""), `"content":"Be brief.\n\nq"`},
		{"Mistral's template", hasRole("system"), 400, said("Only user and assistant roles are supported!", "", ""), ``},
		{"Gemma at Google", hasRole("system"), 400, `[{"error":{"code":400,"message":"Developer instruction is not enabled ` +
			`for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}]`, ``},
		{"o1-mini", hasRole("system"), 400, said("Unsupported value: 'messages[0].role' does not support 'system' with this "+
			"model.", "messages[0].role", "unsupported_value"), ``},
		{"a model of developers", hasRole("system"), 400, said("Invalid role: system. Use developer instead.", "", ""),
			`"role":"developer"`},
		{"a template in llama.cpp", hasRole("system"), 500, `{"error":{"code":500,` +
			`"message":"System role not supported at row 1","type":"server_error"}}`, ``},
		{"o3 of an organization", has("stream"), 400,
			said("Your organization must be verified to stream this model.", "stream",
				"unsupported_value"), `"stream":false`},
		{"a model without streams", has("stream"), 501, `{"detail":"Streaming is not implemented for this model"}`,
			`"stream":false`},
		{"gpt-5", has("temperature"), 400,
			said("Unsupported value: 'temperature' does not support 0.7 with this model. Only "+
				"the default (1) value is supported.", "temperature", "unsupported_value"), ``},
		{"Kimi", has("temperature"), 400, said("invalid temperature: only 1 is allowed for this model", "", ""), ``},
		{"Claude behind a proxy", has("temperature"), 400, `{"error":{"message":"litellm.BadRequestError: ` +
			`AnthropicException - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"` + "`temperature`" +
			` is deprecated for this model.\"}}"}}`, ``},
		{"top_p beside a temperature", has("top_p"), 400, said("top_p is not supported with this model", "top_p", ""), ``},
		{"an unknown parameter", has("top_p"), 400, said("Unrecognized request argument supplied: top_p", "", ""), ``},
		{"tools", has("tools"), 400, said("small does not support tools", "", ""), ``},
		{"DeepSeek's schema", schemaForm("json_schema"), 400, said("This response_format type is unavailable now", "", ""),
			`"json_object"`},
		{"Groq's schema", schemaForm("json_schema"), 400, said("This model does not support response format `json_schema`. "+
			"See supported models", "response_format", ""), `"json_object"`},
		{"no schema at all", has("response_format"), 400, said("json_schema and json_object are not supported",
			"response_format", ""), ``},
		{"an error in a stream", has("stream_options"), 200,
			`{"error":{"message":"unknown field stream_options","code":400}}`, ``},
		{"several parts", func(b map[string]any) bool {
			return b["seed"] != nil || b["top_p"] != nil || b["temperature"] != nil
		}, 400, said("seed, top_p and temperature are not supported", "", ""), ``},
		{"vLLM with a small model", above("max_tokens", 500), 400,
			said("max_tokens is too large: 900. This model supports at "+
				"most 500 completion tokens, whereas you provided 900.", "max_tokens", ""), `"max_tokens":500`},
		{"a limit without a number", above("max_tokens", 500), 400, said("max_tokens is too large", "max_tokens", ""),
			`"max_tokens":450`},
		{"a limit of the window", above("max_tokens", 800), 400, said("'max_tokens' is too large: 900. This model's maximum "+
			"context length is 850 tokens and your request has 50 input tokens (900 > 850 - 50).", "max_tokens", ""),
			`"max_tokens":7`},
	}
}

// startRefusing starts a server, and returns a function that makes models that ask it.
func startRefusing(t *testing.T, s *refusing, kept model.Findings) (*replyserver.Server, func() *openai.Model) {
	t.Helper()
	srv := replyserver.Start(t, func(r replyserver.Request) []byte {
		var body map[string]any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Error(err)
		}
		if body["stream"] == false {
			delete(body, "stream")
		}
		if s.refused(body) {
			return replyserver.JSON(s.status, s.body)
		}
		return replyserver.JSON(200, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	})
	return srv, func() *openai.Model {
		m, err := openai.New(openai.Config{Model: "small", BaseURL: srv.URL, Findings: kept,
			Params: map[string]json.RawMessage{"top_p": []byte("0.9")}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		return m
	}
}

func fullRequest() *model.Request {
	temperature, seed := 0.7, int64(42)
	return &model.Request{System: "Be brief.", Prompt: "q", Temperature: &temperature, Seed: &seed, MaxOutputTokens: 900,
		Schema: json.RawMessage(closedSchema),
		Tools:  []model.Tool{{Name: "READ", Parameters: json.RawMessage(`{"type":"object"}`)}}}
}

// A part that a server refuses is left out or replaced, at the price of one request each time, and
// later requests of this and of other processes do not have it.
func TestServersRefuseParts(t *testing.T) {
	t.Parallel()
	for _, s := range servers() {
		kept := &memory{}
		srv, connect := startRefusing(t, &s, kept)
		m := connect()
		got, err := m.Generate(t.Context(), fullRequest())
		if err != nil || got.Text != "ok" {
			t.Errorf("%s: %+v, %v", s.name, got, err)
			continue
		}
		all := srv.Requests()
		if len(all) < 2 || len(all) > 4 || !strings.Contains(string(all[len(all)-1].Body), s.sent) {
			t.Errorf("%s: %d requests, the last is %s", s.name, len(all), all[len(all)-1].Body)
		}
		if len(kept.found) != len(all)-1 {
			t.Errorf("%s: %d requests, findings %v", s.name, len(all), kept.found)
		}
		for _, next := range []*openai.Model{m, connect()} {
			if _, err := next.Generate(t.Context(), fullRequest()); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
		if later := len(srv.Requests()) - len(all); later != 2 {
			t.Errorf("%s: %d requests for two further answers", s.name, later)
		}
	}
}

// An error that is no refusal of a part is returned as it is, and nothing is kept of a refusal that
// no answer proves.
func TestErrorsThatRefuseNoPart(t *testing.T) {
	t.Parallel()
	always := func(map[string]any) bool { return true }
	for _, s := range []struct {
		name     string
		status   int
		body     string
		kind     model.Kind
		requests int
	}{
		{"a wrong key", 401, said("Incorrect API key provided", "", "invalid_api_key"), model.KindAuth, 1},
		{"no permission to stream", 403, said("You may not stream", "", ""), model.KindAuth, 1},
		{"an unknown model", 404, said("The model `seed-1` does not exist", "", "model_not_found"), model.KindNotFound, 1},
		{"a rate", 429, said("Rate limit reached for max_tokens", "", ""), model.KindRateLimit, 1},
		{"a text that is too long", 400, said("This model's maximum context length is 100 tokens. However, your messages "+
			"resulted in 900 tokens. Shorten the system message or the tools.", "messages", ""), model.KindTooLong, 1},
		{"a busy server", 503, said("stream_options are fine, but the server is busy", "", ""), model.KindUnavailable, 1},
		{"a filter", 400, said("Your request was rejected by our safety policy", "", ""), model.KindInvalid, 1},
		{"a wrong value of a parameter", 400, said("Invalid value: top_p should be between 0 and 1", "top_p", ""),
			model.KindInvalid, 1},
		{"a temperature that is refused always", 400, said("temperature is odd", "", ""), model.KindInvalid, 2},
		{"limits that are refused always", 400, said("max_tokens is too large", "max_tokens", ""), model.KindInvalid, 3},
	} {
		kept := &memory{}
		srv, connect := startRefusing(t, &refusing{refused: always, status: s.status, body: s.body}, kept)
		_, err := connect().Generate(t.Context(), fullRequest())
		wantKind(t, err, s.kind)
		if n := len(srv.Requests()); n != s.requests || len(kept.found) > 0 {
			t.Errorf("%s: %d requests, want %d; kept %v", s.name, n, s.requests, kept.found)
		}
	}
}

// In mode strict a refused seed, temperature or parameter is an error, whether it is known or not.
func TestExactRequests(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"seed", "temperature", "top_p"} {
		s := &refusing{refused: has(field), status: 400, body: said("Unsupported parameter: "+field, field, "")}
		srv, connect := startRefusing(t, s, nil)
		m := connect()
		exact := fullRequest()
		exact.Exact = true
		_, err := m.Generate(t.Context(), exact)
		if e := wantKind(t, err, model.KindInvalid); !strings.Contains(e.Msg, field) || !strings.Contains(e.Hint, "--mode") {
			t.Errorf("%s: %v, hint %q", field, e, e.Hint)
		}
		if _, err := m.Generate(t.Context(), fullRequest()); err != nil {
			t.Fatal(err)
		}
		before := len(srv.Requests())
		_, err = m.Generate(t.Context(), exact)
		if wantKind(t, err, model.KindInvalid); len(srv.Requests()) != before {
			t.Errorf("%s: a refused request was sent again", field)
		}
	}
}

// What a model at a server refuses is noted at one answer, where the answer is the same without it.
func TestRefusalIsNotedOnce(t *testing.T) {
	t.Parallel()
	s := &refusing{refused: hasRole("system"), status: 400, body: said("System role not supported", "", "")}
	_, connect := startRefusing(t, s, nil)
	m := connect()
	for i, want := range []int{1, 0} {
		got, err := m.Generate(t.Context(), fullRequest())
		if err != nil || len(got.Notes) != want {
			t.Errorf("answer %d: %+v, %v, want %d notes", i, got, err, want)
		}
	}
}

// Parameters that the protocol has are not overwritten.
func TestParamsAreChecked(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"model": `"x"`, "messages": `[]`, "seed": `1`, "top_p": `0.9.9`} {
		_, err := openai.New(openai.Config{Model: "m", BaseURL: "http://localhost/v1",
			Params: map[string]json.RawMessage{name: []byte(value)}})
		if e := wantKind(t, err, model.KindInvalid); !strings.Contains(e.Error(), name) {
			t.Errorf("%s: %v", name, e)
		}
	}
}
