package retrieve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/retrieve"
)

// Calls of tools are the requests that their lines of text are.
func TestParseCalls(t *testing.T) {
	t.Parallel()
	limits := retrieve.DefaultLimits()
	requests := func(r ...retrieve.Request) retrieve.Reply { return retrieve.Reply{Requests: r} }
	search := retrieve.Request{Kind: retrieve.Search, Text: "lease renewal"}
	problem := func(text string) retrieve.Reply { return retrieve.Reply{Problem: text} }
	for text, want := range map[string]retrieve.Reply{
		`SEARCH {"query":"lease\n renewal"}`:                     requests(search),
		"I look.\nSEARCH {\"query\":\"lease renewal\"}\nLIST {}": requests(search, retrieve.Request{Kind: retrieve.List}),
		`LIST {"folder":"src/**/*.go"}`:                          requests(retrieve.Request{Kind: retrieve.List, Text: "src/**/*.go"}),
		`READ {"file":"a b/c.go","first":10,"last":20}`: requests(retrieve.Request{Kind: retrieve.Read, Text: "a b/c.go",
			Start: 10, End: 20}),
		`READ {"file":"c.go","first":"10"}`:         requests(retrieve.Request{Kind: retrieve.Read, Text: "c.go", Start: 10}),
		`READ {"file":"c.go","last":20.0}`:          requests(retrieve.Request{Kind: retrieve.Read, Text: "c.go", Start: 1, End: 20}),
		`READ {"file":"c.go:10-20"}`:                requests(retrieve.Request{Kind: retrieve.Read, Text: "c.go", Start: 10, End: 20}),
		`READ {"file":"c.go","first":-3,"last":{}}`: requests(retrieve.Request{Kind: retrieve.Read, Text: "c.go"}),
		`SEARCH {"name": "x"}`:                      requests(retrieve.Request{Kind: retrieve.Search, Text: `{"name": "x"}`}),
		`SEARCH {x} y`:                              requests(retrieve.Request{Kind: retrieve.Search, Text: "{x} y"}),
		`SEARCH {"query":"a`:                        problem(`the arguments of SEARCH are not JSON of its form: {"query":"a`),
		`SEARCH {"query":7}`:                        problem(`the arguments of SEARCH are not JSON of its form: {"query":7}`),
		`SEARCH {}`:                                 problem("SEARCH has no argument"),
		`SEARCH {"query":""}`:                       problem("SEARCH has no argument; write for example: SEARCH lease renewal"),
		`SEARCH {"query":"a\u0000b"}`:               problem("SEARCH has a NUL byte"),
		`READ {"first":1}`:                          problem("READ has no argument"),
		`READ {"file":"a\nb"}`:                      problem("READ has a line break in its argument"),
		`grep {"pattern":"x"}`:                      problem(`there is no tool "grep"`),
		"grep {\"pattern\":\"x\"}\nSEARCH {\"query\":\"lease renewal\"}": {Problem: `there is no tool "grep"`,
			Requests: []retrieve.Request{search}},
		"ANSWER\nIt is.\n\nSEARCH {\"query\":\"x\"}\nLIST {}": {Answered: true, Answer: "It is."},
		"SEARCH {\"query\":\"lease renewal\"}\nANSWER\nIt is.": {Early: true, Answer: "It is.",
			Requests: []retrieve.Request{search}},
	} {
		if diff := cmp.Diff(want, limits.Parse(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// The parameters of the tools are JSON Schemas of objects, and a call with each is a request.
func TestTools(t *testing.T) {
	t.Parallel()
	limits := retrieve.DefaultLimits()
	for _, tool := range limits.Tools() {
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type string }
			Required             []string
			AdditionalProperties any
		}
		if err := json.Unmarshal(tool.Parameters, &schema); err != nil || schema.Type != "object" ||
			schema.AdditionalProperties != nil { // Gemini refuses it
			t.Fatalf("%s: %v, %s", tool.Name, err, tool.Parameters)
		}
		arguments := make(map[string]any)
		for name, p := range schema.Properties {
			arguments[name] = map[string]any{"string": "text", "integer": 7}[p.Type]
		}
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		r := limits.Parse(model.ToolLine(tool.Name, string(raw)))
		if len(r.Requests) != 1 || r.Requests[0].Kind != tool.Name || r.Requests[0].Text != "text" ||
			tool.Name == retrieve.Read && (r.Requests[0].Start != 7 || r.Requests[0].End != 7) {
			t.Errorf("%s with %s is %+v", tool.Name, raw, r)
		}
	}
}

// Any arguments: a call is a request within the limits or a problem that says what is wrong, and
// the request as text is one line.
func FuzzCalls(f *testing.F) {
	f.Add("SEARCH", `{"query":"x"}`)
	f.Add("READ", `{"file":"a","first":1e400,"last":"x"}`)
	f.Add("LIST", `{"folder":"\ud800"}`)
	f.Add("SEARCH", `{"query":"{\"query\":1}"}`)
	limits := retrieve.DefaultLimits()
	f.Fuzz(func(t *testing.T, name, arguments string) {
		r := limits.Parse(model.ToolLine(name, arguments))
		if len(r.Requests) > 1 || len(r.Requests) == 0 && r.Problem == "" && !r.Answered && !r.Early {
			t.Fatalf("%q %q: %+v", name, arguments, r)
		}
		for _, req := range r.Requests {
			if strings.ContainsAny(req.String(), "\r\n\x00") || req.Start < 0 || req.End < 0 || req.Kind != retrieve.List &&
				req.Text == "" || req.Kind == retrieve.Search && len(req.Text) > limits.QueryBytes {
				t.Fatalf("%q %q: %+v", name, arguments, req)
			}
		}
	})
}
