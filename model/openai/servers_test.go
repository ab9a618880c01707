package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
)

// recorder answers with one handler and keeps the bodies of requests.
type recorder struct {
	handler http.HandlerFunc

	mu     sync.Mutex // guards bodies
	bodies []map[string]any
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(data, &body)
	rec.mu.Lock()
	rec.bodies = append(rec.bodies, body)
	rec.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	rec.handler(w, r)
}

// status is a server that answers with a status and a body.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const (
	okEvent      = `{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`
	closedSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	openSchema   = `{"type":"object","properties":{"n":{"type":"integer"}}}`
)

// The schema of an answer is sent, strictly where OpenAI can hold the answer to it strictly,
// and not at all when that is switched off.
func TestSchemaIsSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		schema string
		off    bool
		want   any
	}{
		{closedSchema, false, true}, {openSchema, false, false}, {`{"anyOf":[{"type":"object"}]}`, false, false},
		{closedSchema, true, nil}, {"", false, nil},
	} {
		rec := &recorder{handler: stream(okEvent)}
		m := connect(t, rec, func(c *openai.Config) { c.NoSchema = tt.off })
		req := &model.Request{Prompt: "q"}
		if tt.schema != "" {
			req.Schema = json.RawMessage(tt.schema)
		}
		if _, err := m.Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		var want any
		if tt.want != nil {
			var schema any
			_ = json.Unmarshal([]byte(tt.schema), &schema)
			want = map[string]any{"type": "json_schema",
				"json_schema": map[string]any{"name": "answer", "strict": tt.want, "schema": schema}}
		}
		if diff := cmp.Diff(want, rec.bodies[0]["response_format"]); diff != "" {
			t.Errorf("schema %s: %s", tt.schema, diff)
		}
	}
}

// A server that refuses a schema is asked again without, and never with that one again. It
// gets another schema.
func TestSchemaRefused(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		`{"error":{"message":"Invalid schema for response_format 'answer': In context=(), 'minLength' is not permitted."}}`,
		`{"object":"error","message":"Grammar error: unimplemented keys","type":"BadRequestError","code":400}`,
		`[{"error":{"code":400,"message":"Unknown name \"$schema\" at 'generation_config.response_schema'",` +
			`"status":"INVALID_ARGUMENT"}}]`,
	} {
		rec := new(recorder)
		rec.handler = func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "response_format") {
				status(http.StatusBadRequest, fault)(w, r)
				return
			}
			stream(okEvent)(w, r)
		}
		m := connect(t, rec)
		sent := 0
		req := &model.Request{Prompt: "q", Schema: json.RawMessage(closedSchema)}
		for range 2 {
			got, err := m.Generate(t.Context(), req)
			if err != nil || got.Text != "ok" || !slices.Equal(got.Notes, []string{model.NoteNoSchema}) {
				t.Fatalf("%s: %+v, %v", fault, got, err)
			}
		}
		for _, body := range rec.bodies {
			if body["response_format"] != nil {
				sent++
			}
		}
		if sent != 1 || len(rec.bodies) != 3 {
			t.Errorf("%s: %d requests, %d with the schema, want 3 and 1", fault, len(rec.bodies), sent)
		}
		req.Schema = json.RawMessage(openSchema)
		if _, err := m.Generate(t.Context(), req); err != nil || rec.bodies[3]["response_format"] == nil {
			t.Errorf("%s: another schema is not sent: %v", fault, err)
		}
	}
}

// Another refusal is not taken for one of the schema.
func TestSchemaKept(t *testing.T) {
	t.Parallel()
	rec := &recorder{handler: status(http.StatusBadRequest, `{"error":{"message":"This model's maximum context length is `+
		`1024 tokens; shorten the messages or the schema."}}`)}
	_, err := connect(t, rec).Generate(t.Context(), &model.Request{Prompt: "q", Schema: json.RawMessage(closedSchema)})
	if wantKind(t, err, model.KindTooLong); len(rec.bodies) != 1 {
		t.Errorf("%d requests, want 1", len(rec.bodies))
	}
}

// Gemini describes errors as other services of Google do: in a list, a wrong key with a
// status of 400, and the time to wait in the body.
func TestGemini(t *testing.T) {
	t.Parallel()
	_, err := ask(t, connect(t, status(http.StatusBadRequest, `[{"error":{"code":400,"message":"API key not valid. Please `+
		`pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",`+
		`"reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]`)))
	if e := wantKind(t, err, model.KindAuth); !strings.Contains(e.Hint, "OPENAI_API_KEY") {
		t.Errorf("hint %q", e.Hint)
	}
	_, err = ask(t, connect(t, status(http.StatusTooManyRequests, `[{"error":{"code":429,"message":"You exceeded your `+
		`current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure",`+
		`"violations":[]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`)))
	if e := wantKind(t, err, model.KindRateLimit); e.RetryAfter != 34500*time.Millisecond {
		t.Errorf("wait %s, want 34.5s", e.RetryAfter)
	}
	_, err = ask(t, connect(t, status(http.StatusBadRequest, `[{"error":{"code":400,"message":"The input token count `+
		`(2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`)))
	wantKind(t, err, model.KindTooLong)
	got, err := ask(t, connect(t, stream(
		`{"choices":[{"delta":{"content":"an ","role":"assistant"},"index":0}],"created":1,"id":"x","model":"gemini-2.5-flash",`+
			`"object":"chat.completion.chunk"}`,
		`{"choices":[{"delta":{"content":"answer","role":"assistant"},"finish_reason":"stop","index":0}],`+
			`"model":"gemini-2.5-flash","usage":{"completion_tokens":2,"prompt_tokens":7,"total_tokens":40}}`)))
	if err != nil || got.Text != "an answer" || got.Usage != (model.Usage{InputTokens: 7, OutputTokens: 2}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// vLLM refuses a request that is too long in several forms of several versions.
func TestVLLM(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"object":"error","message":"This model's maximum context length is 1024 tokens. However, you requested 1500 tokens ` +
			`(1015 in the messages, 485 in the completion).","type":"BadRequestError","param":null,"code":400}`,
		`{"error":{"message":"You passed 1015 input tokens and requested 10 output tokens. However, the model's context ` +
			`length is only 1024 tokens.","type":"BadRequestError","param":"input_tokens","code":400}}`,
	} {
		_, err := ask(t, connect(t, status(http.StatusBadRequest, body)))
		if e := wantKind(t, err, model.KindTooLong); e.Hint != model.HintTooLong {
			t.Errorf("hint %q", e.Hint)
		}
	}
	_, err := ask(t, connect(t, status(http.StatusNotFound,
		`{"object":"error","message":"The model `+"`x`"+` does not exist.","type":"NotFoundError","code":404}`)))
	wantKind(t, err, model.KindNotFound)
}

// Ollama answers from the part of a request that fits its context, and counts the tokens of
// that part. Its answers to shorter requests have no note.
func TestOllamaCutsRequests(t *testing.T) {
	t.Parallel()
	handler := stream(`{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"llama3","choices":[{"index":0,`+
		`"delta":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`,
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"llama3","choices":[],"usage":{"prompt_tokens":4096,`+
			`"completion_tokens":1,"total_tokens":4097}}`)
	for words, want := range map[int]bool{4000: false, 5000: true} {
		got, err := connect(t, handler).Generate(t.Context(), &model.Request{Prompt: "q", Documents: []model.Document{
			{File: "a", StartLine: 1, Text: strings.Repeat("word ", words)}}})
		if err != nil || slices.Contains(got.Notes, model.NoteCutRequest) != want {
			t.Errorf("%d words: %+v, %v, want the note %t", words, got, err, want)
		}
	}
}

// Usage that cannot be is estimated, as usage that is missing.
func TestImplausibleUsage(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{`{"prompt_tokens":-1,"completion_tokens":-1}`,
		`{"prompt_tokens":1000000000000000000,"completion_tokens":1}`} {
		got, err := ask(t, connect(t, says("application/json",
			`{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":`+usage+`}`)))
		if err != nil || !got.Usage.Estimated || got.Usage.InputTokens <= 0 || got.Usage.InputTokens > 1000 {
			t.Errorf("%s: %+v, %v", usage, got, err)
		}
	}
}

// A conversation is sent as messages by turns.
func TestConversation(t *testing.T) {
	t.Parallel()
	rec := &recorder{handler: stream(`{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`)}
	_, err := connect(t, rec).Generate(t.Context(), &model.Request{System: "s", Prompt: "a",
		Messages: []model.Message{{Reply: true, Text: "b"}, {Text: "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := "[map[content:s role:system] map[content:a role:user] map[content:b role:assistant] map[content:c role:user]]"
	if got := fmt.Sprint(rec.bodies[0]["messages"]); got != want {
		t.Errorf("messages %s, want %s", got, want)
	}
}
