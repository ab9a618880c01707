package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/anthropic"
)

// recorder answers with one handler and keeps the bodies of requests.
type recorder struct {
	handler http.HandlerFunc

	mu     sync.Mutex // guards bodies
	bodies []string
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	rec.mu.Lock()
	rec.bodies = append(rec.bodies, string(data))
	rec.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	rec.handler(w, r)
}

// refusing refuses requests that contain a word.
func refusing(word, why string, otherwise http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), word) {
			otherwise(w, r)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"`+why+`"}}`)
	}
}

const schema = `{"type":"object","properties":{"n":{"type":"integer"}}}`

// An answer is held to a schema by a tool whose input it is, streamed or not.
func TestSchema(t *testing.T) {
	t.Parallel()
	const open = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer",` +
		`"input":{}}}`
	const first = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}`
	const second = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":": 7}"}}`
	const used = `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`
	for name, h := range map[string]http.HandlerFunc{
		"streamed": stream(start, open, first, second, used, stop),
		"whole": says("application/json", `{"type":"message","model":"m","stop_reason":"tool_use","content":[{"type":"tool_use",`+
			`"id":"t","name":"answer","input":{"n": 7}}]}`),
	} {
		rec := &recorder{handler: h}
		got, err := connect(t, rec).Generate(t.Context(), &model.Request{Prompt: "q", Schema: json.RawMessage(schema)})
		if err != nil || got.Text != `{"n": 7}` {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		want := `"tools":[{"description":"Takes the answer.","input_schema":` + schema +
			`,"name":"answer"}],"tool_choice":{"name":"answer","type":"tool"}`
		if !strings.Contains(rec.bodies[0], want) {
			t.Errorf("%s: body %s, want in it %s", name, rec.bodies[0], want)
		}
	}
}

// What is no schema of an object, refused, or switched off is left to the instructions.
func TestSchemaNotSent(t *testing.T) {
	t.Parallel()
	answer := stream(start, piece, ended, stop)
	for name, tt := range map[string]struct {
		schema   string
		off      bool
		h        http.HandlerFunc
		requests int
	}{
		"list":    {`{"type":"array"}`, false, answer, 2},
		"off":     {schema, true, answer, 2},
		"refused": {schema, false, refusing("input_schema", "tools.0.custom.input_schema: invalid", answer), 3},
	} {
		rec := &recorder{handler: tt.h}
		m := connect(t, rec, func(c *anthropic.Config) { c.NoSchema = tt.off })
		for range 2 {
			got, err := m.Generate(t.Context(), &model.Request{Prompt: "q", Schema: json.RawMessage(tt.schema)})
			if err != nil || got.Text != "part" {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
		}
		last := rec.bodies[len(rec.bodies)-1]
		if len(rec.bodies) != tt.requests || strings.Contains(last, "tool") {
			t.Errorf("%s: %d requests, the last one %s", name, len(rec.bodies), last)
		}
	}
}

// The provider keeps a prompt up to the last shared place, and finds what it kept at the
// places before.
func TestCaching(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 256)
	answer := stream(start, piece, ended, stop)
	block := func(text string, kept bool) map[string]any {
		b := map[string]any{"type": "text", "text": text}
		if kept {
			b["cache_control"] = map[string]any{"type": "ephemeral"}
		}
		return b
	}
	for name, tt := range map[string]struct {
		prompt string
		shared []int
		off    bool
		h      http.HandlerFunc
		want   []any
	}{
		"two places": {long + "next" + "last", []int{len(long), len(long) + 4}, false, answer,
			[]any{block(long, false), block("next", true), block("last", false)}},
		"to the end": {long, []int{len(long)}, false, answer, []any{block(long, true)}},
		"short":      {"short", []int{5}, false, answer, []any{block("short", false)}},
		"off":        {long, []int{len(long)}, true, answer, []any{block(long, false)}},
		"refused": {long, []int{len(long)}, false, refusing("cache_control", "cache_control: not supported", answer),
			[]any{block(long, false)}},
	} {
		rec := &recorder{handler: tt.h}
		m := connect(t, rec, func(c *anthropic.Config) { c.NoCaching = tt.off })
		if _, err := m.Generate(t.Context(), &model.Request{Prompt: tt.prompt, Shared: tt.shared}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var body struct{ Messages []struct{ Content []any } }
		if err := json.Unmarshal([]byte(rec.bodies[len(rec.bodies)-1]), &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, body.Messages[0].Content); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A conversation is sent as messages by turns, and the provider is asked to keep all of it.
func TestConversation(t *testing.T) {
	t.Parallel()
	rec := &recorder{handler: stream(start, piece, ended, stop)}
	first := strings.Repeat("a", 5000)
	_, err := connect(t, rec).Generate(t.Context(), &model.Request{System: "s", Prompt: first, Shared: []int{len(first)},
		Messages: []model.Message{{Reply: true, Text: "b"}, {Text: "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `"messages":[{"content":[{"text":"` + first + `","type":"text","cache_control":{"type":"ephemeral"}}],` +
		`"role":"user"},{"content":[{"text":"b","type":"text"}],"role":"assistant"},{"content":[{"text":"c","type":"text",` +
		`"cache_control":{"type":"ephemeral"}}],"role":"user"}]`
	if !strings.Contains(rec.bodies[0], want) {
		t.Errorf("body %s, want in it %s", rec.bodies[0], want)
	}
}
