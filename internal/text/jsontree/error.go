package jsontree

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors, to compare with by errors.Is.
var (
	// ErrSyntax is the kind of a text that is not valid JSON.
	ErrSyntax = errors.New("invalid JSON")
	// ErrLimit is the kind of a text that is too long or nested too deeply.
	ErrLimit = errors.New("limit exceeded")
	// ErrName is the kind of a repeated or unknown name in an object.
	ErrName = errors.New("invalid name")
	// ErrType is the kind of a value of another type than wanted.
	ErrType = errors.New("wrong type")
)

// Error describes what is wrong with a JSON text, and where.
type Error struct {
	// Kind is one of the errors above.
	Kind error
	// File is the name of the text; can be empty.
	File string
	// Offset is the place in the text; Line and Column are the same, counted from
	// 1, the column in characters. Line is 0 if the place is not known.
	Offset, Line, Column int
	// Field is the path of the value, as in "tasks[2].prompt"; can be empty.
	Field string
	// Msg says what is wrong: "want a string, found a number".
	Msg string
	// Hint says how to correct it; can be empty.
	Hint string
}

// Error returns "file.json:12:5: field tasks[2].prompt: want a string, found a
// number", without the parts that are not known and without the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		if b.Len() > 0 {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%d:%d", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString("field " + e.Field + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// In sets the place of the error to an offset of a text and returns the error.
func (e *Error) In(text []byte, offset int) *Error {
	e.Offset = offset
	e.Line, e.Column = Position(text, offset)
	return e
}
