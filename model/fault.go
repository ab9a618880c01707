package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Limits of what is read and shown of a server's error.
const (
	maxFaultBytes = 64 << 10
	maxFaultText  = 500
)

// Fault is an error in the body of a server's reply: {"error": {…}}, {"error":
// "text"} or {"message": "text"}, or a list of one of these. A body of another form is its
// Message.
type Fault struct {
	Message string
	// Type and Code are the server's words for the kind of error; a code may
	// be a number. Empty when it does not say.
	Type, Code string
	// RetryAfter is how long the server asks to wait; 0 when it does not say.
	RetryAfter time.Duration
}

// ReadFault reads a fault from the beginning of a body.
func ReadFault(body io.Reader) Fault {
	data, _ := io.ReadAll(io.LimitReader(body, maxFaultBytes))
	if f, ok := ParseFault(data); ok {
		return f
	}
	return Fault{Message: string(data)}
}

// ParseFault reads a fault, and reports whether the body is one.
func ParseFault(body []byte) (f Fault, ok bool) {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	if body = bytes.TrimSpace(body); len(body) > 1 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return Fault{}, false
		}
		body = list[0]
	}
	if json.Unmarshal(body, &outer) != nil {
		return Fault{}, false
	}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	var text string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "":
		code := strings.Trim(string(inner.Code), `"`)
		if code == "null" {
			code = ""
		}
		f = Fault{Message: inner.Message, Type: inner.Type, Code: code}
		f.readDetails(outer.Error)
		return f, true
	case json.Unmarshal(outer.Error, &text) == nil && text != "":
		return Fault{Message: text}, true
	case outer.Message != "" || outer.Detail != "":
		return Fault{Message: outer.Message + outer.Detail}, true
	}
	return Fault{}, false
}

// readDetails reads what Google's services say of an error besides its message: the status
// by name, a reason, and how long to wait. See https://google.aip.dev/193.
func (f *Fault) readDetails(data []byte) {
	var e struct {
		Status  string `json:"status"`
		Details []struct {
			Reason     string `json:"reason"`
			RetryDelay string `json:"retryDelay"`
		} `json:"details"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	f.Type = cmp.Or(f.Type, e.Status)
	for _, d := range e.Details {
		f.Type = cmp.Or(d.Reason, f.Type)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			f.RetryAfter = min(wait, maxRetryAfter)
		}
	}
}

// HintTooLong is what a person can do about a request that is longer than a model
// reads.
const HintTooLong = "the request is too long for the model: set a smaller context window"

// reTooLong matches what servers say of a request that is longer than the model
// reads: in the words of their codes, and of their messages.
var reTooLong = lazyregexp.New(`(?i)context_length|exceed_context|request_too_large|maximum context|context (length|limit|` +
	`size|window)|` +
	`(prompt|request|input) is too (long|large)|too many (input |prompt )?tokens|(input|prompt) token count.*exceeds|` +
	`too large for model`)

// Kind returns the kind of failure of a reply with an HTTP status and this fault.
func (f Fault) Kind(status int) Kind {
	kind := KindOfStatus(status)
	if kind == KindInvalid && f.Type == "API_KEY_INVALID" { // Gemini answers 400
		return KindAuth
	}
	if kind == KindInvalid && reTooLong().MatchString(f.Code+"\n"+f.Type+"\n"+f.Message) {
		return KindTooLong
	}
	return kind
}

// Text is what the fault says, short and in one line.
func (f Fault) Text() string {
	text, _ := Clean(clip.OneLine(f.Message))
	return clip.Bytes(text, maxFaultText)
}
