package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// Limits of what is read and shown of a server's error.
const (
	maxFaultBytes = 64 << 10
	maxFaultText  = 500
	maxFaultDepth = 6
)

// Fault is an error in the body of a server's reply. Servers put it into an object under "error",
// "errors", "detail" and other names, into a list, or, if they pass on that of another server, into
// text within their own. A body of another form is its Message.
type Fault struct {
	Message string
	// Type and Code are the server's words for the kind of error; a code may
	// be a number. Empty when it does not say.
	Type, Code string
	// Param is the field of the request that the server names; empty when it does not.
	Param string
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
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\uFEFF")))
	if event, found := bytes.CutPrefix(body, []byte("data:")); found { // of a stream
		body, _, _ = bytes.Cut(bytes.TrimSpace(event), []byte("\n"))
	}
	if len(body) < 2 || body[0] != '{' && body[0] != '[' {
		return Fault{}, false
	}
	f.read(body, maxFaultDepth)
	return f, f.Message != ""
}

// rawFault are the fields in which servers describe an error.
type rawFault struct {
	Error   json.RawMessage `json:"error"`
	Errors  json.RawMessage `json:"errors"`
	Detail  json.RawMessage `json:"detail"`
	Message json.RawMessage `json:"message"`
	// Msg is of pydantic, ErrorMsg of Baidu, Base of MiniMax.
	Msg      json.RawMessage `json:"msg"`
	ErrorMsg json.RawMessage `json:"error_msg"`
	Base     struct {
		Code    json.RawMessage `json:"status_code"`
		Message string          `json:"status_msg"`
	} `json:"base_resp"`
	Type      json.RawMessage `json:"type"`
	ErrorType json.RawMessage `json:"error_type"`
	Status    json.RawMessage `json:"status"`
	Code      json.RawMessage `json:"code"`
	ErrorCode json.RawMessage `json:"error_code"`
	Param     json.RawMessage `json:"param"`
	// Loc is where pydantic found the error in the request.
	Loc []any `json:"loc"`
	// Metadata is where OpenRouter passes on the error of the model's provider.
	Metadata struct {
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
	Details []struct {
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// read adds what a value says to the fault. What is further inside counts before what is outside.
func (f *Fault) read(data []byte, depth int) {
	if data = bytes.TrimSpace(data); len(data) == 0 || depth == 0 {
		return
	}
	switch data[0] {
	case '"':
		var text string
		if json.Unmarshal(data, &text) == nil {
			f.readText(text, depth)
		}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && len(list) > 0 {
			f.read(list[0], depth-1)
		}
	case '{':
		var raw rawFault
		_ = json.Unmarshal(data, &raw) // a field of another type stays empty
		f.readObject(&raw, depth-1)
	}
}

// readText reads a message. Gateways pass on the error of another server as text, alone or behind
// words of their own.
func (f *Fault) readText(text string, depth int) {
	at := strings.IndexAny(text, "{[")
	if at >= 0 {
		inner := Fault{RetryAfter: f.RetryAfter}
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		var one json.RawMessage
		if dec.Decode(&one) == nil {
			inner.read(one, depth-1)
		}
		if inner.Message != "" {
			*f = inner
			return
		}
	}
	f.Message = cmp.Or(f.Message, text)
}

func (f *Fault) readObject(raw *rawFault, depth int) {
	for _, inner := range []json.RawMessage{raw.Metadata.Raw, raw.Error, raw.Message, raw.Errors, raw.Detail, raw.Msg,
		raw.ErrorMsg} {
		if f.Message == "" {
			f.read(inner, depth)
		}
	}
	f.Message = cmp.Or(f.Message, raw.Base.Message)
	f.Code = cmp.Or(f.Code, word(raw.Code), word(raw.ErrorCode), word(raw.Base.Code))
	f.Param = cmp.Or(f.Param, word(raw.Param), place(raw.Loc))
	// Google's services describe an error by a reason and a status, see https://google.aip.dev/193.
	var reason string
	for _, d := range raw.Details {
		reason = cmp.Or(reason, d.Reason)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			f.RetryAfter = min(wait, maxRetryAfter)
		}
	}
	status := word(raw.Status)
	if strings.Trim(status, "0123456789") == "" { // the HTTP status
		f.Code = cmp.Or(f.Code, status)
		status = ""
	}
	own := word(raw.Type)
	if own == "error" { // the outer object of Anthropic's errors
		own = ""
	}
	f.Type = cmp.Or(reason, f.Type, own, word(raw.ErrorType), status)
}

// word returns a string or a number as text.
func word(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	if len(data) > 0 && (data[0] == '-' || data[0] >= '0' && data[0] <= '9') {
		return string(data)
	}
	return ""
}

// place returns the field that a location of pydantic names: [body, stream_options] is
// stream_options.
func place(loc []any) string {
	var names []string
	for i, part := range loc {
		if name, ok := part.(string); ok && (i > 0 || name != "body") {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}
