package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/anthropic"
)

// searches is a request with two tools.
func searches() *model.Request {
	return &model.Request{Prompt: "q", Tools: []model.Tool{
		{Name: "SEARCH", Description: "Searches.", Parameters: json.RawMessage(`{"type":"object"}`)},
		{Name: "READ", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}}}
}

const sentTools = `"tools":[{"description":"Searches.","input_schema":{"type":"object"},"name":"SEARCH"},` +
	`{"description":"Reads.","input_schema":{"type":"object"},"name":"READ"}],"stream":true`

// Tools are sent without a choice, not when that is switched off, and not again to a server that
// refuses them.
func TestToolsAreSent(t *testing.T) {
	t.Parallel()
	answer := stream(start, piece, ended, stop)
	for name, tt := range map[string]struct {
		off      bool
		h        http.HandlerFunc
		requests int
		sent     bool
	}{
		"sent":    {false, answer, 2, true},
		"off":     {true, answer, 2, false},
		"refused": {false, refusing("input_schema", "tools: Extra inputs are not permitted", answer), 3, false},
	} {
		rec := &recorder{handler: tt.h}
		m := connect(t, rec, func(c *anthropic.Config) { c.NoTools = tt.off })
		for range 2 {
			if got, err := m.Generate(t.Context(), searches()); err != nil || got.Text != "part" || len(got.Notes) > 0 {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
		}
		last := rec.bodies[len(rec.bodies)-1]
		if len(rec.bodies) != tt.requests || strings.Contains(last, sentTools) != tt.sent ||
			strings.Contains(last, "tool") != tt.sent {
			t.Errorf("%s: %d requests, the last one %s", name, len(rec.bodies), last)
		}
	}
}

// Uses of tools are lines of the text: streamed in parts, in parallel, with arguments that are
// not JSON, and without streaming.
func TestToolUses(t *testing.T) {
	t.Parallel()
	begin := func(index, name string) string {
		return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"toolu_` + index +
			`","name":"` + name + `","input":{}}}`
	}
	input := func(index, part string) string {
		text, _ := json.Marshal(part)
		return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":` +
			string(text) + `}}`
	}
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"parallel": {stream(start, piece, begin("1", "SEARCH"), input("1", ""), input("1", `{"query": `), input("1", `"x"}`),
			begin("2", "READ"), input("2", `{"file":"a"}`), ended, stop),
			"part\nSEARCH {\"query\":\"x\"}\nREAD {\"file\":\"a\"}"},
		"no arguments": {stream(start, begin("0", "SEARCH"), ended, stop), "SEARCH {}"},
		"malformed": {stream(start, begin("0", "SEARCH"), input("0", "{\"query\":\n\"x"), ended, stop),
			"SEARCH {\"query\": \"x"},
		"whole": {says("application/json", `{"type":"message","content":[{"type":"text","text":"I look."},`+
			`{"type":"tool_use","id":"a","name":"SEARCH","input":{"query": "x"}},`+
			`{"type":"tool_use","id":"b","name":"SEARCH","input":{"query": "y"}}],"stop_reason":"tool_use"}`),
			"I look.\nSEARCH {\"query\":\"x\"}\nSEARCH {\"query\":\"y\"}"},
	} {
		got, err := connect(t, tt.h).Generate(t.Context(), searches())
		if err != nil || got.Text != tt.want {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, tt.want)
		}
	}
}
