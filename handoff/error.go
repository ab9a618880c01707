package handoff

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The kinds of errors, to compare with by errors.Is.
var (
	// ErrNotFound: the file does not exist.
	ErrNotFound = errors.New("no builder-state.json")
	// ErrSyntax: the file is not valid JSON. It is not changed.
	ErrSyntax = errors.New("not valid JSON")
	// ErrInvalid: the file is JSON, but a value in it is invalid.
	ErrInvalid = errors.New("invalid")
	// ErrLimit: the file is larger or nested deeper than this package reads.
	ErrLimit = errors.New("limit exceeded")
	// ErrNoTask: the file has no such place for a checkpoint.
	ErrNoTask = errors.New("no such task")
	// ErrOtherTask: the checkpoint belongs to another task.
	ErrOtherTask = errors.New("checkpoint of another task")
	// ErrReadOnly: the file cannot be changed.
	ErrReadOnly = errors.New("read-only")
	// ErrConflict: another process changed the file or holds its lock.
	ErrConflict = errors.New("conflict")
	// ErrContract: a verification contract cannot be resolved. It is missing,
	// not passed.
	ErrContract = errors.New("no verification contract")
)

// Error is the error of the functions of this package. It matches its Kind and
// its cause by errors.Is. Its text is for people.
type Error struct {
	// Kind is one of the values above.
	Kind error
	// Op is the operation: "read".
	Op string
	// File is the file; can be empty.
	File string
	// Line and Column are the place in the file, counted from 1, columns in
	// characters; 0 for the whole file.
	Line, Column int
	// Msg says what is wrong.
	Msg string
	// Hint says how to solve it; can be empty.
	Hint string
	// Err is the cause; can be nil.
	Err error
}

// Error returns "op file.json:3:7: msg: cause", without the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, " %s:%d:%d", e.File, e.Line, e.Column)
	case e.File != "":
		fmt.Fprintf(&b, " %q", e.File)
	}
	if e.Msg != "" {
		b.WriteString(": " + e.Msg)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	} else if e.Msg == "" && e.Kind != nil {
		b.WriteString(": " + e.Kind.Error())
	}
	return b.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.Err}, func(err error) bool { return err == nil })
}
