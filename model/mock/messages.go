package mock

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// messagesRequest is what of a request in Anthropic's protocol matters here.
type messagesRequest struct {
	Stream    bool          `json:"stream"`
	MaxTokens int64         `json:"max_tokens"`
	System    content       `json:"system"`
	Messages  []chatMessage `json:"messages"`
}

// text is the request as [model.RenderAll] would give it.
func (r messagesRequest) text() string {
	if r.System == "" {
		return joined(r.Messages)
	}
	return string(r.System) + "\n\n" + joined(r.Messages)
}

// message answers a request in Anthropic's protocol. Like the real server it
// wants the version and a limit for the answer.
func (s *Server) message(w http.ResponseWriter, r *http.Request) {
	var req messagesRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req)
	switch {
	case err != nil:
		refuseMessage(w, http.StatusBadRequest, "request is not valid: "+err.Error())
		return
	case r.Header.Get("anthropic-version") == "":
		refuseMessage(w, http.StatusBadRequest, "anthropic-version: header is required")
		return
	case req.MaxTokens < 1:
		refuseMessage(w, http.StatusBadRequest, "max_tokens: Field required")
		return
	}
	s.play(w, r, req.text(), protocol{refuse: refuseMessage, send: func(out *sender) {
		if req.Stream {
			out.streamMessage()
		} else {
			out.wholeMessage()
		}
	}})
}

func refuseMessage(w http.ResponseWriter, status int, msg string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_mock"}`,
		quote(faultType(status)), quote(msg))
}

// statusOverloaded is what Anthropic's servers say when they have too much to
// do.
const statusOverloaded = 529

// faultType is the word of the protocol for a status.
func faultType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case statusOverloaded:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// stopWord is the protocol's word for the reason to stop; a script may use
// either protocol's.
func (r *reply) stopWord() string {
	switch r.stopReason {
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	}
	return r.stopReason
}

func (s *sender) streamMessage() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	event := func(name, format string, args ...any) {
		s.print("event: %s\ndata: {\"type\":%q", name, name)
		s.print(format, args...)
		s.print("}\n\n")
	}
	event("message_start", `,"message":%s`, s.messageHead(`[]`, "null", 1))
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	event("ping", "")
	for _, part := range s.reply.parts() {
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":%s}`, quote(part))
		s.send()
	}
	if s.reply.cut {
		s.abort()
	}
	event("content_block_stop", `,"index":0`)
	usage := ""
	if !s.reply.usage.Omit {
		usage = fmt.Sprintf(`,"usage":{"output_tokens":%d}`, s.reply.usage.Output)
	}
	event("message_delta", `,"delta":{"stop_reason":%s,"stop_sequence":null}%s`, quote(s.reply.stopWord()), usage)
	event("message_stop", "")
	s.send()
}

func (s *sender) wholeMessage() {
	s.w.Header().Set("Content-Type", "application/json")
	content := `[{"type":"text","text":` + quote(s.reply.text) + `}]`
	text := s.messageHead(content, quote(s.reply.stopWord()), s.reply.usage.Output)
	if s.reply.cut {
		s.print("%s", text[:len(text)/2])
		s.abort()
	}
	s.print("%s", text)
	s.send()
}

// messageHead returns the message as it is at the beginning of a stream, or
// whole.
func (s *sender) messageHead(content, stop string, output int64) string {
	usage := ""
	if u := s.reply.usage; !u.Omit {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,`+
			`"output_tokens":%d}`,
			max(0, u.Input-u.Cached-u.Written), u.Cached, u.Written, output)
	}
	return fmt.Sprintf(`{"id":"msg_mock","type":"message","role":"assistant","model":%s,"content":%s,"stop_reason":%s,`+
		`"stop_sequence":null%s}`,
		quote(s.model), content, stop, usage)
}
