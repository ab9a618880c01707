// Package yamltext keeps texts away from the YAML parser that would keep it busy,
// and says in one line what it found wrong.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// Unreadable tells why text cannot be a file of settings at all; empty when it can.
func Unreadable(text []byte, maxBytes int) string {
	switch {
	case len(text) > maxBytes:
		return fmt.Sprintf("larger than %d bytes", maxBytes)
	case !utf8.Valid(text):
		line := 1 + bytes.Count(text[:invalidAt(text)], []byte("\n"))
		return fmt.Sprintf("line %d is not valid UTF-8", line)
	case bytes.IndexByte(text, 0) >= 0:
		return "holds a NUL byte; it is not text"
	case TooDeep(text):
		return "nested too deeply"
	}
	return ""
}

func invalidAt(text []byte) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return at
}

// maxNesting is how deep a text may be nested.
const maxNesting = 100

// TooDeep tells whether a text is nested so deeply that the recursive parser
// should not see it.
func TooDeep(text []byte) bool { return deepestBracket(text) > maxNesting || manyDashes(text) }

// dashes are lists in lists on one line.
var dashes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:[-?:][ \t]+)+`) })

// manyDashes finds lists in lists for which the parser's time grows with the
// square of their depth. They are counted here: an expression that counts is
// slow to compile, and to match where it nearly does.
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

// deepestBracket counts the brackets that are open at once.
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

// Problem turns an error of the parser, which prints a piece of the file, into one
// line with its place.
func Problem(name string, err error) error {
	var placed interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &placed) && placed.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", name, placed.GetToken().Position.Line, placed.GetMessage())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s: %s", name, first)
}
