package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// What can be wrong, to compare with by errors.Is.
var (
	// ErrRefused: a folder that is never taken as a workspace: the root of the
	// file system, the home folder or one above it, a bare repository, the
	// inside of .git or .perdure.
	ErrRefused = errors.New("not a workspace")
	// ErrGone: the folder of the workspace is not there.
	ErrGone = errors.New("workspace is gone")
	// ErrNotFound: there is no such snapshot, or no such file in it.
	ErrNotFound = errors.New("no such snapshot")
	// ErrDamaged: what is stored is not what was written, or is not there.
	ErrDamaged = errors.New("snapshot is damaged")
	// ErrLimit: too many files, or the store may not grow further.
	ErrLimit = errors.New("beyond a limit")
	// ErrDiskFull: the disk of the store or of the workspace is full.
	ErrDiskFull = errors.New("disk is full")
	// ErrInTheWay: something that is no part of snapshots has the place of a
	// file that is to be restored. Nothing was changed.
	ErrInTheWay = errors.New("something is in the way")
	// ErrVerify: after a restore the files are not those of the snapshot:
	// somebody writes in the workspace. The restore can be run again.
	ErrVerify = errors.New("files differ after the restore")
)

// Error is what the functions of this package return. It matches its Kind and
// its cause by errors.Is.
type Error struct {
	// Kind is one of the values above, or nil.
	Kind error
	// Op is what was tried: "take snapshot".
	Op string
	// Name is the folder, file or snapshot it is about; may be empty.
	Name string
	// Msg says more; may be empty.
	Msg string
	// Hint says what can be done about it; may be empty.
	Hint string
	// Err is the cause; may be nil.
	Err error
}

// Error returns `op "name": kind: msg: cause`, without the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Name != "" {
		fmt.Fprintf(&b, " %q", e.Name)
	}
	if e.Kind != nil {
		b.WriteString(": " + e.Kind.Error())
	}
	if e.Msg != "" {
		b.WriteString(": " + e.Msg)
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

// Wrap makes an *Error of an error of the file system, for what is done beside
// snapshots: of a full disk it says what can be done.
func Wrap(op, name string, err error) error { return wrap(op, name, err) }

// wrap makes an *Error of err, which keeps what it says if it is one already.
func wrap(op, name string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &Error{Op: op, Name: name, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		e.Kind = ErrDiskFull
		e.Hint = "free some space and try again; snapshots taken before are whole"
	}
	return e
}
