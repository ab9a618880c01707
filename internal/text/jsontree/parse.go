package jsontree

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
)

// DefaultDepth is how deep objects and arrays can be nested by default.
const DefaultDepth = 1000

// Options say how a text is read. The zero value reads one whole value and keeps
// all of it.
type Options struct {
	// File is the name of the text in errors.
	File string
	// From is the offset at which the value begins, for one line of a longer text;
	// what is before it is not read.
	From int
	// MaxBytes limits the length of the text; 0 means no limit.
	MaxBytes int
	// MaxDepth limits the nesting of objects and arrays; 0 is [DefaultDepth].
	MaxDepth int
	// UniqueNames makes a name that an object has twice an error.
	UniqueNames bool
	// Partial makes [Parse] return the error and the values that are complete before it.
	Partial bool
	// KeepDepth, if positive, is the depth down to which values are kept; the root
	// is at 0. Deeper values are checked, and are part of what [Value.Raw] returns
	// of the value they are in.
	KeepDepth int
	// KeepNames, if not nil, are the members of the root whose content is kept.
	KeepNames []string
}

// Parse reads a JSON text, which may begin with a byte order mark. An error is an
// [*Error]; the value is then nil unless Partial is set and some of it is
// complete. The value refers to text, which must not change any more.
func Parse(text []byte, o Options) (*Value, error) {
	p := &parser{text: text, o: o, at: o.From, depth: o.MaxDepth, keep: o.KeepDepth}
	if p.depth == 0 {
		p.depth = DefaultDepth
	}
	if p.keep == 0 {
		p.keep = p.depth
	}
	root := p.whole()
	if p.err == nil {
		return root, nil
	}
	p.err.File = o.File
	if !o.Partial {
		root = nil
	}
	return root, p.err.In(text, p.err.Offset)
}

const saveAsUTF8 = "save the text as UTF-8"

type parser struct {
	text    []byte
	o       Options
	depth   int
	keep    int
	at      int
	err     *Error
	skipped Value // replaces values that are not kept

	// The members and items of the containers that are being read.
	members []Member
	items   []*Value
	names   map[string]string // of members, so that each is in memory once
}

// fail records the first error.
func (p *parser) fail(kind error, at int, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Kind: kind, Offset: at, Msg: fmt.Sprintf(format, args...)}
	}
}

// want records an unexpected character at the current place.
func (p *parser) want(what string) { p.fail(ErrSyntax, p.at, "want %s, found %s", what, p.here()) }

// here names the character at the current place.
func (p *parser) here() string {
	if p.at >= len(p.text) {
		return "the end of the text"
	}
	r, _ := utf8.DecodeRune(p.text[p.at:])
	return strconv.QuoteRune(r)
}

// whole reads the only value of the text.
func (p *parser) whole() *Value {
	text := p.text[p.at:]
	switch bad := InvalidUTF8(text); {
	case p.o.MaxBytes > 0 && len(text) > p.o.MaxBytes:
		p.fail(ErrLimit, p.at, "the text has %d bytes, the limit is %d", len(text), p.o.MaxBytes)
		return nil
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		p.fail(ErrSyntax, p.at, "the text is UTF-16, want UTF-8")
		p.err.Hint = saveAsUTF8
		return nil
	case bad >= 0:
		p.fail(ErrSyntax, p.at+bad, "the byte 0x%02x is not UTF-8", text[bad])
		p.err.Hint = saveAsUTF8
		return nil
	case bytes.HasPrefix(text, []byte(byteOrderMark)) && p.at == 0:
		p.at = len(byteOrderMark)
	}
	p.space()
	if p.at == len(p.text) {
		p.fail(ErrSyntax, p.at, "the text is empty")
		return nil
	}
	root := p.value(0)
	p.space()
	if p.err == nil && p.at < len(p.text) {
		p.fail(ErrSyntax, p.at, "unexpected %s after the end of the value", p.here())
	}
	return root
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

// next returns the byte at the current place, 0 at the end.
func (p *parser) next() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// value reads one. It returns nil if nothing of it is complete.
func (p *parser) value(depth int) *Value {
	v := &p.skipped
	if depth <= p.keep {
		v = &Value{Start: p.at}
	}
	from := p.at
	switch c := p.next(); {
	case c == '{' || c == '[':
		if depth >= p.depth {
			p.fail(ErrLimit, p.at, "nested deeper than %d", p.depth)
			return nil
		}
		v.Kind = Array
		if c == '{' {
			v.Kind = Object
		}
		p.container(v, c, depth)
	case c == '"':
		v.Kind = String
		p.quoted()
	case c == '-' || digit(c):
		v.Kind = Number
		p.number(depth)
	case c == 't':
		v.Kind = Bool
		p.word("true")
	case c == 'f':
		v.Kind = Bool
		p.word("false")
	case c == 'n':
		v.Kind = Null
		p.word("null")
	default:
		p.want("a value")
	}
	if p.err != nil {
		if v.Kind != Object && v.Kind != Array {
			return nil
		}
		v.Cut = true
	}
	v.raw = p.text[from:p.at]
	return v
}

// container reads the members of an object or the items of an array.
func (p *parser) container(v *Value, open byte, depth int) {
	end := open + 2 // '}' and ']' are two after '{' and '['
	kept := depth < p.keep
	var names map[string]bool
	firstMember, firstItem := len(p.members), len(p.items)
	defer func() {
		v.Members = append(v.Members, p.members[firstMember:]...)
		v.Items = append(v.Items, p.items[firstItem:]...)
		p.members, p.items = p.members[:firstMember], p.items[:firstItem]
	}()
	p.at++
	p.space()
	for i := 0; p.next() != end; i++ {
		if i > 0 && !p.comma(end) {
			return
		}
		m := Member{Start: p.at}
		if open == '{' && !p.name(&m, kept) {
			return
		}
		if p.o.UniqueNames && open == '{' {
			if names == nil {
				names = make(map[string]bool)
			}
			if names[m.Name] {
				p.fail(ErrName, m.Start, "the name appears twice in the object")
			}
			names[m.Name] = true
		}
		if p.err == nil {
			m.Value = p.content(depth, m.Name)
		}
		if kept && m.Value != nil {
			if open == '{' {
				p.members = append(p.members, m)
			} else {
				p.items = append(p.items, m.Value)
			}
		}
		if p.err != nil {
			p.within(open, m.Name, i)
			return
		}
		p.space()
	}
	p.at++
}

// within adds the place in a container to the path of an error about a name.
func (p *parser) within(open byte, name string, i int) {
	switch {
	case p.err.Kind != ErrName:
	case open == '{':
		p.err.Field = Join(name, p.err.Field)
	default:
		p.err.Field = Join(fmt.Sprintf("[%d]", i), p.err.Field)
	}
}

// content reads the value of a member or an item.
func (p *parser) content(depth int, name string) *Value {
	if depth > 0 || p.o.KeepNames == nil || slices.Contains(p.o.KeepNames, name) {
		return p.value(depth + 1)
	}
	keep := p.keep
	p.keep = min(keep, depth+1) // the value, and nothing in it
	v := p.value(depth + 1)
	p.keep = keep
	return v
}

func (p *parser) comma(end byte) bool {
	if p.next() != ',' {
		p.want(fmt.Sprintf("',' or %q", rune(end)))
		return false
	}
	p.at++
	p.space()
	if p.next() == end {
		p.fail(ErrSyntax, p.at, "a value is missing after the comma")
		return false
	}
	return true
}

// name reads the name of a member and the colon.
func (p *parser) name(m *Member, kept bool) bool {
	if p.next() != '"' {
		p.want("a name in quotes")
		return false
	}
	p.quoted()
	if p.err != nil {
		return false
	}
	if kept || p.o.UniqueNames {
		m.Name = p.interned(p.text[m.Start:p.at])
	}
	p.space()
	if p.next() != ':' {
		p.want("':' after the name")
		return false
	}
	p.at++
	p.space()
	return true
}

// maxNames bounds the names that are kept to be used again.
const maxNames = 1024

// interned returns the content of a string. Repeated ones share their memory.
func (p *parser) interned(quoted []byte) string {
	name, ok := p.names[string(quoted)]
	if ok {
		return name
	}
	name = unquote(quoted)
	if p.names == nil {
		p.names = make(map[string]string)
	}
	if len(p.names) < maxNames {
		p.names[string(quoted)] = name
	}
	return name
}

func (p *parser) quoted() {
	from := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return
		case c < ' ':
			p.fail(ErrSyntax, p.at, "unescaped control character U+%04X in a string", c)
			return
		case c == '\\':
			if !p.escape() {
				return
			}
		}
	}
	p.fail(ErrSyntax, from, "the string that begins here is not closed")
}

// escape reads an escape up to its last byte.
func (p *parser) escape() bool {
	from := p.at
	p.at++
	switch p.next() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			p.at++
			if !hexDigit(p.next()) {
				p.fail(ErrSyntax, from, `\u is not followed by four hexadecimal digits`)
				return false
			}
		}
		return true
	}
	p.fail(ErrSyntax, from, `unknown escape in a string: \ and %s`, p.here())
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func hexDigit(c byte) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func (p *parser) digits() bool {
	from := p.at
	for digit(p.next()) {
		p.at++
	}
	return p.at > from
}

func (p *parser) number(depth int) {
	from := p.at
	if p.next() == '-' {
		p.at++
	}
	var ok bool
	if p.next() == '0' {
		p.at++
		ok = !digit(p.next())
	} else {
		ok = p.digits()
	}
	if ok && p.next() == '.' {
		p.at++
		ok = p.digits()
	}
	if ok && (p.next() == 'e' || p.next() == 'E') {
		p.at++
		if p.next() == '+' || p.next() == '-' {
			p.at++
		}
		ok = p.digits()
	}
	switch {
	case !ok:
		p.fail(ErrSyntax, from, "invalid number")
	case depth > 0 && p.at == len(p.text): // more digits may be cut off
		p.fail(ErrSyntax, p.at, "unexpected end of the text")
	}
}

func (p *parser) word(word string) {
	if !bytes.HasPrefix(p.text[p.at:], []byte(word)) {
		p.want("a value")
		return
	}
	p.at += len(word)
}

// maxFieldBytes limits the paths of fields in errors.
const maxFieldBytes = 200

// Join returns the path of a member or an item ("[2]") of the value at path.
func Join(path, field string) string {
	switch {
	case path == "" || field == "":
		path += field
	case field[0] == '[':
		path += field
	default:
		path += "." + field
	}
	return clip.Bytes(path, maxFieldBytes)
}
