// Package modelserver is a model server on which real clients are tested: it answers from a
// script in the four protocols that they need.
package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Server answers the protocols of OpenAI (chat completions, responses), Anthropic and Gemini
// from a script. Requests that offer no tools (titles, classifications) are answered outside
// of the script. The zero value answers each request with a short text.
type Server struct {
	mu     sync.Mutex // guards all below
	script []Reply
	all    []string // the requests that offered tools
	// ended is called when there are that many of them.
	number int
	ended  func()
	served int
}

// Served returns the tokens of all answers, titles among them.
func (p *Server) Served() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}

func (p *Server) count(r *Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served += r.In + r.Out + r.Reasoning
}

// Ended has a function called, soon after each request of the conversation from a number on.
func (p *Server) Ended(number int, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number, p.ended = number, do
}

// Heard returns the last request of the conversation.
func (p *Server) Heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		return ""
	}
	return p.all[len(p.all)-1]
}

// Requests returns all requests of the conversation.
func (p *Server) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// Reply is the answer to one request. The last one of a script is repeated.
type Reply struct {
	// Text is what the model says.
	Text string
	// Tool and Input make it a tool call.
	Tool  string
	Input map[string]any
	// Status, Header and Body make it an error.
	Status int
	Header map[string]string
	Body   string
	// In, Cached, Out and Reasoning are numbers of tokens; In includes Cached.
	In, Cached, Out, Reasoning int
	// Length is set if the answer was cut by its limit.
	Length bool
	// Hang, if set, is called, and the request is never answered.
	Hang func()
}

func (p *Server) next() Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.script) == 0 {
		return Reply{Text: "no script", In: 1, Out: 1}
	}
	r := p.script[0]
	if len(p.script) > 1 {
		p.script = p.script[1:]
	}
	return r
}

// Play sets the answers from now on.
func (p *Server) Play(script []Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// ServeHTTP answers a request.
func (p *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var answer func(io.Writer, Reply)
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
		return
	case strings.HasSuffix(path, "/chat/completions"):
		answer = answerChat
	case strings.HasSuffix(path, "/responses"):
		answer = answerResponses
	case strings.HasSuffix(path, "/messages"):
		answer = answerMessages
	case strings.HasSuffix(path, ":streamGenerateContent"):
		answer = answerGemini
	case strings.HasSuffix(path, ":generateContent"):
		p.aside(w, body)
		return
	case strings.HasSuffix(path, "count_tokens"):
		_, _ = io.WriteString(w, `{"input_tokens":100}`)
		return
	case strings.HasSuffix(path, ":countTokens"):
		_, _ = io.WriteString(w, `{"totalTokens":100}`)
		return
	default:
		http.NotFound(w, r)
		return
	}
	next := Reply{Text: "a title", In: 10, Out: 2}
	if bytes.Contains(body, []byte(`"tools":[{`)) {
		next = p.next()
		p.mu.Lock()
		p.all = append(p.all, string(body))
		if p.ended != nil && len(p.all) >= p.number {
			defer p.ended()
		}
		p.mu.Unlock()
	}
	switch {
	case next.Hang != nil:
		next.Hang()
		<-r.Context().Done()
	case next.Status != 0:
		for k, v := range next.Header {
			w.Header().Set(k, v)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(next.Status)
		_, _ = io.WriteString(w, next.Body)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		p.count(&next)
		answer(w, next)
	}
}

// aside answers a request of Gemini CLI that is not part of the conversation.
func (p *Server) aside(w io.Writer, _ []byte) {
	r := Reply{Text: `{"reasoning":"short","model_choice":"flash"}`, In: 10, Out: 2}
	p.count(&r)
	writeJSON(w, geminiChunk(r))
}

func writeJSON(w io.Writer, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(data)
}

type object = map[string]any

// event writes one server-sent event, with its name when it has one.
func event(w io.Writer, name string, v object) {
	if name != "" {
		v = maps.Clone(v)
		v["type"] = name
		fmt.Fprintf(w, "event: %s\n", name)
	}
	_, _ = io.WriteString(w, "data: ")
	writeJSON(w, v)
	_, _ = io.WriteString(w, "\n\n")
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func inputText(r Reply) string {
	data, err := json.Marshal(r.Input)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func answerChat(w io.Writer, r Reply) {
	chunk := func(delta object, finish any, usage any) {
		v := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
		}
		if usage != nil {
			v["usage"] = usage
			v["choices"] = []any{}
		}
		event(w, "", v)
	}
	finish := "stop"
	if r.Text != "" {
		chunk(object{"role": "assistant", "content": r.Text}, nil, nil)
	}
	if r.Tool != "" {
		finish = "tool_calls"
		chunk(object{"role": "assistant", "tool_calls": []any{object{
			"index": 0, "id": "call_1", "type": "function", "function": object{"name": r.Tool, "arguments": inputText(r)},
		}}}, nil, nil)
	}
	if r.Length {
		finish = "length"
	}
	chunk(object{}, finish, nil)
	chunk(nil, nil, object{
		"prompt_tokens": r.In, "completion_tokens": r.Out, "total_tokens": r.In + r.Out,
		"prompt_tokens_details":     object{"cached_tokens": r.Cached},
		"completion_tokens_details": object{"reasoning_tokens": r.Reasoning},
	})
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func answerResponses(w io.Writer, r Reply) {
	event(w, "response.created", object{"response": object{"id": "resp_1", "status": "in_progress"}})
	item := object{
		"type": "message", "role": "assistant", "id": "msg_1",
		"content": []any{object{"type": "output_text", "text": r.Text}},
	}
	if r.Tool != "" {
		item = object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": r.Tool, "arguments": inputText(r)}
	}
	event(w, "response.output_item.added", object{"output_index": 0, "item": item})
	event(w, "response.output_item.done", object{"output_index": 0, "item": item})
	usage := object{
		"input_tokens": r.In, "output_tokens": r.Out, "total_tokens": r.In + r.Out,
		"input_tokens_details":  object{"cached_tokens": r.Cached},
		"output_tokens_details": object{"reasoning_tokens": r.Reasoning},
	}
	if r.Length {
		event(w, "response.incomplete", object{"response": object{
			"id": "resp_1", "status": "incomplete", "incomplete_details": object{"reason": "max_output_tokens"}, "usage": usage,
		}})
		return
	}
	event(w, "response.completed", object{"response": object{"id": "resp_1", "status": "completed", "usage": usage}})
}

func answerMessages(w io.Writer, r Reply) {
	event(w, "message_start", object{"message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"usage": object{"input_tokens": r.In - r.Cached, "cache_read_input_tokens": r.Cached,
			"cache_creation_input_tokens": 0, "output_tokens": 1},
	}})
	at, stop := 0, "end_turn"
	if r.Text != "" {
		event(w, "content_block_start", object{"index": at, "content_block": object{"type": "text", "text": ""}})
		event(w, "content_block_delta", object{"index": at, "delta": object{"type": "text_delta", "text": r.Text}})
		event(w, "content_block_stop", object{"index": at})
		at++
	}
	if r.Tool != "" {
		stop = "tool_use"
		event(w, "content_block_start",
			object{"index": at, "content_block": object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", r.In),
				"name": r.Tool, "input": object{}}})
		event(w, "content_block_delta",
			object{"index": at, "delta": object{"type": "input_json_delta", "partial_json": inputText(r)}})
		event(w, "content_block_stop", object{"index": at})
	}
	if r.Length {
		stop = "max_tokens"
	}
	event(w, "message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{"output_tokens": r.Out}})
	event(w, "message_stop", object{})
}

func geminiChunk(r Reply) object {
	part := object{"text": r.Text}
	if r.Tool != "" {
		part = object{"functionCall": object{"name": r.Tool, "args": r.Input}}
	}
	finish := "STOP"
	if r.Length {
		finish = "MAX_TOKENS"
	}
	return object{
		"candidates": []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": finish,
			"index": 0}},
		"usageMetadata": object{
			"promptTokenCount": r.In, "cachedContentTokenCount": r.Cached, "candidatesTokenCount": r.Out,
			"thoughtsTokenCount": r.Reasoning, "totalTokenCount": r.In + r.Out + r.Reasoning,
		},
		"modelVersion": "scripted", "responseId": "resp_1",
	}
}

func answerGemini(w io.Writer, r Reply) { event(w, "", geminiChunk(r)) }
