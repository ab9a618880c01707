package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
)

// caseRequest has the fields of a request that the cases compare.
type caseRequest struct {
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	MaxTokens     int             `json:"max_tokens"`
	StreamOptions json.RawMessage `json:"stream_options"`
}

// serveSome starts a server that answers requests with a raw answer if refuse reports so, and
// otherwise with a text.
func serveSome(t *testing.T, name string, refuse func(caseRequest) bool) *replyserver.Server {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", "http", name+".http"))
	if err != nil {
		t.Fatal(err)
	}
	return replyserver.Start(t, func(r replyserver.Request) []byte {
		var req caseRequest
		if err := json.Unmarshal(r.Body, &req); err != nil {
			t.Error(err)
		}
		if refuse(req) {
			return data
		}
		return replyserver.Chat("Part answer.")
	})
}

// writeCase writes a file and its folder.
func writeCase(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Replies in unusual forms are read whole, and a part that a server refuses is left out in the next
// request and in those of later processes.
func TestServersOfAllKinds(t *testing.T) {
	t.Parallel()
	always := func(caseRequest) bool { return true }
	for _, c := range []struct {
		name    string
		refuse  func(caseRequest) bool
		want    string
		repeats int
	}{
		{"bom-sse", always, "The answer is 42.", 0}, {"bom-sse-two-parts", always, "The total is not 42, but 43.", 0},
		{"cr-only-sse", always, "The answer is 42.", 0}, {"sse-as-json", always, "The answer is 42.", 0},
		{"json-as-event-stream", always, "The answer is 42.", 0}, {"json-as-text-plain", always, "The answer is 42.", 0},
		{"second-choice-mixed", always, "The answer is 42.", 0},
		{"max-tokens-unsupported", func(r caseRequest) bool { return r.MaxTokens > 0 }, "Part answer.", 1},
		{"max-tokens-too-large", func(r caseRequest) bool { return r.MaxTokens > 4046 }, "Part answer.", 1},
		{"stream-options-unknown", func(r caseRequest) bool { return r.StreamOptions != nil }, "Part answer.", 1},
		{"system-role-refused", func(r caseRequest) bool { return r.Messages[0].Role == "system" }, "Part answer.", 1},
	} {
		server := serveSome(t, c.name, c.refuse)
		dir := t.TempDir()
		writeCase(t, filepath.Join(dir, ".perdure", "config.yaml"), "agents:\n  brief:\n    system: Be brief.\n")
		for i, requests := range []int{1 + c.repeats, 1} {
			before := len(server.Requests())
			run := runCase(t, dir, "run", "number?", "--agent", "brief", "--model", "openai:f", "--base-url",
				server.URL)
			if run.status != 0 || !strings.Contains(run.stdout, c.want) {
				t.Errorf("%s: status %d, output %q, errors %q", c.name, run.status, run.stdout, run.stderr)
			}
			if n := len(server.Requests()) - before; n != requests {
				t.Errorf("%s, run %d: %d requests, want %d", c.name, i+1, n, requests)
			}
			if c.repeats == 0 {
				break
			}
		}
	}
}

// A text that is too long is read in parts, whatever words the server has for it.
func TestTooLongInWordsOfServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Repeat("2026-11-28 12:00:00 INFO request served\n", 4000)
	writeCase(t, filepath.Join(dir, "big.log"), text)
	for _, name := range []string{"dashscope", "databricks", "glm-en", "glm-more", "hf-router", "hub", "perplexity", "tgi",
		"vllm-old", "xai"} {
		server := serveSome(t, "too-long-"+name, func(r caseRequest) bool {
			n := 0
			for _, m := range r.Messages {
				n += len(m.Content)
			}
			return n > 90_000
		})
		run := runCase(t, dir, "run", "number?", "-c", "big.log", "--planner", "none", "--model", "openai:f", "--base-url",
			server.URL, "--merge", "concatenate")
		if run.status != 0 || !strings.Contains(run.stdout, "Part answer.") {
			t.Errorf("%s: status %d, output %q, errors %q", name, run.status, run.stdout, run.stderr)
		}
		most := 8
		if name == "tgi" { // it names a limit of 4,096 tokens
			most = 30
		}
		if n := len(server.Requests()); n > most {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}
