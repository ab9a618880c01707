package testreport

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// xmlText passes a document to the decoder byte by byte and bounds its memory: the
// decoder keeps every text as a whole, and runners put the whole output of the tests into
// one. Character data and attributes are cut at a limit, comments are emptied, control characters
// that XML does not allow become "?". Because the decoder reads single bytes, the position
// counted here is the decoder's own.
type xmlText struct {
	r         *bufio.Reader
	line, col int
	text      int // limit of character data and of an attribute
	markup    int // limit of a tag
	state     xmlState
	quote     byte
	n         int  // bytes passed on in this state
	tag       int  // bytes of the tag
	entity    bool // between & and ;
	closing   int  // bytes of the end of a comment or CDATA still to come
}

type xmlState int

const (
	inText xmlState = iota
	inTag
	inValue
	inComment
	inCDATA
)

func newXMLText(r io.Reader, cfg Config) *xmlText {
	return &xmlText{
		r: bufio.NewReaderSize(r, 64<<10), line: 1,
		text: 4*cfg.MaxMessage + 2*cfg.MaxIdentity, markup: cfg.MaxLine,
	}
}

// newDecoder returns a strict decoder that reads through the filter.
func newDecoder(x *xmlText) *xml.Decoder {
	d := xml.NewDecoder(x)
	d.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "utf-8", "utf8", "us-ascii", "ascii":
			return input, nil
		case "iso-8859-1", "latin1", "latin-1", "windows-1252":
			if bytes, ok := input.(io.ByteReader); ok {
				return &latin1{r: bytes}, nil
			}
		}
		return nil, fmt.Errorf("unknown encoding %q", charset)
	}
	return d
}

// ReadByte returns the next byte that is kept.
func (x *xmlText) ReadByte() (byte, error) {
	for {
		c, err := x.r.ReadByte()
		if err != nil {
			return 0, err
		}
		x.col++
		if c == '\n' {
			x.line, x.col = x.line+1, 0
		}
		if c == '&' && (x.state == inText || x.state == inValue) {
			if c, err = x.reference(); err != nil {
				return 0, err
			}
		}
		if c == 0x1b {
			if err := x.skip(escape().FindString(x.peek())); err != nil {
				return 0, err
			}
		}
		kept, err := x.step(c)
		if err != nil {
			return 0, err
		}
		if !kept {
			continue
		}
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			c = '?'
		}
		return c, nil
	}
}

var (
	numbered = lazyregexp.New(`^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));`)
	named    = lazyregexp.New(`^[A-Za-z][A-Za-z0-9]{0,31};`)
	escape   = lazyregexp.New(`^\[[0-9;]{0,16}[A-Za-z]`)
)

// reference reads the rest of a reference to a character that XML does not allow, or that has
// no meaning in it, and returns the character or "?". Runners write the codes of colours as
// "&#27;". Other references stay: the result is "&".
func (x *xmlText) reference() (byte, error) {
	next := x.peek()
	if m := numbered().FindStringSubmatch(next); m != nil {
		base, digits := 10, m[2]
		if m[1] != "" {
			base, digits = 16, m[1]
		}
		code, err := strconv.ParseInt(digits, base, 32)
		if err != nil || isXML(rune(code)) {
			return '&', nil //nolint:nilerr // the decoder reports it
		}
		if code < ' ' {
			return byte(code), x.skip(m[0])
		}
		return '?', x.skip(m[0])
	}
	switch name := named().FindString(next); name {
	case "", "lt;", "gt;", "amp;", "apos;", "quot;":
		return '&', nil
	default:
		return '?', x.skip(name)
	}
}

// isXML reports whether XML allows a character.
func isXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD ||
		r >= 0x10000 && r <= utf8.MaxRune
}

// peek returns the next bytes of the input.
func (x *xmlText) peek() string {
	const most = 40
	next, _ := x.r.Peek(most)
	return string(next)
}

// skip reads bytes that were seen.
func (x *xmlText) skip(seen string) error {
	x.col += len(seen)
	_, err := x.r.Discard(len(seen))
	return err
}

// Read reads one byte, for decoders of other character sets.
func (x *xmlText) Read(p []byte) (int, error) { return readOne(x, p) }

// readOne implements Read by ReadByte.
func readOne(r io.ByteReader, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// wrong returns a syntax error at the current position.
func (x *xmlText) wrong(format string, args ...any) error {
	return &SyntaxError{Line: x.line, Column: max(x.col, 1), Msg: fmt.Sprintf(format, args...)}
}

// step updates the state for a byte and reports whether the byte is kept.
func (x *xmlText) step(c byte) (bool, error) {
	if x.closing > 0 {
		if x.closing--; x.closing == 0 {
			x.enter(inText)
		}
		return true, nil
	}
	switch x.state {
	case inText:
		if c == '<' {
			x.open()
			return true, nil
		}
		return x.keep(c), nil
	case inTag:
		x.tag++
		if x.tag > x.markup {
			return false, &LimitError{Limit: "max line", Max: x.markup, Line: x.line}
		}
		switch c {
		case '>':
			x.enter(inText)
		case '"', '\'':
			x.enter(inValue)
			x.quote = c
		}
		return true, nil
	case inValue:
		if c == x.quote {
			x.enter(inTag)
			return true, nil
		}
		return x.keep(c), nil
	case inComment:
		return x.until(c, '-', "->"), nil
	default:
		return x.until(c, ']', "]>"), nil
	}
}

func (x *xmlText) enter(state xmlState) {
	x.state, x.n, x.entity = state, 0, false
}

// open determines what a "<" in text begins.
func (x *xmlText) open() {
	next, _ := x.r.Peek(8)
	switch {
	case strings.HasPrefix(string(next), "!--"):
		x.enter(inComment)
	case string(next) == "![CDATA[":
		x.enter(inCDATA)
	default:
		x.enter(inTag)
		x.tag = 0
	}
}

// keep reports whether a byte of a text or value is within the limit. An entity or a
// character is never cut in two.
func (x *xmlText) keep(c byte) bool {
	x.n++
	switch {
	case x.n <= x.text:
		x.entity = c == '&' || (x.entity && c != ';')
		return true
	case x.n > x.text+64:
		return false // not an entity
	case x.entity:
		x.entity = c != ';'
		return true
	case x.n > 1 && c&0xC0 == 0x80:
		return true
	}
	x.n = x.text + 65
	return false
}

// until passes the first bytes of a comment or CDATA, the opening included, and its end.
func (x *xmlText) until(c, end byte, rest string) bool {
	x.n++
	opening := x.n <= len("![CDATA[")
	if x.state == inComment {
		opening = x.n <= len("!--")
	}
	if c == end && !opening {
		if next, _ := x.r.Peek(len(rest)); string(next) == rest {
			x.closing = len(rest)
			return true
		}
	}
	if x.state == inComment {
		return opening
	}
	if x.n > x.text && c&0xC0 == 0x80 && x.n <= x.text+3 {
		return true
	}
	return x.n <= x.text
}

// latin1 converts Latin-1 to UTF-8.
type latin1 struct {
	r    io.ByteReader
	next byte // the second byte of a character
}

// Read reads one byte.
func (l *latin1) Read(p []byte) (int, error) { return readOne(l, p) }

// ReadByte returns the next byte.
func (l *latin1) ReadByte() (byte, error) {
	if c := l.next; c != 0 {
		l.next = 0
		return c, nil
	}
	c, err := l.r.ReadByte()
	if err != nil || c < 0x80 {
		return c, err
	}
	l.next = 0x80 | c&0x3F
	return 0xC0 | c>>6, nil
}
