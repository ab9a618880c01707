package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/perdure/perdure"
)

// maxProblemBytes bounds what is read of an error.
const maxProblemBytes = 64 << 10

// Problem is the RFC 9457 document with which the server reports an error. In addition
// to the standard's members it has the code, operation and hint of a perdure.Error.
type Problem struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Code   perdure.Code `json:"code"`
	Op     string       `json:"op,omitempty"`
	Hint   string       `json:"hint,omitempty"`
	// Transition is set when a task was not in the state for the request.
	Transition *Transition `json:"transition,omitempty"`
}

// Transition is a change of a task's state that was refused.
type Transition struct {
	Task perdure.TaskID `json:"task_id"`
	Is   perdure.State  `json:"is"`
	Want perdure.State  `json:"want"`
}

// problemError reads the error out of a response.
func problemError(op string, resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes)) // a cut one is not valid JSON
	var p Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Code == "" {
		return &perdure.Error{Code: codeOf(resp.StatusCode), Op: op,
			Msg:  fmt.Sprintf("the server returned status %d without an error message", resp.StatusCode),
			Hint: "check that the address belongs to a perdure server of this version"}
	}
	e := &perdure.Error{Code: p.Code, Op: cmp.Or(p.Op, op), Msg: p.Detail, Hint: p.Hint}
	if !slices.Contains([]perdure.Code{perdure.CodeInvalid, perdure.CodeNotFound, perdure.CodeConflict,
		perdure.CodeLeaseLost, perdure.CodeBudgetExceeded, perdure.CodeCanceled, perdure.CodeUnavailable,
		perdure.CodeDamaged, perdure.CodeInternal}, p.Code) {
		e.Code = codeOf(resp.StatusCode)
	}
	if t := p.Transition; t != nil {
		state := &perdure.StateError{Task: t.Task, Is: t.Is, Want: t.Want}
		e.Err = state
		if e.Msg == state.Error() {
			e.Msg = "" // or the text would say it twice
		}
	}
	return e
}

// statusCanceled is the customary status of a request its client gave up.
const statusCanceled = 499

// codeOf is the one table from statuses to codes, for answers that carry none.
func codeOf(status int) perdure.Code {
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return perdure.CodeNotFound
	case status == http.StatusConflict || status == http.StatusPreconditionFailed:
		return perdure.CodeConflict
	case status == http.StatusPaymentRequired:
		return perdure.CodeBudgetExceeded
	case status == statusCanceled:
		return perdure.CodeCanceled
	case status == http.StatusTooManyRequests, status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout:
		return perdure.CodeUnavailable
	case status >= 400 && status <= 499:
		return perdure.CodeInvalid
	}
	return perdure.CodeInternal
}
