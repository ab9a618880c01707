package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure"
)

// Error is the error of an answer.
type Error struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *ErrorData `json:"data,omitempty"`
}

// ErrorData describes an error.
type ErrorData struct {
	// Code is the store's code: invalid, not_found, conflict, …
	Code perdure.Code `json:"code,omitempty"`
	// Hint says how to solve it.
	Hint string `json:"hint,omitempty"`
	// TaskID, Is and Want are the refused transition.
	TaskID perdure.TaskID `json:"taskId,omitzero"`
	Is     perdure.State  `json:"is,omitempty"`
	Want   perdure.State  `json:"want,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// codeOf returns the protocol's code and a message for a code of the store. A missing
// task is an invalid parameter, as clients expect.
func codeOf(code perdure.Code) (n int, message string) {
	switch code {
	case perdure.CodeInvalid:
		return CodeInvalidParams, "invalid parameters"
	case perdure.CodeNotFound:
		return CodeInvalidParams, "task not found"
	case perdure.CodeConflict, perdure.CodeBudgetExceeded:
		return CodeConflict, "the state of the task does not allow this"
	case perdure.CodeLeaseLost:
		return CodeLease, "the task was taken over or has ended"
	case perdure.CodeUnavailable, perdure.CodeCanceled:
		return CodeUnavailable, "the store is unavailable"
	case perdure.CodeDamaged:
		return CodeInternal, "the store is damaged"
	default:
		return CodeInternal, "internal error; the log of the server describes it"
	}
}

// errorOf returns an error for clients, without internal details.
func errorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	own := &perdure.Error{Code: perdure.CodeInternal}
	if !errors.As(err, &own) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		own = &perdure.Error{Code: perdure.CodeCanceled}
	}
	code, message := codeOf(own.Code)
	e := &Error{Code: code, Message: own.Msg, Data: &ErrorData{Code: own.Code, Hint: perdure.HintOf(own)}}
	if state, ok := errors.AsType[*perdure.StateError](err); ok {
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

// reply is the answer to a request that is not a notification.
type reply struct {
	Version string          `json:"jsonrpc"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	ID      json.RawMessage `json:"id"`
}

// readMessage returns the requests of a line, and whether the line is a batch.
func readMessage(line []byte) (requests []json.RawMessage, batch bool, err *Error) {
	switch {
	case !utf8.Valid(line):
		return nil, false, &Error{Code: CodeParse, Message: "the line is not UTF-8"}
	case !json.Valid(line):
		return nil, false, &Error{Code: CodeParse,
			Message: fmt.Sprintf("the line is not JSON: %v", json.Unmarshal(line, new(any)))}
	case line[0] != '[':
		return []json.RawMessage{line}, false, nil
	}
	_ = json.Unmarshal(line, &requests) // a valid list
	switch n := len(requests); {
	case n == 0:
		return nil, false, &Error{Code: CodeInvalidRequest, Message: "the batch is empty"}
	case n > MaxBatch:
		return nil, false, &Error{Code: CodeInvalidRequest,
			Message: fmt.Sprintf("the batch has %d requests, the limit is %d", n, MaxBatch)}
	}
	return requests, true, nil
}

// readRequest reads one request. An error comes with the ID for the answer.
func readRequest(raw json.RawMessage) (r request, err *Error) {
	refuse := func(message string) (request, *Error) {
		if r.id == nil {
			r.id = json.RawMessage("null")
		}
		return r, &Error{Code: CodeInvalidRequest, Message: message}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return refuse("the request is not an object")
	}
	if id, ok := members["id"]; ok {
		if c := id[0]; c != '"' && c != 'n' && c != '-' && (c < '0' || c > '9') {
			return refuse("the id is not a string, a number or null")
		}
		r.id = id
	}
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return refuse(`the member jsonrpc is not "2.0"`)
	}
	if json.Unmarshal(members["method"], &r.method) != nil || r.method == "" {
		return refuse("the method is missing or not a string")
	}
	r.params = members["params"]
	return r, nil
}

// readParams reads parameters by name, or by position with the names in order.
func readParams(raw json.RawMessage, order []string) *params {
	p := &params{values: make(map[string]json.RawMessage)}
	var list []json.RawMessage
	switch {
	case !given(raw) || json.Unmarshal(raw, &p.values) == nil:
	case json.Unmarshal(raw, &list) != nil:
		p.fail("the parameters are not an object or a list")
	case len(list) > len(order):
		p.fail("%d parameters given, the method has %d", len(list), len(order))
	default:
		for i, v := range list {
			p.values[order[i]] = v
		}
	}
	return p
}
