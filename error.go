package perdure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Code decides what a program does about an error. It keeps its meaning in a
// task row, over HTTP and as an exit status.
type Code string

// The codes.
const (
	CodeInvalid        Code = "invalid"
	CodeNotFound       Code = "not_found"
	CodeConflict       Code = "conflict"
	CodeLeaseLost      Code = "lease_lost"
	CodeBudgetExceeded Code = "budget_exceeded"
	CodeCanceled       Code = "canceled"
	CodeUnavailable    Code = "unavailable"
	CodeDamaged        Code = "damaged"
	CodeInternal       Code = "internal"
)

// Error is what the methods of this package return. Msg and Hint are for people
// and safe to show; Err is the cause and is never sent over the wire.
type Error struct {
	Code Code
	// Op is what was tried: "claim task".
	Op string
	// Msg says what was wrong.
	Msg string
	// Hint says what can be done about it; may be empty.
	Hint string
	Err  error
}

// Values to compare with by errors.Is; they match every Error of their code.
var (
	ErrInvalid        = &Error{Code: CodeInvalid}
	ErrNotFound       = &Error{Code: CodeNotFound}
	ErrConflict       = &Error{Code: CodeConflict}
	ErrLeaseLost      = &Error{Code: CodeLeaseLost}
	ErrBudgetExceeded = &Error{Code: CodeBudgetExceeded}
	ErrCanceled       = &Error{Code: CodeCanceled}
	ErrUnavailable    = &Error{Code: CodeUnavailable}
	ErrDamaged        = &Error{Code: CodeDamaged}
)

// Error returns "op: msg: cause" without the hint; a message that the cause
// holds is not said twice.
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	cause := ""
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	if e.Msg != "" && !strings.Contains(cause, e.Msg) {
		parts = append(parts, e.Msg)
	}
	if cause != "" {
		parts = append(parts, cause)
	}
	if len(parts) == 0 {
		return string(e.Code)
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches any *Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of the first *Error in err's chain, CodeInternal when
// there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the first hint in err's chain.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

func invalidf(op, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Op: op, Msg: fmt.Sprintf(format, args...)}
}

func notFoundf(op, format string, args ...any) *Error {
	return &Error{Code: CodeNotFound, Op: op, Msg: fmt.Sprintf(format, args...)}
}

func conflictf(op, format string, args ...any) *Error {
	return &Error{Code: CodeConflict, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// StateError tells of a transition that the table of states does not have. It
// is the cause of a conflict.
type StateError struct {
	Task TaskID
	// Is is the state the task is in, Want the state asked for.
	Is, Want State
}

// Error names the task and both states.
func (e *StateError) Error() string {
	return fmt.Sprintf("task %q is %s and cannot become %s", e.Task, e.Is, e.Want)
}

// wrap gives an error of the database its code, and a hint where one helps.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	e := &Error{Code: CodeInternal, Op: op, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Code = CodeCanceled
	case errors.Is(err, sqldb.ErrBusy):
		e.tell(CodeUnavailable, sqldb.ErrBusy, "another process writes to this store for long; see `perdure doctor`")
	case errors.Is(err, sqldb.ErrDamaged):
		e.tell(CodeDamaged, sqldb.ErrDamaged, "nothing was changed; restore the store from a backup, or move it away to start a new one")
	case errors.Is(err, sqldb.ErrTooNew):
		e.tell(CodeUnavailable, sqldb.ErrTooNew, "use the newer perdure that wrote this store")
	case errors.Is(err, sqldb.ErrNetworkFS):
		e.tell(CodeInvalid, sqldb.ErrNetworkFS, "put the store on a local disk (PERDURE_DIR), or share one PostgreSQL (PERDURE_STORE)")
	case errors.Is(err, sqldb.ErrUnreachable):
		e.tell(CodeUnavailable, sqldb.ErrUnreachable, "check that the database server runs, and its address (PERDURE_STORE)")
	case errors.Is(err, sqldb.ErrFull), atomicfile.DiskFull(err):
		e.tell(CodeUnavailable, sqldb.ErrFull, "nothing was lost; free some space and run `perdure resume`")
	case errors.Is(err, sqldb.ErrIO):
		e.tell(CodeUnavailable, sqldb.ErrIO, "look at the system's log for what is wrong with the disk, then run `perdure doctor`")
	case errors.Is(err, sqldb.ErrReadOnly), atomicfile.ReadOnly(err):
		e.tell(CodeUnavailable, sqldb.ErrReadOnly, "perdure needs to write here; check the folder's permissions, or set PERDURE_DIR")
	}
	return e
}

// tell gives an error its code and what may be said of it over the wire, where
// the cause is not told.
func (e *Error) tell(code Code, kind error, hint string) {
	e.Code, e.Msg, e.Hint = code, kind.Error(), hint
}
