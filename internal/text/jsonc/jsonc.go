// Package jsonc edits JSON documents with comments, as agents read their settings, by
// insertions and removals: everything else stays byte for byte as it is.
package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind byte

// Kinds of values. Literal is a number, true, false or null.
const (
	Object  Kind = '{'
	Array   Kind = '['
	String  Kind = '"'
	Literal Kind = 'l'
)

// Value is a value of a document, from the offset Start to End.
type Value struct {
	Kind       Kind
	Start, End int
	// Name is the name of a member of an object, which begins at the offset At.
	Name string
	At   int
	// Values are the members or items. Comma is set if a comma follows the last one.
	Values []*Value
	Comma  bool
}

// Error is a fault in a document.
type Error struct {
	Line int
	Msg  string
}

// Error returns the line and the fault.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// maxDepth limits the levels of a document.
const maxDepth = 500

type parser struct {
	text []byte
	at   int
}

// Parse parses a document. Comments and commas after the last member or item are allowed. The
// error is an [*Error].
func Parse(text []byte) (*Value, error) {
	p := &parser{text: text}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		p.at = 3
	}
	if !utf8.Valid(text) {
		return nil, p.fail("the file is not UTF-8")
	}
	v, err := p.value(0)
	if err == nil {
		err = p.space()
	}
	if err == nil && p.at < len(text) {
		err = p.fail("want the end of the file, found %s", p.found())
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (p *parser) fail(format string, args ...any) error {
	at := min(p.at, len(p.text))
	return &Error{Line: 1 + bytes.Count(p.text[:at], []byte("\n")), Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) found() string {
	if p.at >= len(p.text) {
		return "the end of the file"
	}
	r, _ := utf8.DecodeRune(p.text[p.at:])
	return fmt.Sprintf("%q", r)
}

// space skips white space and comments.
func (p *parser) space() error {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			p.at++
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return p.fail("the comment does not end")
			}
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) value(depth int) (*Value, error) {
	if err := p.space(); err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, p.fail("more than %d levels", maxDepth)
	}
	v := &Value{Start: p.at, At: p.at, Kind: Literal}
	if p.at >= len(p.text) {
		return nil, p.fail("want a value, found %s", p.found())
	}
	var err error
	switch c := p.text[p.at]; c {
	case '{', '[':
		v.Kind = Kind(c)
		err = p.composite(v, c+2, depth)
	case '"':
		v.Kind = String
		_, err = p.str()
	default:
		end := p.at
		for end < len(p.text) && bytes.IndexByte([]byte(" \t\r\n,]}/"), p.text[end]) < 0 {
			end++
		}
		if word := p.text[p.at:end]; len(word) == 0 || !json.Valid(word) {
			return nil, p.fail("want a value, found %s", p.found())
		}
		p.at = end
	}
	v.End = p.at
	return v, err
}

// str parses a string.
func (p *parser) str() (string, error) {
	end := p.at + 1
	for end < len(p.text) && p.text[end] != '"' && p.text[end] != '\n' {
		if p.text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.text) || p.text[end] != '"' {
		return "", p.fail("the string does not end")
	}
	var s string
	if err := json.Unmarshal(p.text[p.at:end+1], &s); err != nil {
		return "", p.fail("the string is not valid: %v", err)
	}
	p.at = end + 1
	return s, nil
}

// composite parses an object or an array.
func (p *parser) composite(v *Value, closing byte, depth int) error {
	p.at++
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.at < len(p.text) && p.text[p.at] == closing {
			p.at++
			return nil
		}
		if len(v.Values) > 0 && !v.Comma {
			return p.fail("want a comma or %q, found %s", closing, p.found())
		}
		item, err := p.member(v.Kind, depth)
		if err != nil {
			return err
		}
		v.Values = append(v.Values, item)
		if err := p.space(); err != nil {
			return err
		}
		v.Comma = p.at < len(p.text) && p.text[p.at] == ','
		if v.Comma {
			p.at++
		}
	}
}

func (p *parser) member(of Kind, depth int) (*Value, error) {
	at, name := p.at, ""
	if of == Object {
		if p.at >= len(p.text) || p.text[p.at] != '"' {
			return nil, p.fail("want a name in quotes, found %s", p.found())
		}
		var err error
		if name, err = p.str(); err != nil {
			return nil, err
		}
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.at >= len(p.text) || p.text[p.at] != ':' {
			return nil, p.fail("want a colon, found %s", p.found())
		}
		p.at++
	}
	item, err := p.value(depth + 1)
	if err != nil {
		return nil, err
	}
	item.At, item.Name = at, name
	return item, nil
}

// Member returns the last member of an object with a name; nil if there is none.
func (v *Value) Member(name string) *Value {
	for _, m := range slices.Backward(v.Values) {
		if v.Kind == Object && m.Name == name {
			return m
		}
	}
	return nil
}

// Decode decodes a value without its comments.
func (v *Value) Decode(text []byte, to any) error { return json.Unmarshal(v.plain(text), to) }

// plain returns a value as JSON.
func (v *Value) plain(text []byte) []byte {
	if v.Kind != Object && v.Kind != Array {
		return text[v.Start:v.End]
	}
	var b bytes.Buffer
	b.WriteByte(byte(v.Kind))
	for i, item := range v.Values {
		if i > 0 {
			b.WriteByte(',')
		}
		if v.Kind == Object {
			name, err := json.Marshal(item.Name)
			if err != nil {
				continue // a string always encodes
			}
			b.Write(append(name, ':'))
		}
		b.Write(item.plain(text))
	}
	b.WriteByte(byte(v.Kind) + 2)
	return b.Bytes()
}
