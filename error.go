package perdure

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Code is the kind of an error. It means the same in a task row, over HTTP and as an exit
// status.
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

// ErrStoreRemoved is the error of a process whose store was removed or replaced by another program.
var ErrStoreRemoved = wrap("use store", sqldb.ErrRemoved)

// Error is the error that the methods of this package return. Msg and Hint are safe to
// show to users; Err is the cause and is never sent to clients.
type Error struct {
	Code Code
	// Op is the operation that failed: "claim task".
	Op string
	// Msg describes the failure.
	Msg string
	// Hint is what the user can do; may be empty.
	Hint string
	Err  error
}

// Values for errors.Is; each matches every Error of its code.
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

// Error returns "op: msg: cause" without the hint, and without a message that the cause
// contains.
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
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the first hint in err's chain.
func HintOf(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	return cmp.Or(e.Hint, HintOf(e.Err))
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

func noTask(op string, id int64) *Error {
	return &Error{Code: CodeNotFound, Op: op, Msg: "there is no task \"" + TaskID(id).String() + "\"",
		Hint: "`perdure tree TREE` lists the tasks of a tree"}
}

func noTree(op string, id TreeID) *Error {
	return &Error{Code: CodeNotFound, Op: op, Msg: "there is no tree \"" + string(id) + "\"",
		Hint: "`perdure status` lists the trees of this store"}
}

// orNotFound returns notFound instead of sql.ErrNoRows.
func orNotFound(err error, notFound *Error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return notFound
	}
	return err
}

func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// IsReadOnly reports whether an error says that the store cannot be written: its folder, its file or
// its file system is read-only. [Config].ReadOnly opens such a store.
func IsReadOnly(err error) bool { return errors.Is(err, sqldb.ErrReadOnly) || atomicfile.ReadOnly(err) }

// StateError reports a transition that [State.CanBecome] does not allow. It is the cause
// of a conflict.
type StateError struct {
	Task TaskID
	// Is is the state of the task, Want the requested state.
	Is, Want State
}

// Error names the task and both states.
func (e *StateError) Error() string {
	return fmt.Sprintf("task %q is %s and cannot become %s", e.Task, e.Is, e.Want)
}

const hintReadOnly = "perdure needs to write here; check the folder's permissions, or set PERDURE_DIR"

// wrap adds the code and a hint to an error of the database.
func wrap(op string, err error) error {
	if _, own := errors.AsType[*Error](err); own || err == nil {
		return err
	}
	e := &Error{Code: CodeInternal, Op: op, Err: err}
	// The message repeats the kind of the error, because clients do not receive the cause.
	describe := func(code Code, kind error, hint string) { e.Code, e.Msg, e.Hint = code, kind.Error(), hint }
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Code = CodeCanceled
	case errors.Is(err, sqldb.ErrRemoved):
		describe(CodeUnavailable, sqldb.ErrRemoved, "a loop that works here puts them back before its next step; then "+
			"repeat the command. Without a loop, `perdure restore` puts back their copy")
	case errors.Is(err, sqldb.ErrBusy):
		describe(CodeUnavailable, sqldb.ErrBusy,
			"another process has been writing to this store for too long; see `perdure doctor`")
	case errors.Is(err, sqldb.ErrDamaged):
		describe(CodeDamaged, sqldb.ErrDamaged,
			"nothing was changed; restore the store from a backup, or move it away to start a new one")
	case errors.Is(err, sqldb.ErrTooNew):
		describe(CodeUnavailable, sqldb.ErrTooNew, "use the newer perdure that wrote this store")
	case errors.Is(err, sqldb.ErrNetworkFS):
		describe(CodeInvalid, sqldb.ErrNetworkFS,
			"put the store on a local disk (PERDURE_DIR), or share one PostgreSQL (PERDURE_STORE)")
	case errors.Is(err, sqldb.ErrUnreachable):
		describe(CodeUnavailable, sqldb.ErrUnreachable,
			"check that the database server runs, and its address (PERDURE_STORE)")
	case errors.Is(err, sqldb.ErrFull), atomicfile.DiskFull(err):
		describe(CodeUnavailable, sqldb.ErrFull, "nothing was lost; free some space and run `perdure resume`")
	case errors.Is(err, sqldb.ErrIO):
		describe(CodeUnavailable, sqldb.ErrIO,
			"check the system's log for errors of the disk, then run `perdure doctor`")
	case errors.Is(err, sqldb.ErrReadOnly), atomicfile.ReadOnly(err):
		describe(CodeUnavailable, sqldb.ErrReadOnly, hintReadOnly)
	}
	return e
}
