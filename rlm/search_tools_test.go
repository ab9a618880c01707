package rlm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/openai"
)

// toolServer speaks the OpenAI protocol. In replies to requests with tools it calls them, and
// otherwise writes the same as lines of text.
type toolServer struct {
	// refuses is how often the request after the second reply is refused.
	refuses int

	mu      sync.Mutex // guards the fields below
	prompts []string
	tools   []int // of each request
	roles   [][]string
}

// asked is what of a request matters here.
type asked struct {
	Messages []struct{ Role, Content string }
	Tools    []struct {
		Function struct{ Name string }
	}
}

func (s *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req asked
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var roles []string
	for _, m := range req.Messages {
		roles = append(roles, m.Role)
	}
	prompt := req.Messages[len(req.Messages)-1].Content
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts, s.tools, s.roles = append(s.prompts, prompt), append(s.tools, len(req.Tools)), append(s.roles, roles)
	type call = [2]string
	lines, calls := "ANSWER\nOn the mole. [^1]\n\n[^1]: chart/lights.txt:3-4\n> The harbour light stands on the northern "+
		"mole.", []call(nil)
	switch {
	case strings.Contains(prompt, "your reply 3"), strings.Contains(prompt, "the last one"):
	case strings.Contains(prompt, "your reply 2"):
		if s.refuses--; s.refuses >= 0 {
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
			return
		}
		lines, calls = "READ chart/lights.txt:1-4", []call{{"READ", `{"file":"chart/lights.txt","first":1,"last":4}`}}
	case strings.Contains(prompt, "your reply 1"):
		lines, calls = `READ {"file":"chart/lights.txt`, []call{{"READ", `{"file":"chart/lights.txt`}}
	default:
		lines, calls = "SEARCH harbour light\nLIST chart", []call{{"SEARCH", `{"query":"harbour light"}`},
			{"LIST", `{"folder":"chart"}`}}
	}
	message := map[string]any{"content": lines}
	if len(req.Tools) > 0 && calls != nil {
		var list []any
		for i, c := range calls {
			list = append(list, map[string]any{"id": fmt.Sprint("call_", i), "type": "function",
				"function": map[string]any{"name": c[0], "arguments": c[1]}})
		}
		message = map[string]any{"content": "I look.", "tool_calls": list}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "choices": []any{map[string]any{"message": message,
		"finish_reason": "stop"}}})
}

// toolBench is a bench whose model is behind a toolServer.
func toolBench(t *testing.T, s *toolServer, noTools bool) *bench {
	t.Helper()
	served := httptest.NewServer(s)
	m, err := openai.New(openai.Config{Model: "m", BaseURL: served.URL + "/v1", HTTPClient: served.Client(),
		NoTools: noTools})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		served.Close()
	})
	return newBench(t, models{"openai:m": m})
}

// A model that calls the tools of its provider is asked the same as one that writes lines: the
// journal and the requests are text. The last reply can call none.
func TestSearchWithTools(t *testing.T) {
	t.Parallel()
	var prompts [2][]string
	for i, noTools := range []bool{false, true} {
		server := new(toolServer)
		b := toolBench(t, server, noTools)
		tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), searchConfig("openai:m"))
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Completed || root.Result != "On the mole. [^1]" {
			t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
		}
		tools := 3
		if noTools {
			tools = 0
		}
		if want := []int{tools, tools, tools, tools}; !slices.Equal(server.tools, want) {
			t.Errorf("tools of the requests: %v, want %v", server.tools, want)
		}
		for _, roles := range server.roles {
			if !slices.Equal(roles, []string{"system", "user"}) {
				t.Errorf("messages of %v", roles)
			}
		}
		calls, err := b.store.Calls(t.Context(), root.ID)
		b.ok(err)
		want := "I look.\nSEARCH {\"query\":\"harbour light\"}\nLIST {\"folder\":\"chart\"}"
		if !noTools && calls[0].Response != want {
			t.Errorf("the journal has %q, want %q", calls[0].Response, want)
		}
		prompts[i] = server.prompts
	}
	if !slices.Equal(prompts[0], prompts[1]) {
		t.Errorf("with tools: %q\nas lines: %q", prompts[0], prompts[1])
	}
	if !strings.Contains(prompts[0][2], "(Not understood: the arguments of READ are not JSON of its form: ") {
		t.Errorf("malformed arguments are not named:\n%s", prompts[0][2])
	}

	server := new(toolServer)
	b := toolBench(t, server, false)
	config := searchConfig("openai:m")
	config["search_replies"] = 1
	tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), config)
	if _, root := b.finish(tree.ID, 1); root.Result != "On the mole. [^1]" || !slices.Equal(server.tools, []int{0}) {
		t.Errorf("%q, tools of the last request: %v", root.Result, server.tools)
	}
}

// Calls of tools are in the journal: a retried search makes none of their requests again.
func TestRetriedSearchKeepsToolCalls(t *testing.T) {
	t.Parallel()
	server := &toolServer{refuses: 1}
	b := toolBench(t, server, false)
	tree := b.launch("Where is the harbour light?", b.put(coast()[360:]...), searchConfig("openai:m"))
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed {
		t.Fatalf("tree is %s: %+v", got.State, root)
	}
	b.ok(b.store.RetryTask(t.Context(), root.ID))
	if _, root = b.finish(tree.ID, 1); root.Result != "On the mole. [^1]" || len(server.prompts) != 5 {
		t.Errorf("%q after %d requests, want 5: %+v", root.Result, len(server.prompts), root.Error)
	}
}
