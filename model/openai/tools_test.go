package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
)

// searches is a request with two tools.
func searches() *model.Request {
	return &model.Request{Prompt: "q", Tools: []model.Tool{
		{Name: "SEARCH", Description: "Searches.", Parameters: json.RawMessage(`{"type":"object"}`)},
		{Name: "READ", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}}}
}

// delta is an event with parts of calls.
func delta(calls string) string { return `{"choices":[{"delta":{"tool_calls":` + calls + `}}]}` }

const calledEvent = `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`

// Tools are sent in the protocol's form and in no other, and not when that is switched off.
func TestToolsAreSent(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		rec := &recorder{handler: stream(okEvent)}
		m := connect(t, rec, func(c *openai.Config) { c.NoTools = off })
		if got, err := m.Generate(t.Context(), searches()); err != nil || got.Text != "ok" {
			t.Fatalf("%+v, %v", got, err)
		}
		var want any
		if !off {
			function := func(name, does string) any {
				return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": does,
					"parameters": map[string]any{"type": "object"}}}
			}
			want = []any{function("SEARCH", "Searches."), function("READ", "Reads.")}
		}
		if diff := cmp.Diff(want, rec.bodies[0]["tools"]); diff != "" || rec.bodies[0]["tool_choice"] != nil {
			t.Errorf("off %v: %s", off, diff)
		}
	}
}

// Calls are lines of the text: in parts, in parallel, with indexes that some servers give or
// leave out, with arguments that are objects or not JSON, and without streaming.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"parts": {stream(`{"choices":[{"delta":{"content":"I look."}}]}`,
			delta(`[{"index":0,"id":"c1","type":"function","function":{"name":"SEARCH","arguments":""}}]`),
			delta(`[{"index":0,"function":{"arguments":"{\"query\":"}}]`), delta(`[{"index":0,"function":{"arguments":" \"x\"}"}}]`),
			delta(`[{"index":1,"id":"c2","function":{"name":"READ","arguments":"{}"}}]`), calledEvent),
			"I look.\nSEARCH {\"query\":\"x\"}\nREAD {}"},
		"interleaved": {stream(delta(`[{"index":0,"id":"a","function":{"name":"SEARCH","arguments":"{"}},`+
			`{"index":1,"id":"b","function":{"name":"READ","arguments":"{"}}]`),
			delta(`[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"}"}}]`), calledEvent),
			"SEARCH {}\nREAD {}"},
		"one index, other IDs": {stream(delta(`[{"index":0,"id":"a","function":{"name":"SEARCH","arguments":"{\"query\":\"x\"}"}}]`),
			delta(`[{"index":0,"id":"b","function":{"name":"SEARCH","arguments":"{\"query\":\"y\"}"}}]`), calledEvent),
			"SEARCH {\"query\":\"x\"}\nSEARCH {\"query\":\"y\"}"},
		"no index, no ID": {stream(delta(`[{"function":{"name":"SEARCH","arguments":"{\"query\":\"x\"}"}},`+
			`{"function":{"name":"READ","arguments":{"file": "a"}}}]`), calledEvent),
			"SEARCH {\"query\":\"x\"}\nREAD {\"file\":\"a\"}"},
		"repeated name and ID": {stream(delta(`[{"index":0,"id":"a","function":{"name":"SEARCH","arguments":"{"}}]`),
			delta(`[{"index":0,"id":"a","function":{"name":"SEARCH","arguments":"}"}}]`), calledEvent), "SEARCH {}"},
		"malformed": {stream(delta(`[{"index":0,"id":"a","function":{"name":"SEARCH","arguments":"{\"query\":\n\"x"}}]`),
			`{"choices":[{"delta":{},"finish_reason":"length"}]}`), "SEARCH {\"query\": \"x"},
		"whole": {says("application/json", `{"choices":[{"message":{"content":null,"tool_calls":[`+
			`{"id":"","function":{"name":"SEARCH","arguments":"{\"query\": \"x\"}"}},`+
			`{"id":"","function":{"name":"READ","arguments":null}}]},"finish_reason":"tool_calls"}]}`),
			"SEARCH {\"query\":\"x\"}\nREAD {}"},
		"none": {stream(`{"choices":[{"delta":{"content":"SEARCH x","tool_calls":null},"finish_reason":"stop"}]}`), "SEARCH x"},
	} {
		got, err := connect(t, tt.h).Generate(t.Context(), searches())
		if err != nil || got.Text != tt.want {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, tt.want)
		}
	}
	// Calls in a form that is not the protocol's, and calls that were not asked for, are not read.
	for _, req := range []*model.Request{searches(), {Prompt: "q"}} {
		got, err := connect(t, stream(delta(`"?"`), okEvent)).Generate(t.Context(), req)
		if err != nil || got.Text != "ok" {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// The limit of an answer holds for the arguments of calls.
func TestToolCallsAreLimited(t *testing.T) {
	t.Parallel()
	var events []string
	for i := range 3000 {
		events = append(events, delta(fmt.Sprintf(`[{"index":%d,"id":"c%d","function":{"name":"SEARCH","arguments":"{}"}}]`, i, i)))
	}
	req := searches()
	req.MaxOutputTokens = 100
	got, err := connect(t, stream(append(events, calledEvent)...)).Generate(t.Context(), req)
	if err != nil || len(got.Text) > model.MostAnswerBytes(100) || !strings.HasPrefix(got.Text, "SEARCH {}\nSEARCH {}") ||
		len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = connect(t, stream(append(events, calledEvent)...), func(c *openai.Config) { c.MaxResponseBytes = 500 }).
		Generate(t.Context(), searches())
	wantKind(t, err, model.KindTooLarge)
}

// A server that refuses tools is asked again without, and gets none later. Each request is
// announced.
func TestToolsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code  int
		fault string
	}{
		{400, `{"error":{"message":"stablelm2:latest does not support tools","type":"api_error","param":null,"code":null}}`},
		{400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be ` +
			`set","type":"BadRequestError","param":null,"code":400}`},
		{500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`},
		{404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`},
		{400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at ` +
			`'tools[0].function_declarations[0].parameters': Cannot find field.","status":"INVALID_ARGUMENT"}}]`},
	} {
		rec := new(recorder)
		rec.handler = func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"tools"`) {
				status(tt.code, tt.fault)(w, r)
				return
			}
			stream(okEvent)(w, r)
		}
		m := connect(t, rec)
		for range 2 {
			if got, err := m.Generate(t.Context(), searches()); err != nil || got.Text != "ok" || len(got.Notes) > 0 {
				t.Fatalf("%s: %+v, %v", tt.fault, got, err)
			}
		}
		if len(rec.bodies) != 3 || rec.bodies[0]["tools"] == nil || rec.bodies[2]["tools"] != nil {
			t.Errorf("%s: %d requests", tt.fault, len(rec.bodies))
		}
	}
	for _, other := range []string{`{"error":{"message":"This model's maximum context length is 1024 tokens with tools."}}`,
		`{"error":{"message":"messages: wrong role"}}`} {
		rec := &recorder{handler: status(http.StatusBadRequest, other)}
		if _, err := connect(t, rec).Generate(t.Context(), searches()); err == nil || len(rec.bodies) != 1 {
			t.Errorf("%s: %d requests, %v", other, len(rec.bodies), err)
		}
	}
}
