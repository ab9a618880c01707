package handoff

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong, to compare with by errors.Is.
var (
	// ErrNotFound: there is no file.
	ErrNotFound = errors.New("no builder-state.json")
	// ErrSyntax: the file is not valid JSON. It is left alone.
	ErrSyntax = errors.New("not valid JSON")
	// ErrInvalid: the file is JSON, but something in it is not what it has to be.
	ErrInvalid = errors.New("invalid")
	// ErrLimit: the file is larger or nested deeper than this package reads.
	ErrLimit = errors.New("beyond a limit")
	// ErrNoTask: the file has no such place for a checkpoint.
	ErrNoTask = errors.New("no such task")
	// ErrOtherTask: the checkpoint belongs to another task.
	ErrOtherTask = errors.New("checkpoint of another task")
	// ErrReadOnly: the file may not be changed.
	ErrReadOnly = errors.New("read-only")
	// ErrConflict: somebody else changed the file meanwhile, or holds its lock.
	ErrConflict = errors.New("conflict")
	// ErrContract: a verification contract cannot be resolved. It is missing,
	// not passed.
	ErrContract = errors.New("no verification contract")
)

// Error is what the functions of this package return. It matches its Kind and
// its cause by errors.Is. The texts are for people and safe to show.
type Error struct {
	// Kind is one of the values above.
	Kind error
	// Op is what was tried: "read".
	Op string
	// File is the file it is about; may be empty.
	File string
	// Line and Column say where in the file, from 1, columns in characters; 0
	// when it is about the whole file.
	Line, Column int
	// Msg says what is wrong.
	Msg string
	// Hint says what can be done about it; may be empty.
	Hint string
	// Err is the cause; may be nil.
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
	msg := e.Msg
	if msg == "" && e.Err == nil && e.Kind != nil {
		msg = e.Kind.Error()
	}
	if msg != "" {
		b.WriteString(": " + msg)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}
