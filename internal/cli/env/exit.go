package env

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
)

// The exit statuses. Programs rely on them.
const (
	StatusDone        = 0
	StatusFailed      = 1
	StatusUsage       = 2
	StatusIncomplete  = 3
	StatusNotFound    = 4
	StatusConflict    = 5
	StatusGate        = 6
	StatusUnavailable = 7
	StatusNewSession  = 8 // of an agent whose context is full
	StatusInterrupted = 130
)

// ErrInterrupted is the cause of a context that the first interrupt ended.
var ErrInterrupted = errors.New("interrupted")

// Exit is an error with an exit status of its own. With an empty message it
// prints nothing.
type Exit struct {
	Status    int
	Msg, Hint string
}

// Error returns the message.
func (e *Exit) Error() string { return e.Msg }

// StatusOf returns the exit status of a command that returned err.
func StatusOf(err error) int {
	if err == nil {
		return StatusDone
	}
	if exit, ok := errors.AsType[*Exit](err); ok {
		return exit.Status
	}
	if errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled) {
		return StatusInterrupted
	}
	statuses := map[perdure.Code]int{perdure.CodeInvalid: StatusUsage, perdure.CodeBudgetExceeded: StatusIncomplete,
		perdure.CodeNotFound: StatusNotFound, perdure.CodeConflict: StatusConflict, perdure.CodeLeaseLost: StatusConflict,
		perdure.CodeUnavailable: StatusUnavailable, perdure.CodeCanceled: StatusInterrupted}
	return cmp.Or(statuses[perdure.CodeOf(err)], StatusFailed)
}

// PrintError writes err and its hint to standard error.
func (e *Env) PrintError(err error) {
	msg, hint := err.Error(), perdure.HintOf(err)
	if exit, ok := errors.AsType[*Exit](err); ok {
		msg, hint = exit.Msg, exit.Hint
	}
	if msg == "" {
		return
	}
	e.Note("error: %s", paragraph(msg))
	if hint != "" {
		e.Hint("%s", paragraph(hint))
	}
}

// PrintErrorJSON writes err and its hint to standard error as one line of JSON.
func (e *Env) PrintErrorJSON(err error) {
	type problem struct {
		Code    perdure.Code `json:"code"`
		Message string       `json:"message"`
		Hint    string       `json:"hint,omitempty"`
	}
	line, _ := json.Marshal(struct { // never fails
		Error problem `json:"error"`
	}{problem{perdure.CodeOf(err), config.RedactURLs(err.Error()), perdure.HintOf(err)}})
	fmt.Fprintf(e.Err, "%s\n", line)
}

// paragraph indents the further lines of a message and makes its control
// characters visible.
func paragraph(text string) string {
	return strings.ReplaceAll(human.Visible(config.RedactURLs(strings.TrimSpace(text))), "\n", "\n  ")
}
