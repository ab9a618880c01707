package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// statusCanceled is what nginx made customary for a request its client gave up.
const statusCanceled = 499

// outcome is the HTTP form of an error code.
type outcome struct {
	status int
	title  string
	// detail is for errors that have no message of their own.
	detail string
}

// outcomeOf is the one table from codes to statuses.
func outcomeOf(code perdure.Code) outcome {
	switch code {
	case perdure.CodeInvalid:
		return outcome{http.StatusBadRequest, "Invalid request", "the request is not valid"}
	case perdure.CodeNotFound:
		return outcome{http.StatusNotFound, "Not found", "the requested resource does not exist"}
	case perdure.CodeConflict:
		return outcome{http.StatusConflict, "Conflict", "the current state does not allow the request"}
	case perdure.CodeLeaseLost:
		return outcome{http.StatusConflict, "Lease lost", "the lease was taken over"}
	case perdure.CodeBudgetExceeded:
		return outcome{http.StatusPaymentRequired, "Budget exceeded", "the tree's budget does not allow it"}
	case perdure.CodeCanceled:
		return outcome{statusCanceled, "Canceled", "the request was canceled"}
	case perdure.CodeUnavailable:
		return outcome{http.StatusServiceUnavailable, "Unavailable", "the store is temporarily unavailable"}
	case perdure.CodeDamaged:
		return outcome{http.StatusInternalServerError, "Damaged", "the store is damaged"}
	default:
		return outcome{http.StatusInternalServerError, "Internal error",
			"internal error; see the log of the server for its cause"}
	}
}

// statusError gives an error a more exact status than its code's.
type statusError struct {
	status int
	err    *perdure.Error
}

// Error is that of the error inside.
func (e *statusError) Error() string { return e.err.Error() }

// Unwrap returns the error inside.
func (e *statusError) Unwrap() error { return e.err }

func invalid(op, msg, hint string) *perdure.Error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: msg, Hint: hint}
}

func problemOf(err error) client.Problem {
	var own *perdure.Error
	if !errors.As(err, &own) {
		own = &perdure.Error{Code: perdure.CodeInternal}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			own.Code = perdure.CodeCanceled
		}
	}
	out := outcomeOf(own.Code)
	p := client.Problem{
		Type:   "urn:perdure:error:" + string(own.Code),
		Title:  out.title,
		Status: out.status,
		Detail: own.Msg,
		Code:   own.Code,
		Op:     own.Op,
		Hint:   perdure.HintOf(own),
	}
	var exact *statusError
	if errors.As(err, &exact) {
		p.Status = exact.status
	}
	var state *perdure.StateError // the one cause that is safe to show
	if errors.As(err, &state) {
		p.Transition = &client.Transition{Task: state.Task, Is: state.Is, Want: state.Want}
		p.Detail = cmp.Or(p.Detail, state.Error())
	}
	p.Detail = cmp.Or(p.Detail, out.detail)
	return p
}

// fail answers with a problem document and logs the error with its cause, which the
// document does not hold.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	level, msg := slog.LevelDebug, "request refused"
	switch {
	case p.Code == perdure.CodeInternal:
		level, msg = slog.LevelError, "request failed"
	case p.Status >= http.StatusInternalServerError:
		level, msg = slog.LevelWarn, "request failed"
	}
	//nolint:sloglint // one of the constants above
	s.log.Log(r.Context(), level, msg, "pattern", r.Pattern, "code", string(p.Code), "error", err)
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"urn:perdure:error:internal","status":500,"code":"internal"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("Content-Length")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
