package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// MaxDepth bounds how deep objects and lists stand in each other in a file that
// is read.
const MaxDepth = 1000

// node is a JSON value and its place in the text.
type node struct {
	// kind is the first byte of what it is: { [ " t (boolean) n (null), and 0
	// for numbers.
	kind       byte
	start, end int
	members    []member // of an object, in order, as they stand
	items      []*node  // of a list
}

type member struct {
	key      string
	from, to int // the name with its quotes
	value    *node
}

// get returns the value of a member, the last of several as readers of JSON do;
// nil when there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

func (n *node) null() bool { return n == nil || n.kind == 'n' }

// what says in words what a value is.
func (n *node) what() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// scanError says where a text stops being JSON that is read.
type scanError struct {
	at   int
	kind error
	msg  string
}

// Error returns what is wrong there.
func (e *scanError) Error() string { return e.msg }

// scan reads a JSON text. Values down to the depth keep know what is in them;
// what is deeper is checked and passed over.
func scan(text []byte, keep int) (*node, *scanError) {
	s := &scanner{text: text, keep: keep}
	return s.whole()
}

type scanner struct {
	text []byte
	at   int
	keep int
	only []string // members of the root of which more than the value is kept; nil for all
	bad  *scanError
	// passed stands for the values that are passed over.
	passed node
}

// whole reads the only value of the text.
func (s *scanner) whole() (*node, *scanError) {
	s.space()
	if s.at == len(s.text) {
		s.fail("there is nothing in it")
		return nil, s.bad
	}
	root := s.value(0)
	s.space()
	if s.bad == nil && s.at < len(s.text) {
		s.fail("%s stands behind the end of the value", s.here())
	}
	if s.bad != nil {
		return nil, s.bad
	}
	return root, nil
}

func (s *scanner) fail(format string, args ...any) {
	if s.bad == nil {
		s.bad = &scanError{s.at, ErrSyntax, fmt.Sprintf(format, args...)}
	}
}

// here names the character at the place, for messages.
func (s *scanner) here() string {
	if s.at >= len(s.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(s.text[s.at:])
	return fmt.Sprintf("%q", r)
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next returns the byte at the place, 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// value reads one. It never returns nil; what it returns for a value deeper than
// is kept says nothing.
func (s *scanner) value(depth int) *node {
	n := &s.passed
	if depth <= s.keep {
		n = &node{}
	}
	n.start = s.at
	switch c := s.next(); {
	case c == '{' || c == '[':
		n.kind = c
		if depth >= MaxDepth {
			s.bad = &scanError{s.at, ErrLimit, fmt.Sprintf("values are nested deeper than %d", MaxDepth)}
			return n
		}
		s.container(n, c, depth)
	case c == '"':
		n.kind = '"'
		s.quoted()
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	case c == 't':
		n.kind = 't'
		s.word("true")
	case c == 'f':
		n.kind = 't'
		s.word("false")
	case c == 'n':
		n.kind = 'n'
		s.word("null")
	default:
		s.fail("%s stands where a value has to be", s.here())
	}
	n.end = s.at
	return n
}

func (s *scanner) container(n *node, kind byte, depth int) {
	end := kind + 2 // } and ] stand two behind { and [
	s.at++
	s.space()
	for first := true; s.next() != end; first = false {
		if !first && !s.comma(end) {
			return
		}
		m := member{}
		if kind == '{' && !s.key(&m, depth < s.keep) {
			return
		}
		m.value = s.within(depth, m.key)
		if s.bad != nil {
			return
		}
		switch {
		case depth >= s.keep:
		case kind == '{':
			n.members = append(n.members, m)
		default:
			n.items = append(n.items, m.value)
		}
		s.space()
	}
	s.at++
}

// within reads a value of a container.
func (s *scanner) within(depth int, key string) *node {
	if depth > 0 || s.only == nil || slices.Contains(s.only, key) {
		return s.value(depth + 1)
	}
	keep := s.keep
	s.keep = depth + 1 // the value, and nothing in it
	n := s.value(depth + 1)
	s.keep = keep
	return n
}

func (s *scanner) comma(end byte) bool {
	if s.next() != ',' {
		s.fail("%s stands where ',' or %q has to be", s.here(), rune(end))
		return false
	}
	s.at++
	s.space()
	if s.next() == end {
		s.fail("a value is missing behind the comma")
		return false
	}
	return true
}

// key reads the name of a member and the colon.
func (s *scanner) key(m *member, keep bool) bool {
	if s.next() != '"' {
		s.fail("%s stands where a name in quotes has to be", s.here())
		return false
	}
	m.from = s.at
	s.quoted()
	if s.bad != nil {
		return false
	}
	m.to = s.at
	if keep {
		m.key = unquoted(s.text[m.from:m.to])
	}
	s.space()
	if s.next() != ':' {
		s.fail("%s stands where a colon has to be", s.here())
		return false
	}
	s.at++
	s.space()
	return true
}

// unquoted decodes a text that was scanned.
func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "" // it was scanned
	}
	return text
}

func (s *scanner) quoted() {
	from := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return
		case c < ' ':
			s.fail("a text holds the control character U+%04X", c)
			return
		case c == '\\':
			if !s.escape() {
				return
			}
		}
	}
	s.at = from
	s.fail("the quotes that open here are not closed")
}

// escape reads one and stays on its last byte.
func (s *scanner) escape() bool {
	from := s.at
	s.at++
	switch s.next() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.at++
			if !hexDigit(s.next()) {
				s.at = from
				s.fail("an escape \\u has to have four hexadecimal digits")
				return false
			}
		}
		return true
	}
	s.at = from
	s.fail("a text holds an escape that does not exist")
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func hexDigit(c byte) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func (s *scanner) digits() bool {
	from := s.at
	for digit(s.next()) {
		s.at++
	}
	return s.at > from
}

func (s *scanner) number() {
	from := s.at
	if s.next() == '-' {
		s.at++
	}
	var ok bool
	if s.next() == '0' {
		s.at++
		ok = !digit(s.next())
	} else {
		ok = s.digits()
	}
	if ok && s.next() == '.' {
		s.at++
		ok = s.digits()
	}
	if ok && (s.next() == 'e' || s.next() == 'E') {
		s.at++
		if s.next() == '+' || s.next() == '-' {
			s.at++
		}
		ok = s.digits()
	}
	if !ok {
		s.at = from
		s.fail("a number is not written as JSON has it")
	}
}

func (s *scanner) word(word string) {
	rest := s.text[s.at:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		s.fail("%s stands where a value has to be", s.here())
		return
	}
	s.at += len(word)
}
