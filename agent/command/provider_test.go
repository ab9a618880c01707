package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// provider is a model server that real clients talk to: it speaks the four
// protocols they need and answers from a script. Requests that offer no tools
// (titles, classifications) are answered outside the script.
type provider struct {
	mu     sync.Mutex // guards all below
	script []reply
	last   string // the last request that offered tools
}

// heard is the last request of the conversation.
func (p *provider) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// reply is the answer to one request. The last one of a script is repeated.
type reply struct {
	text string
	// tool and input make it a tool call.
	tool  string
	input map[string]any
	// status and body make it an error.
	status int
	header map[string]string
	body   string
	// in counts the cached ones.
	in, cached, out, reasoning int
	// length: the answer was cut by its limit.
	length bool
	// hang, when set, is called, and the request is never answered.
	hang func()
}

func (p *provider) next() reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.script) == 0 {
		return reply{text: "no script", in: 1, out: 1}
	}
	r := p.script[0]
	if len(p.script) > 1 {
		p.script = p.script[1:]
	}
	return r
}

// play sets what is answered from now on.
func (p *provider) play(script []reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var answer func(io.Writer, reply)
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
	next := reply{text: "a title", in: 10, out: 2}
	if bytes.Contains(body, []byte(`"tools":[{`)) {
		next = p.next()
		p.mu.Lock()
		p.last = string(body)
		p.mu.Unlock()
	}
	switch {
	case next.hang != nil:
		next.hang()
		<-r.Context().Done()
	case next.status != 0:
		for k, v := range next.header {
			w.Header().Set(k, v)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(next.status)
		_, _ = io.WriteString(w, next.body)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		answer(w, next)
	}
}

// aside answers a request of Gemini CLI that is not part of the conversation.
func (p *provider) aside(w io.Writer, _ []byte) {
	writeJSON(w, geminiChunk(reply{text: `{"reasoning":"short","model_choice":"flash"}`, in: 10, out: 2}))
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

func inputText(r reply) string {
	data, err := json.Marshal(r.input)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func answerChat(w io.Writer, r reply) {
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
	if r.text != "" {
		chunk(object{"role": "assistant", "content": r.text}, nil, nil)
	}
	if r.tool != "" {
		finish = "tool_calls"
		chunk(object{"role": "assistant", "tool_calls": []any{object{
			"index": 0, "id": "call_1", "type": "function", "function": object{"name": r.tool, "arguments": inputText(r)},
		}}}, nil, nil)
	}
	if r.length {
		finish = "length"
	}
	chunk(object{}, finish, nil)
	chunk(nil, nil, object{
		"prompt_tokens": r.in, "completion_tokens": r.out, "total_tokens": r.in + r.out,
		"prompt_tokens_details":     object{"cached_tokens": r.cached},
		"completion_tokens_details": object{"reasoning_tokens": r.reasoning},
	})
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func answerResponses(w io.Writer, r reply) {
	event(w, "response.created", object{"response": object{"id": "resp_1", "status": "in_progress"}})
	item := object{
		"type": "message", "role": "assistant", "id": "msg_1",
		"content": []any{object{"type": "output_text", "text": r.text}},
	}
	if r.tool != "" {
		item = object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": r.tool, "arguments": inputText(r)}
	}
	event(w, "response.output_item.added", object{"output_index": 0, "item": item})
	event(w, "response.output_item.done", object{"output_index": 0, "item": item})
	usage := object{
		"input_tokens": r.in, "output_tokens": r.out, "total_tokens": r.in + r.out,
		"input_tokens_details":  object{"cached_tokens": r.cached},
		"output_tokens_details": object{"reasoning_tokens": r.reasoning},
	}
	if r.length {
		event(w, "response.incomplete", object{"response": object{
			"id": "resp_1", "status": "incomplete", "incomplete_details": object{"reason": "max_output_tokens"}, "usage": usage,
		}})
		return
	}
	event(w, "response.completed", object{"response": object{"id": "resp_1", "status": "completed", "usage": usage}})
}

func answerMessages(w io.Writer, r reply) {
	event(w, "message_start", object{"message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"usage": object{"input_tokens": r.in - r.cached, "cache_read_input_tokens": r.cached,
			"cache_creation_input_tokens": 0, "output_tokens": 1},
	}})
	at, stop := 0, "end_turn"
	if r.text != "" {
		event(w, "content_block_start", object{"index": at, "content_block": object{"type": "text", "text": ""}})
		event(w, "content_block_delta", object{"index": at, "delta": object{"type": "text_delta", "text": r.text}})
		event(w, "content_block_stop", object{"index": at})
		at++
	}
	if r.tool != "" {
		stop = "tool_use"
		event(w, "content_block_start",
			object{"index": at, "content_block": object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", r.in),
				"name": r.tool, "input": object{}}})
		event(w, "content_block_delta",
			object{"index": at, "delta": object{"type": "input_json_delta", "partial_json": inputText(r)}})
		event(w, "content_block_stop", object{"index": at})
	}
	if r.length {
		stop = "max_tokens"
	}
	event(w, "message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{"output_tokens": r.out}})
	event(w, "message_stop", object{})
}

func geminiChunk(r reply) object {
	part := object{"text": r.text}
	if r.tool != "" {
		part = object{"functionCall": object{"name": r.tool, "args": r.input}}
	}
	finish := "STOP"
	if r.length {
		finish = "MAX_TOKENS"
	}
	return object{
		"candidates": []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": finish,
			"index": 0}},
		"usageMetadata": object{
			"promptTokenCount": r.in, "cachedContentTokenCount": r.cached, "candidatesTokenCount": r.out,
			"thoughtsTokenCount": r.reasoning, "totalTokenCount": r.in + r.out + r.reasoning,
		},
		"modelVersion": "scripted", "responseId": "resp_1",
	}
}

func answerGemini(w io.Writer, r reply) { event(w, "", geminiChunk(r)) }
