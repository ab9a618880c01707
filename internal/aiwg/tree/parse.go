package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxNesting bounds how deep objects and lists stand in each other.
const maxNesting = 1000

// node is a JSON value with its place in the file.
type node struct {
	// kind is the first byte of what it is: { [ " t (boolean) n (null), and 0
	// for numbers.
	kind byte
	raw  []byte // the value as it stands
	off  int
	keys []string // of an object, in order; vals are beside them
	vals []*node  // of an object or a list
	// cut tells that the text ended, or was wrong, inside of the value: what is
	// there of it is whole.
	cut bool
}

// get returns the member of an object, the last of several, nil when there is
// none.
func (n *node) get(key string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for i := len(n.keys) - 1; i >= 0; i-- {
		if n.keys[i] == key {
			return n.vals[i]
		}
	}
	return nil
}

func (n *node) null() bool { return n == nil || n.kind == 'n' }

// syntaxError says where a text stops being JSON.
type syntaxError struct {
	off  int
	what string
}

// Error returns what is wrong there.
func (e *syntaxError) Error() string { return e.what }

// parse reads a JSON text as far as it is one. With an error it returns what
// was whole before: objects and lists that were begun are there, cut, with the
// members that are complete. The root is nil when there is nothing.
func parse(text []byte) (*node, *syntaxError) {
	p := &parser{text: text}
	p.space()
	root := p.value(0)
	p.space()
	if p.err == nil && p.at < len(p.text) {
		p.fail("there is text behind the end")
	}
	if p.err != nil && root != nil && root.cut && root.kind != '{' && root.kind != '[' {
		root = nil
	}
	return root, p.err
}

type parser struct {
	text []byte
	at   int
	err  *syntaxError
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &syntaxError{p.at, fmt.Sprintf(format, args...)}
	}
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// next returns the byte at the place, 0 at the end.
func (p *parser) next() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) value(depth int) *node {
	n := &node{off: p.at}
	switch c := p.next(); {
	case depth > maxNesting:
		p.fail("values are nested deeper than %d", maxNesting)
	case p.at >= len(p.text):
		p.fail("the text ends where a value has to be")
	case c == '{' || c == '[':
		n.kind = c
		p.container(n, depth)
	case c == '"':
		n.kind = '"'
		p.quoted()
	case c == '-' || c >= '0' && c <= '9':
		p.number(depth)
	case c == 't':
		n.kind = 't'
		p.word("true")
	case c == 'f':
		n.kind = 't'
		p.word("false")
	case c == 'n':
		n.kind = 'n'
		p.word("null")
	default:
		p.fail("%q is no JSON", shownByte(p.text[p.at:]))
	}
	n.raw, n.cut = p.text[n.off:p.at], p.err != nil
	return n
}

func shownByte(text []byte) string {
	_, size := utf8.DecodeRune(text)
	return string(text[:size])
}

func (p *parser) container(n *node, depth int) {
	end := byte('}')
	if n.kind == '[' {
		end = ']'
	}
	p.at++
	p.space()
	for first := true; p.next() != end; first = false {
		if !first && !p.comma(end) {
			return
		}
		if n.kind == '{' && !p.key(n) {
			return
		}
		v := p.value(depth + 1)
		if p.err != nil && (v.kind != '{' && v.kind != '[') {
			n.keys = n.keys[:min(len(n.keys), len(n.vals))] // the value was not whole
			return
		}
		n.vals = append(n.vals, v)
		if p.err != nil {
			return
		}
		p.space()
	}
	p.at++
}

func (p *parser) comma(end byte) bool {
	if p.next() != ',' {
		if p.at >= len(p.text) {
			p.fail("the text ends in the midst")
		} else {
			p.fail("%q stands where , or %c has to be", shownByte(p.text[p.at:]), end)
		}
		return false
	}
	p.at++
	p.space()
	if p.next() == end {
		p.fail("a value is missing after the comma")
		return false
	}
	return true
}

// key reads the name of a member and the colon.
func (p *parser) key(n *node) bool {
	if p.next() != '"' {
		p.fail("a name in quotes has to be here")
		return false
	}
	from := p.at
	p.quoted()
	if p.err != nil {
		return false
	}
	name := decodeText(p.text[from:p.at])
	p.space()
	if p.next() != ':' {
		p.fail("a colon has to be here")
		return false
	}
	p.at++
	p.space()
	n.keys = append(n.keys, name)
	return true
}

// quoted skips a string.
func (p *parser) quoted() {
	from, escaped := p.at, false
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
			escaped = true
		case c < ' ':
			p.fail("a text holds a control character")
			return
		case c == '"':
			p.at++
			if escaped && !json.Valid(p.text[from:p.at]) {
				p.at = from
				p.fail("a text holds an escape that does not exist")
			}
			return
		}
	}
	p.at = min(p.at, len(p.text))
	p.fail("the text ends inside quotes")
}

func (p *parser) number(depth int) {
	from := p.at
	for p.at < len(p.text) && slices.Contains([]byte("+-.eE0123456789"), p.text[p.at]) {
		p.at++
	}
	if !json.Valid(p.text[from:p.at]) {
		p.fail("%q is no number", p.text[from:p.at])
	} else if p.at == len(p.text) && depth > 0 {
		p.fail("the text ends in the midst") // more digits may have followed
	}
}

func (p *parser) word(word string) {
	rest := p.text[p.at:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		p.fail("%q is no JSON", rest[:min(len(rest), len(word))])
		return
	}
	p.at += len(word)
}

func decodeText(raw []byte) string {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
