package acp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// step is what the scripted model says to one request: a tool call, or text.
type step struct {
	text string
	tool string
	args map[string]any
	id   string
	// status, when set, is that of an answer of which text is the body.
	status int
}

// modelServer is a model on loopback that follows a script. It speaks as much
// of three dialects as clients need: chat completions and responses of OpenAI,
// and Gemini's. Requests without tools, for titles and the like, get a word.
type modelServer struct {
	*httptest.Server
	log func(format string, args ...any)

	mu     sync.Mutex // guards the following
	steps  []step
	calls  int // requests that took a step
	always *step
}

func newModelServer(t *testing.T) *modelServer {
	t.Helper()
	m := &modelServer{log: t.Logf}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1beta/models/{call}", m.gemini)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Logf("model server: no answer for %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// script sets what comes next.
func (m *modelServer) script(steps ...step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = steps
}

// forever sets what all requests get.
func (m *modelServer) forever(s step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.always = &s
}

// fail answers a request that is to fail.
func fail(w http.ResponseWriter, s step) bool {
	if s.status == 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.status)
	fmt.Fprint(w, s.text)
	return true
}

// next returns the next step.
func (m *modelServer) next(r *http.Request) step {
	body, err := io.ReadAll(r.Body)
	m.log("model server: %s, %d bytes, tools %v", r.URL, len(body), strings.Contains(string(body), `"tools"`))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.always != nil {
		return *m.always
	}
	if err != nil || !strings.Contains(string(body), `"tools"`) {
		return step{text: "Title"}
	}
	m.calls++
	if len(m.steps) == 0 {
		return step{text: "Nothing more to do."}
	}
	s := m.steps[0]
	m.steps = m.steps[1:]
	s.id = fmt.Sprintf("call_%d", m.calls)
	return s
}

// events writes server-sent events.
func events(w http.ResponseWriter, all ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		raw, err := json.Marshal(e)
		if err != nil {
			return
		}
		if m, ok := e.(obj); ok && m["type"] != nil {
			fmt.Fprintf(w, "event: %s\n", m["type"])
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
}

type obj = map[string]any

func (m *modelServer) chat(w http.ResponseWriter, r *http.Request) {
	s := m.next(r)
	if fail(w, s) {
		return
	}
	delta, reason := obj{"role": "assistant", "content": s.text}, "stop"
	if s.tool != "" {
		args, _ := json.Marshal(s.args)
		reason = "tool_calls"
		delta = obj{"role": "assistant", "tool_calls": []any{obj{
			"index": 0, "id": s.id, "type": "function", "function": obj{"name": s.tool, "arguments": string(args)},
		}}}
	}
	chunk := func(choices ...any) obj {
		if choices == nil {
			choices = []any{}
		}
		return obj{"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices}
	}
	last := chunk()
	last["usage"] = obj{
		"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020,
		"prompt_tokens_details": obj{"cached_tokens": 600},
	}
	events(w, chunk(obj{"index": 0, "delta": delta}), chunk(obj{"index": 0, "delta": obj{}, "finish_reason": reason}),
		last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *modelServer) responses(w http.ResponseWriter, r *http.Request) {
	s := m.next(r)
	if fail(w, s) {
		return
	}
	item := obj{
		"type": "message", "id": "msg-1", "role": "assistant", "status": "completed",
		"content": []any{obj{"type": "output_text", "text": s.text, "annotations": []any{}}},
	}
	if s.tool != "" {
		args, _ := json.Marshal(s.args)
		item = obj{"type": "function_call", "id": "fc-" + s.id, "call_id": s.id, "name": s.tool, "arguments": string(args),
			"status": "completed"}
	}
	resp := obj{"id": "resp-1", "object": "response", "status": "in_progress", "output": []any{}}
	done := obj{"id": "resp-1", "object": "response", "status": "completed", "output": []any{item}, "usage": obj{
		"input_tokens": 1000, "input_tokens_details": obj{"cached_tokens": 600},
		"output_tokens": 20, "output_tokens_details": obj{"reasoning_tokens": 5}, "total_tokens": 1020,
	}}
	events(w,
		obj{"type": "response.created", "response": resp},
		obj{"type": "response.output_item.added", "output_index": 0, "item": item},
		obj{"type": "response.output_item.done", "output_index": 0, "item": item},
		obj{"type": "response.completed", "response": done})
}

func (m *modelServer) gemini(w http.ResponseWriter, r *http.Request) {
	call := r.PathValue("call")
	if strings.HasSuffix(call, ":countTokens") {
		fmt.Fprint(w, `{"totalTokens":1000}`)
		return
	}
	s := m.next(r)
	if fail(w, s) {
		return
	}
	part := obj{"text": s.text}
	if s.tool != "" {
		part = obj{"functionCall": obj{"name": s.tool, "args": s.args}}
	}
	answer := obj{
		"candidates": []any{obj{"content": obj{"role": "model", "parts": []any{part}}, "finishReason": "STOP",
			"index": 0}},
		"usageMetadata": obj{"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020,
			"cachedContentTokenCount": 600},
		"modelVersion": "scripted",
	}
	if strings.HasSuffix(call, ":streamGenerateContent") {
		events(w, answer)
		return
	}
	raw, _ := json.Marshal(answer)
	_, _ = w.Write(raw)
}
