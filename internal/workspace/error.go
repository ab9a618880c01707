package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// Errors of this package, for errors.Is.
var (
	// ErrRefused: the folder cannot be a workspace: the root of the file system, the home
	// folder or one above it, a bare repository, the inside of .git or .perdure.
	ErrRefused = errors.New("not a workspace")
	// ErrGone: the folder of the workspace does not exist.
	ErrGone = errors.New("workspace is missing")
	// ErrNotFound: there is no such snapshot, or no such file in it.
	ErrNotFound = errors.New("no such snapshot")
	// ErrDamaged: stored data is missing or differs from the data written.
	ErrDamaged = errors.New("snapshot is damaged")
	// ErrLimit: there are too many files, or the store has reached its size.
	ErrLimit = errors.New("limit exceeded")
	// ErrDiskFull: the disk of the store or of the workspace is full.
	ErrDiskFull = errors.New("disk is full")
	// ErrInTheWay: a file that is not part of snapshots has the path of a file that is to be
	// restored. Nothing was changed.
	ErrInTheWay = errors.New("files outside of snapshots would be overwritten")
	// ErrVerify: after a restore the files are not those of the snapshot, because another
	// program writes in the workspace. The restore can be run again.
	ErrVerify = errors.New("files differ after the restore")
)

// Error is the error of the functions of this package. It matches its Kind and its cause by
// errors.Is.
type Error struct {
	// Kind is one of the values above, or nil.
	Kind error
	// Op is the operation: "take snapshot".
	Op string
	// Name is the folder, file or snapshot concerned; may be empty.
	Name string
	// Msg is a more precise description; may be empty.
	Msg string
	// Hint is what the user can do; may be empty.
	Hint string
	// Err is the cause; may be nil.
	Err error
}

// Error returns `op "name": kind: msg: cause`, without the hint.
func (e *Error) Error() string {
	text := e.Op
	if e.Name != "" {
		text += fmt.Sprintf(" %q", e.Name)
	}
	if e.Kind != nil {
		text += ": " + e.Kind.Error()
	}
	if e.Msg != "" {
		text += ": " + e.Msg
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.Err}, func(err error) bool { return err == nil })
}

// Wrap returns err as an *Error, unless it is one already. For a full disk, also of files
// that are not part of snapshots, it has a hint.
func Wrap(op, name string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &Error{Op: op, Name: name, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		e.Kind = ErrDiskFull
		e.Hint = "free disk space and try again; earlier snapshots are complete"
	}
	return e
}
