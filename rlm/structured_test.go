package rlm_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/openai"
	"github.com/perdure/perdure/rlm"
)

const citySchema = `{"type":"object","required":["city","people"],"additionalProperties":false,
	"properties":{"city":{"type":"string"},"people":{"type":"integer","minimum":1}}}`

func structuredOf(t *testing.T, root *perdure.Task) string {
	t.Helper()
	return string(data(t, root).Structured)
}

// TestStructuredAnswerIsCorrected: what is wrong goes back to the model, twice
// at most; the answer is the JSON value alone.
func TestStructuredAnswerIsCorrected(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '/people: minimum: got 0, want at least 1', text: "Sorry!\n\n`+
		"```json\\n{\\\"city\\\": \\\"Paris\\\",\\n \\\"people\\\": 2000000}\\n```"+`\nAnything else?"}
  - {match: 'the reply contains no JSON', text: '{"city":"Paris","people":0}'}
  - {text: 'Paris has two million people.'}`)
	b := newBench(t, m)
	tree := b.launch("Which city?", "", M{"model": "openai:m", "schema": json.RawMessage(citySchema)})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Attempts != 1 {
		t.Fatalf("tree is %s after %d attempts: %+v", got.State, root.Attempts, root.Error)
	}
	want := `{"city":"Paris","people":2000000}`
	if s := structuredOf(t, &root); s != want || root.Result != want {
		t.Errorf("structured %q, text %q, want %q", s, root.Result, want)
	}
	b.asks(server, tree.ID, 3)
}

func TestStructuredAnswerThatStaysWrong(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies: [{text: '{"city":7,"{{n}}":1}', repeat: -1}]`)
	b := newBench(t, m)
	tree := b.launch("Which city?", "", M{"model": "openai:m", "schema": json.RawMessage(citySchema)})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindSchema || root.Attempts != 1 {
		t.Fatalf("tree is %s after %d attempts: %+v", got.State, root.Attempts, root.Error)
	}
	for _, want := range []string{"after 2 corrections", "/city: got number, want string", "missing property 'people'"} {
		if !strings.Contains(root.Error.Message, want) {
			t.Errorf("it does not tell %q: %s", want, root.Error.Message)
		}
	}
	b.asks(server, tree.ID, 3)
	calls, err := b.store.Calls(t.Context(), tree.Root)
	b.ok(err)
	for i, c := range calls {
		if c.Position != i || c.State != perdure.CallCompleted || !strings.HasPrefix(c.Response, `{"city":7`) {
			t.Errorf("call %d is %+v", i, c)
		}
	}
}

// TestStructuredResultOfParts: the parts answer in text, and one call more makes
// the structured result of what they found.
func TestStructuredResultOfParts(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: 'what was found(?s:.*)part 1\s', text: '{"city":"Rome","people":3}'}
  - {match: 'line 0*(\d+) (?s:.*)combined into JSON', text: 'part {{1}}', repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(300)})
	tree := b.launch("Which city?", id, M{"model": "openai:m", "schema": json.RawMessage(citySchema), "chunk_tokens": 1000,
		"overlap_tokens": -1, "max_children": 2})
	got, root := b.finish(tree.ID, 2)
	if got.State != perdure.Completed || structuredOf(t, &root) != `{"city":"Rome","people":3}` {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Data, root.Error)
	}
	b.asks(server, tree.ID, len(b.leaves(tree.ID))+1)
}

// TestStructuredBatch: in a batch each file has a result of its own.
// Parts that answer in JSON of the schema are combined, too: the answer of one is not that of
// all.
func TestStructuredPartsAreCombined(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: 'what was found', text: '{"city":"all","people":9}'}
  - {match: 'line 0 ', text: '{"city":"first","people":1}'}
  - {text: 'It also has {"city":"another","people":{{n}}} in it.', repeat: -1}`)
	b := newBench(t, m)
	tree := b.launch("Which city?", b.put(file{"f", numbered(300)}), M{"model": "openai:m", "chunk_tokens": 1000,
		"schema": json.RawMessage(citySchema)})
	got, root := b.finish(tree.ID, 1)
	if s := structuredOf(t, &root); got.State != perdure.Completed || s != `{"city":"all","people":9}` {
		t.Errorf("tree is %s, structured %q", got.State, s)
	}
	if n := server.Ledger().Totals().Started; n != len(b.leaves(tree.ID))+1 {
		t.Errorf("%d requests for %d parts", n, len(b.leaves(tree.ID)))
	}
}

func TestStructuredBatch(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: 'lives in (\w+)(?s:.*)last reply', text: '{"city":"{{1}}","people":1}', repeat: -1}
  - {match: 'lives in Oslo', text: '{"city":"Oslo"}', repeat: -1}
  - {match: 'lives in (\w+)', text: '{"city":"{{1}}","people":2}', repeat: -1}`)
	b := newBench(t, m)
	id := b.put(file{"b.txt", "Ann lives in Rome\n"}, file{"a.txt", "Bo lives in Oslo\n"})
	tree := b.launch("Where in {file}?", id, M{"model": "openai:m", "batch": true, "schema": json.RawMessage(citySchema)})
	got, root := b.finish(tree.ID, 2)
	want := `{"b.txt":{"city":"Rome","people":2},"a.txt":{"city":"Oslo","people":1}}`
	if got.State != perdure.Completed {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	if diff := cmp.Diff(want, structuredOf(t, &root)); diff != "" {
		t.Error(diff)
	}
	b.asks(server, tree.ID, 3)
}

func TestSchemasThatAreNone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, schema string
		want         []string
	}{
		{"a list", `[1]`, []string{"schema: it is not a JSON object"}},
		{"text", `"object"`, []string{"schema: it is not a JSON object"}},
		{"unknown type", `{"type":"strnig"}`, []string{"schema: it is not a JSON Schema: /type"}},
		{"wrong keyword", `{"type":"object","properties":{"a":{"minimum":"x"}}}`,
			[]string{"/properties/a/minimum", "want number"}},
		{"required is not a list", `{"required":"a"}`, []string{"/required"}},
		{"pattern", `{"pattern":"("}`, []string{"schema: ", "("}},
		{"another file", `{"$ref":"other.json"}`, []string{"other.json", "$defs"}},
		{"the network", `{"$ref":"https://example.com/x.json"}`, []string{"https://example.com/x.json", "$defs"}},
		{"no such place", `{"$ref":"#/$defs/x"}`, []string{"#/$defs/x"}},
		{"too long", `{"title":"` + strings.Repeat("x", 200_000) + `"}`, []string{"200012 bytes, the limit is 131072"}},
	}
	for _, tt := range tests {
		_, err := rlm.ParseConfig(json.RawMessage(`{"model":"openai:x","schema":` + tt.schema + `}`))
		if err == nil {
			t.Errorf("%s: it was accepted", tt.name)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: it does not tell %q: %v", tt.name, want, err)
			}
		}
		if strings.Contains(err.Error(), "schema:///result") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: it is not for people: %v", tt.name, err)
		}
	}
}

func TestSchemaNeedsAModelThatWrites(t *testing.T) {
	t.Parallel()
	_, err := rlm.ParseConfig(json.RawMessage(`{"schema":{}}`))
	if err == nil || !strings.Contains(err.Error(), "cannot write JSON") {
		t.Errorf("error is %v", err)
	}
	if _, err := rlm.ParseConfig(json.RawMessage(`{"schema":null}`)); err != nil {
		t.Errorf("no schema: %v", err)
	}
}

// TestStructuredResultOfMuch: what is too long to form a result of is summarized
// first.
func TestStructuredResultOfMuch(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: 'part (\d+) of \d+ of a larger text', text: 'a long story from part {{1}} ', size: 3900, repeat: -1}
  - {match: 'a long story', text: 'the short of it {{short}}', repeat: -1}
  - {match: 'the short of it', text: '{"city":"Rome","people":3}'}`)
	b := newBench(t, m)
	id := b.put(file{"text.txt", numbered(500)})
	tree := b.launch("Which city?", id, M{"model": "openai:m", "schema": json.RawMessage(citySchema), "chunk_tokens": 600,
		"overlap_tokens": -1, "context_window": 6000, "answer_tokens": 1000})
	got, root := b.finish(tree.ID, 2)
	if got.State != perdure.Completed || structuredOf(t, &root) != `{"city":"Rome","people":3}` {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Data, root.Error)
	}
	if notes := data(t, &root).Notes; len(notes) == 0 || !strings.Contains(notes[len(notes)-1], "were summarized") {
		t.Errorf("notes are %q", notes)
	}
	b.asks(server, tree.ID, len(b.leaves(tree.ID))+4) // three summaries and the one of these
}

// The provider of a run with a schema gets the schema with the requests whose answer has to
// be valid against it.
func TestSchemaReachesTheProvider(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []json.RawMessage
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Format json.RawMessage `json:"response_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		sent = append(sent, body.Format)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"{\"n\":1}"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(srv.Close)
	m, err := openai.New(openai.Config{Model: "m", BaseURL: srv.URL + "/v1", HTTPClient: srv.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	for _, schema := range []string{`{"type":"object","required":["n"]}`, ""} {
		b := newBench(t, models{"openai:m": m})
		cfg := M{"model": "openai:m"}
		if schema != "" {
			cfg["schema"] = json.RawMessage(schema)
		}
		b.finish(b.launch("q", "", cfg).ID, 1)
		if last := string(sent[len(sent)-1]); strings.Contains(last, `"schema":{"type":"object","required":["n"]}`) !=
			(schema != "") {
			t.Errorf("schema %q: the provider receives %q", schema, last)
		}
	}
}
