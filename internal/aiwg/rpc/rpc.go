package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/perdure/perdure"
)

// Error is what a client is told.
type Error struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *ErrorData `json:"data,omitempty"`
}

// ErrorData tells more of an error.
type ErrorData struct {
	// Code is the store's word for it: invalid, not_found, conflict, …
	Code perdure.Code `json:"code,omitempty"`
	// Hint says what can be done about it.
	Hint string `json:"hint,omitempty"`
	// TaskID, Is and Want are the transition that was refused.
	TaskID perdure.TaskID `json:"taskId,omitzero"`
	Is     perdure.State  `json:"is,omitempty"`
	Want   perdure.State  `json:"want,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// codeOf is the one table from the store's codes to those of the protocol. A
// task that is not there is a parameter that names none, as clients know it.
func codeOf(code perdure.Code) (n int, message string) {
	switch code {
	case perdure.CodeInvalid:
		return CodeInvalidParams, "the parameters are not valid"
	case perdure.CodeNotFound:
		return CodeInvalidParams, "there is no such task"
	case perdure.CodeConflict, perdure.CodeBudgetExceeded:
		return CodeConflict, "the task is not in a state for this"
	case perdure.CodeLeaseLost:
		return CodeLease, "the task was taken over or ended"
	case perdure.CodeUnavailable, perdure.CodeCanceled:
		return CodeUnavailable, "the store cannot be used at the moment"
	case perdure.CodeDamaged:
		return CodeInternal, "the store is damaged"
	default:
		return CodeInternal, "something went wrong inside; the log of the server says what"
	}
}

// errorOf makes any error one for clients, without what is not for them.
func errorOf(err error) *Error {
	var told *Error
	if errors.As(err, &told) {
		return told
	}
	own := &perdure.Error{Code: perdure.CodeInternal}
	if !errors.As(err, &own) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		own = &perdure.Error{Code: perdure.CodeCanceled}
	}
	code, message := codeOf(own.Code)
	e := &Error{Code: code, Message: own.Msg, Data: &ErrorData{Code: own.Code, Hint: perdure.HintOf(own)}}
	var state *perdure.StateError
	if errors.As(err, &state) {
		e.Data.TaskID, e.Data.Is, e.Data.Want = state.Task, state.Is, state.Want
		e.Message = cmp.Or(e.Message, state.Error())
	}
	e.Message = cmp.Or(e.Message, message)
	return e
}

func invalidParams(message string) *Error {
	return &Error{Code: CodeInvalidParams, Message: message, Data: &ErrorData{Code: perdure.CodeInvalid}}
}

// request is one call.
type request struct {
	id     json.RawMessage // nil for a notification
	method string
	params json.RawMessage // nil when left out
}

// reply is the answer to one request that is no notification.
type reply struct {
	Version string          `json:"jsonrpc"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	ID      json.RawMessage `json:"id"`
}

// readMessage finds the requests of a line. An empty list is an error; whether
// the line is a batch decides about the form of the answer.
func readMessage(line []byte) (requests []json.RawMessage, batch bool, err *Error) {
	switch {
	case !utf8.Valid(line):
		return nil, false, &Error{Code: CodeParse, Message: "the line is not UTF-8"}
	case !json.Valid(line):
		return nil, false, &Error{Code: CodeParse, Message: "the line is not JSON" + where(line)}
	case line[0] != '[':
		return []json.RawMessage{line}, false, nil
	}
	if err := json.Unmarshal(line, &requests); err != nil {
		return nil, false, &Error{Code: CodeParse, Message: "the line is not JSON"}
	}
	switch n := len(requests); {
	case n == 0:
		return nil, false, &Error{Code: CodeInvalidRequest, Message: "the batch is empty"}
	case n > MaxBatch:
		return nil, false, &Error{Code: CodeInvalidRequest, Message: "a batch has more than 1000 requests"}
	}
	return requests, true, nil
}

// where tells the place of a syntax error.
func where(line []byte) string {
	var syntax *json.SyntaxError
	var v any
	if errors.As(json.Unmarshal(line, &v), &syntax) {
		return ": " + syntax.Error()
	}
	return ""
}

// readRequest reads one request. With an error it returns the ID as far as there
// is one, to answer to.
func readRequest(raw json.RawMessage) (r request, err *Error) {
	refuse := func(message string) (request, *Error) {
		if r.id == nil {
			r.id = json.RawMessage("null")
		}
		return r, &Error{Code: CodeInvalidRequest, Message: message}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return refuse("a request is a JSON object")
	}
	id, named := members["id"]
	if named {
		if c := id[0]; c != '"' && c != 'n' && c != '-' && (c < '0' || c > '9') {
			return refuse("the id is neither text nor a number nor null")
		}
		r.id = id
	}
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return refuse(`the member jsonrpc is not "2.0"`)
	}
	method, there := members["method"]
	if !there || method[0] != '"' || json.Unmarshal(method, &r.method) != nil || r.method == "" {
		return refuse("the method is missing or no text")
	}
	r.params = members["params"]
	return r, nil
}

// readParams makes named members of the parameters; those by position have the
// names that the method gives them.
func readParams(raw json.RawMessage, order []string) (params, *Error) {
	p := make(params)
	switch {
	case raw == nil || string(raw) == "null":
	case raw[0] == '{':
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, invalidParams("the parameters cannot be read")
		}
	case raw[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil || len(list) > len(order) {
			return nil, invalidParams("there are more parameters than the method has")
		}
		for i, v := range list {
			p[order[i]] = v
		}
	default:
		return nil, invalidParams("the parameters are neither an object nor a list")
	}
	return p, nil
}

// encode writes JSON in one line, without escaping what matters in HTML only.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
