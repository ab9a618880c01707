package meter

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Limits of a scanner. No document makes it keep more than these.
const (
	maxDepth = 10_000
	maxKey   = 64
	maxValue = 512
)

// phase is what a scanner expects next.
type phase byte

const (
	beforeValue phase = iota
	beforeKey
	beforeColon
	afterValue
	inString
	inKey
	inScalar
	broken
)

// unknownKey replaces keys that are too long, or that contain characters with a meaning in
// paths. No path of interest contains it.
const unknownKey = "?"

// scanner reads JSON while it arrives and passes on the scalar values at paths of
// interest. A path is the keys from the root joined by dots, with "*" for an element of a
// list: "choices.*.delta.content". Lists around the document are left out of paths. A
// scanner keeps a bounded part of a document of any size. It accepts some documents that are
// not JSON; after others it ignores the rest of the document.
type scanner struct {
	// wants reports whether the value at a path is of interest.
	wants func(path string) bool
	// visit receives a value: the beginning of a string without its quotes and unescaped,
	// or the text of another scalar. size is the length of the value in the document.
	visit func(path, value string, size int64)

	phase   phase
	stack   []level
	path    []byte
	escaped bool
	wanted  bool
	kept    []byte
	size    int64
}

// level is an object or a list around the current position.
type level struct {
	object bool
	// path is the length of the path of the object or list.
	path int
}

// reset prepares for another document.
func (s *scanner) reset() {
	s.phase, s.stack, s.path, s.escaped = beforeValue, s.stack[:0], s.path[:0], false
}

// scan reads the next part of the document.
func (s *scanner) scan(p []byte) {
	for len(p) > 0 && s.phase != broken {
		switch s.phase {
		case inString, inKey:
			p = s.text(p)
		case inScalar:
			p = s.scalar(p)
		default:
			c := p[0]
			p = p[1:]
			if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				s.structure(c)
			}
		}
	}
}

// end reads the end of the document: a scalar at the root has no other end.
func (s *scanner) end() {
	if s.phase == inScalar {
		s.value()
	}
}

// structure reads a character outside of strings and scalars.
func (s *scanner) structure(c byte) {
	switch {
	case c == '"' && s.phase == beforeKey:
		s.begin(inKey, true)
	case c == '"' && s.phase == beforeValue:
		s.begin(inString, s.wants(s.name()))
	case (c == '{' || c == '[') && s.phase == beforeValue && len(s.stack) < maxDepth:
		s.open(c == '{')
	case c == '}' && s.inObject() && (s.phase == afterValue || s.phase == beforeKey),
		c == ']' && s.inList() && (s.phase == afterValue || s.phase == beforeValue):
		s.close()
	case c == ':' && s.phase == beforeColon:
		s.phase = beforeValue
	case c == ',' && s.phase == afterValue && len(s.stack) > 0:
		s.next()
	case s.phase == beforeValue && strings.IndexByte("-0123456789tfn", c) >= 0:
		s.begin(inScalar, s.wants(s.name()))
		s.keep([]byte{c})
	default:
		s.phase = broken
	}
}

func (s *scanner) inObject() bool { return len(s.stack) > 0 && s.stack[len(s.stack)-1].object }

func (s *scanner) inList() bool { return len(s.stack) > 0 && !s.stack[len(s.stack)-1].object }

// open enters an object or a list.
func (s *scanner) open(object bool) {
	s.stack = append(s.stack, level{object: object, path: len(s.path)})
	if object {
		s.phase = beforeKey
		return
	}
	s.phase = beforeValue
	s.step("*")
}

// close leaves an object or a list.
func (s *scanner) close() {
	last := len(s.stack) - 1
	s.path = s.path[:s.stack[last].path]
	s.stack = s.stack[:last]
	s.ended()
}

// next goes on to the next member or element.
func (s *scanner) next() {
	s.phase = beforeValue
	if s.inObject() {
		s.phase = beforeKey
	}
}

// step appends a key to the path of the innermost object or list.
func (s *scanner) step(key string) {
	s.path = append(s.path[:s.stack[len(s.stack)-1].path], '.')
	s.path = append(s.path, key...)
}

// name returns the path of the current value.
func (s *scanner) name() string {
	path := s.path
	for bytes.HasPrefix(path, []byte(".*")) {
		path = path[2:]
	}
	return string(bytes.TrimPrefix(path, []byte(".")))
}

// begin begins a string, a key or a scalar.
func (s *scanner) begin(p phase, wanted bool) {
	s.phase, s.wanted, s.kept, s.size, s.escaped = p, wanted, s.kept[:0], 0, false
}

func (s *scanner) keep(part []byte) {
	s.size += int64(len(part))
	if room := maxValue - len(s.kept); s.wanted && room > 0 {
		s.kept = append(s.kept, part[:min(room, len(part))]...)
	}
}

// text reads a string or a key up to its end and returns what follows.
func (s *scanner) text(p []byte) []byte {
	i := 0
	for ; i < len(p); i++ {
		switch {
		case s.escaped:
			s.escaped = false
		case p[i] == '\\':
			s.escaped = true
		case p[i] == '"':
			s.keep(p[:i])
			if s.phase == inKey {
				s.key()
			} else {
				s.string()
			}
			return p[i+1:]
		}
	}
	s.keep(p)
	return nil
}

func (s *scanner) key() {
	key := string(s.kept)
	if s.size > maxKey || key == "" || strings.ContainsAny(key, `.*\`+unknownKey) {
		key = unknownKey
	}
	s.step(key)
	s.phase = beforeColon
}

func (s *scanner) string() {
	if s.wanted {
		s.visit(s.name(), unescaped(s.kept), s.size)
	}
	s.ended()
}

// unescaped returns the beginning of a JSON string without escapes.
func unescaped(raw []byte) string {
	const longestEscape = 12 // a surrogate pair
	for end := len(raw); end >= 0 && end >= len(raw)-longestEscape; end-- {
		var text string
		if json.Unmarshal(append(append([]byte{'"'}, raw[:end]...), '"'), &text) == nil {
			return text
		}
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// scalar reads a number, true, false or null and returns what follows.
func (s *scanner) scalar(p []byte) []byte {
	i := bytes.IndexAny(p, " \n\r\t,]}")
	if i < 0 {
		s.keep(p)
		return nil
	}
	s.keep(p[:i])
	s.value()
	return p[i:]
}

func (s *scanner) value() {
	if s.wanted {
		s.visit(s.name(), string(s.kept), s.size)
	}
	s.ended()
}

// ended follows the end of a value. Another document may follow one that ended.
func (s *scanner) ended() {
	s.phase = afterValue
	if len(s.stack) == 0 {
		s.reset()
	}
}
