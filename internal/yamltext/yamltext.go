// Package yamltext keeps texts away from the YAML parser that would keep it busy,
// and says in one line what it found wrong.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// Unreadable tells why text cannot be a file of settings at all; empty when it can.
func Unreadable(text []byte, most int) string {
	switch {
	case len(text) > most:
		return fmt.Sprintf("larger than %d bytes", most)
	case !utf8.Valid(text):
		line := 1 + bytes.Count(text[:invalidAt(text)], []byte("\n"))
		return fmt.Sprintf("line %d is not valid UTF-8", line)
	case bytes.IndexByte(text, 0) >= 0:
		return "holds a NUL byte; it is not text"
	case deepestBracket(text) > 100 || manyDashes.Match(text):
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

// manyDashes matches lists in lists in lists on one line, for which the
// parser's time grows with the square of their depth.
var manyDashes = regexp.MustCompile(`([-?:][ \t]+){100}`)

// deepestBracket bounds what the recursive parser is given.
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
