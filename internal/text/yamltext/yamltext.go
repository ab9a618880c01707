// Package yamltext reads YAML that other people wrote. It refuses text that would keep the
// library busy or make it allocate much more than the text: too many bytes, anchors and
// aliases, deep nesting, mappings with too many keys. Every reader of YAML uses it.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Error is why a text cannot be read.
type Error struct {
	// Line and Column are the place, counted from 1; 0 if it is not known.
	Line, Column int
	// Msg is one line without the place.
	Msg string
	// Limit is set if a limit of this package was exceeded. Otherwise the text is not valid
	// YAML, or has not the expected form.
	Limit bool
}

// Error returns the message with its place.
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.Msg
	case e.Column == 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// In returns the error for a file: its name, the place in the form of compilers, the
// message.
func (e *Error) In(name string) error {
	switch {
	case e.Line == 0:
		return fmt.Errorf("%s: %s", name, e.Msg)
	case e.Column == 0 || !e.Limit:
		return fmt.Errorf("%s:%d: %s", name, e.Line, e.Msg)
	}
	return fmt.Errorf("%s:%d:%d: %s", name, e.Line, e.Column, e.Msg)
}

// Message returns the message with the column, for errors that name the line only.
func (e *Error) Message() string {
	if !e.Limit || e.Column == 0 {
		return e.Msg
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Msg)
}

// Parse parses text of at most maxBytes.
func Parse(text []byte, maxBytes int) (file *ast.File, problem *Error) {
	return parse(text, maxBytes, checked)
}

// ParseAliased parses text that may have anchors and aliases. A caller that follows aliases
// limits what they repeat.
func ParseAliased(text []byte, maxBytes int) (file *ast.File, problem *Error) {
	return parse(text, maxBytes, func(text []byte, maxBytes int) (token.Tokens, *Error) {
		if problem := unreadable(text, maxBytes); problem != nil {
			return nil, problem
		}
		tokens := lexer.Tokenize(string(text))
		return tokens, crowded(tokens)
	})
}

func parse(text []byte, maxBytes int, check func([]byte, int) (token.Tokens, *Error)) (file *ast.File, problem *Error) {
	defer recovered(&problem)
	tokens, problem := check(text, maxBytes)
	if problem != nil {
		return nil, problem
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, placed(err)
	}
	return file, nil
}

// Decode parses text of at most maxBytes into a value. Unknown fields are errors. An empty
// text leaves the value as it is.
func Decode(text []byte, maxBytes int, to any) (problem *Error) {
	defer recovered(&problem)
	if _, problem := checked(text, maxBytes); problem != nil {
		return problem
	}
	if err := yaml.UnmarshalWithOptions(text, to, yaml.Strict()); err != nil {
		return placed(err)
	}
	return nil
}

// recovered sets the error for a panic of the library, which some text causes.
func recovered(problem **Error) {
	if v := recover(); v != nil {
		*problem = &Error{Msg: fmt.Sprintf("the YAML cannot be parsed (%v)", v)}
	}
}

// placed returns an error of the library, which prints a part of the text, as one line with
// its place.
func placed(err error) *Error {
	var e interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &e) && e.GetToken() != nil && e.GetToken().Position != nil {
		at := e.GetToken().Position
		return &Error{Line: at.Line, Column: at.Column, Msg: e.GetMessage()}
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return &Error{Msg: msg}
}

// checked returns the tokens of a text that keeps the limits.
func checked(text []byte, maxBytes int) (token.Tokens, *Error) {
	if problem := unreadable(text, maxBytes); problem != nil {
		return nil, problem
	}
	if empty(text) {
		return nil, nil
	}
	tokens := lexer.Tokenize(string(text))
	if problem := aliased(tokens); problem != nil {
		return nil, problem
	}
	return tokens, crowded(tokens)
}

// empty reports whether text has comments only. A settings file often is: then a command need not
// wait for the library, which is slow with comments.
func empty(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.Trim(line, " \r\n"); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// unreadable returns why text is not the text of a YAML file, nil if it is.
func unreadable(text []byte, maxBytes int) *Error {
	switch {
	case len(text) > maxBytes:
		return &Error{Msg: fmt.Sprintf("larger than %d bytes", maxBytes), Limit: true}
	case !utf8.Valid(text):
		line, _ := jsontree.Position(text, jsontree.InvalidUTF8(text))
		return &Error{Msg: fmt.Sprintf("line %d is not valid UTF-8", line)}
	case bytes.IndexByte(text, 0) >= 0:
		return &Error{Msg: "holds a NUL byte; it is not text"}
	case tooDeep(text):
		return &Error{Msg: "nested too deeply", Limit: true}
	}
	return nil
}

func limitAt(t *token.Token, format string, args ...any) *Error {
	e := &Error{Msg: fmt.Sprintf(format, args...), Limit: true}
	if t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// aliased refuses anchors and aliases: a few lists of aliases of lists expand to gigabytes.
func aliased(tokens token.Tokens) *Error {
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType:
			return limitAt(t, "an anchor (&) is not allowed here; repeat the value where it is used")
		case token.AliasType:
			return limitAt(t, "an alias (*) is not allowed here; repeat the value, or quote text that begins with *")
		}
	}
	return nil
}

// maxKeys is the limit of the keys of one mapping: the time and memory of the parser grow
// with their square.
const maxKeys = 2000

// crowded refuses mappings with too many keys. The keys of a mapping in block style are in
// one column; a line that begins further left, or the dash of a list, ends it.
func crowded(tokens token.Tokens) *Error {
	keys := make(map[int]int) // by column
	line, column, entry, brackets := 0, 0, true, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		}
		if t.Position == nil || t.Type == token.CommentType || brackets > 0 { // in brackets the time is linear
			continue
		}
		first := t.Position.Line != line
		if first || entry { // the first token of a line, or after a dash
			line, column = t.Position.Line, t.Position.Column
			for c := range keys {
				if c > column {
					delete(keys, c)
				}
			}
		}
		entry = t.Type == token.SequenceEntryType
		if t.Type == token.MappingValueType && !first || t.Type == token.MappingKeyType {
			if keys[column]++; keys[column] > maxKeys {
				return limitAt(t, "the mapping has more than %d keys", maxKeys)
			}
		}
	}
	return nil
}

// maxNesting is how deep the YAML can be nested.
const maxNesting = 100

// tooDeep reports whether text is nested too deeply for the recursive parser.
func tooDeep(text []byte) bool { return deepestBracket(text) > maxNesting || manyDashes(text) }

// manyDashes reports whether text has lists in lists on one line so deep that the parser, whose
// time grows with the square of the depth, would be slow.
func manyDashes(text []byte) bool {
	dashes := 0 // in a row, with blanks behind each
	for i := 0; i < len(text); i++ {
		if strings.IndexByte("-?:", text[i]) < 0 || i+1 == len(text) || !blank(text[i+1]) {
			dashes = 0
			continue
		}
		if dashes++; dashes >= maxNesting {
			return true
		}
		for i+1 < len(text) && blank(text[i+1]) {
			i++
		}
	}
	return false
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

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
