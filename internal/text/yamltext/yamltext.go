// Package yamltext refuses text that would keep the YAML parser busy, and writes the
// parser's errors on one line.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Unreadable returns why text cannot be a settings file at all, "" if it can.
func Unreadable(text []byte, maxBytes int) string {
	switch {
	case len(text) > maxBytes:
		return fmt.Sprintf("larger than %d bytes", maxBytes)
	case !utf8.Valid(text):
		line, _ := jsontree.Position(text, jsontree.InvalidUTF8(text))
		return fmt.Sprintf("line %d is not valid UTF-8", line)
	case bytes.IndexByte(text, 0) >= 0:
		return "holds a NUL byte; it is not text"
	case TooDeep(text):
		return "nested too deeply"
	}
	return ""
}

// maxNesting is how deep the YAML can be nested.
const maxNesting = 100

// TooDeep reports whether text is nested too deeply for the recursive parser.
func TooDeep(text []byte) bool { return deepestBracket(text) > maxNesting || manyDashes(text) }

// dashes matches lists in lists on one line.
var dashes = lazyregexp.New(`(?:[-?:][ \t]+)+`)

// manyDashes reports whether text has lists in lists so deep that the parser, whose time
// grows with the square of the depth, would be slow. The dashes are counted here: a regular
// expression that counts is slow to compile and to match.
func manyDashes(text []byte) bool {
	blank := func(c rune) bool { return c == ' ' || c == '\t' }
	for len(text) > 0 {
		at := dashes().FindIndex(text)
		if at == nil {
			return false
		}
		if len(bytes.FieldsFunc(text[at[0]:at[1]], blank)) >= maxNesting {
			return true
		}
		text = text[at[1]:]
	}
	return false
}

// deepestBracket returns the largest number of brackets open at once.
func deepestBracket(text []byte) int {
	depth, deepest := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	return deepest
}

// Place returns the line of an error of the parser, 0 if it is not known, and its message
// in one line.
func Place(err error) (line int, msg string) {
	var placed interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &placed) && placed.GetToken() != nil {
		return placed.GetToken().Position.Line, placed.GetMessage()
	}
	msg, _, _ = strings.Cut(err.Error(), "\n")
	return 0, msg
}

// Problem returns an error of the parser, which prints a part of the file, as one line
// with its place.
func Problem(name string, err error) error {
	line, msg := Place(err)
	if line > 0 {
		name = fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Errorf("%s: %s", name, msg)
}
