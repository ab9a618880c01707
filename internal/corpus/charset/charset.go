// Package charset recognises the character encoding of text that is not UTF-8, and
// converts it. No rule can be certain of an encoding: one is chosen only if its text is
// natural and that of each other encoding is less so. A conversion never invents: bytes that
// the encoding does not have end it.
package charset

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Charset is a character encoding. The zero value is UTF-8.
type Charset struct {
	name string
	// enc decodes encodings other than those of Unicode.
	enc encoding.Encoding
	// width is the bytes of a unit of UTF-16 or UTF-32, big its order of bytes.
	width int
	big   bool
	// mark is the length of the byte order mark before the text.
	mark int
}

// UTF8 returns the encoding that needs no conversion.
func UTF8() Charset { return Charset{} }

// Name returns the name for people, such as Shift-JIS.
func (c Charset) Name() string {
	if c.name == "" {
		return nameUTF8
	}
	return c.name
}

// IsUTF8 reports whether text needs no conversion, besides that of the mark.
func (c Charset) IsUTF8() bool { return c.enc == nil && c.width == 0 }

// ExtendsASCII reports whether text of ASCII characters has the same bytes.
func (c Charset) ExtendsASCII() bool { return c.width == 0 && c.enc != japanese.ISO2022JP }

// isSingleByte reports whether each byte is a character.
func (c Charset) isSingleByte() bool {
	_, ok := c.enc.(*charmap.Charmap)
	return ok
}

// HasMark reports whether a text begins with a byte order mark.
func HasMark(head []byte) bool {
	_, ok := charsetOfMark(head)
	return ok
}

const nameUTF8 = "UTF-8"

// Errors of [Detect].
var (
	// ErrBinary is the error of bytes that are no text.
	ErrBinary = errors.New("it is binary")
	// ErrUnknown is the error of a text whose encoding is not certain.
	ErrUnknown = errors.New("its encoding is not UTF-8 and cannot be recognised")
	// ErrMixed is the error of a text that is UTF-8 in some places only.
	ErrMixed = errors.New("it is UTF-8 with bytes of another encoding between")
)

// charsetOfMark returns the encoding of a text that begins with a byte order mark.
func charsetOfMark(head []byte) (Charset, bool) {
	for _, m := range []struct {
		mark string
		c    Charset
	}{
		{"\xef\xbb\xbf", Charset{}},
		{"\xff\xfe\x00\x00", Charset{name: "UTF-32LE", width: 4}},
		{"\x00\x00\xfe\xff", Charset{name: "UTF-32BE", width: 4, big: true}},
		{"\xff\xfe", Charset{name: "UTF-16LE", width: 2}},
		{"\xfe\xff", Charset{name: "UTF-16BE", width: 2, big: true}},
		{"\x84\x31\x95\x33", Charset{name: "GB18030", enc: simplifiedchinese.GB18030}},
	} {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			c := m.c
			c.mark = len(m.mark)
			return c, true
		}
	}
	return Charset{}, false
}

// Detect returns the encoding of a text that begins with head; whole is set if head is all of
// it. A text of ASCII characters only is UTF-8. Its errors are [ErrBinary], [ErrUnknown] and
// [ErrMixed].
func Detect(head []byte, whole bool) (Charset, error) {
	if c, ok := charsetOfMark(head); ok {
		if c.IsUTF8() && !isUTF8(head, whole) {
			return c, ErrMixed
		}
		return c, nil
	}
	if bytes.IndexByte(head, 0) >= 0 {
		if c, ok := detectWide(head, whole); ok {
			return c, nil
		}
		return Charset{}, ErrBinary
	}
	if isUTF8(head, whole) {
		if c, ok := detectEscapes(head, whole); ok {
			return c, nil
		}
		return Charset{}, nil
	}
	c, err := detectLegacy(head, whole)
	if n := cutRune(head); err != nil && n > 0 && utf8.Valid(head[:len(head)-n]) {
		return Charset{}, nil // the end cuts a character
	}
	return c, err
}

// isUTF8 reports whether head is UTF-8, up to a character that its end cuts.
func isUTF8(head []byte, whole bool) bool {
	if !whole {
		head = head[:len(head)-cutRune(head)]
	}
	return utf8.Valid(head)
}

// cutRune returns the number of bytes of an incomplete character at the end.
func cutRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		tail := text[len(text)-n:]
		if utf8.RuneStart(tail[0]) {
			if tail[0] >= utf8.RuneSelf && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// detectEscapes recognises the Japanese encoding that uses ASCII bytes only.
func detectEscapes(head []byte, whole bool) (Charset, bool) {
	if !bytes.Contains(head, []byte("\x1b$B")) && !bytes.Contains(head, []byte("\x1b$@")) {
		return Charset{}, false
	}
	c := Charset{name: "ISO-2022-JP", enc: japanese.ISO2022JP}
	text, ok := decodeSample(c, head, whole)
	return c, ok && naturalness(text, &profile{alphabet: kana + kanji, common: kana + kanji, wide: true}) >= minNatural
}

// Find returns the encoding with a name that iconv, HTML or IANA use.
func Find(name string) (Charset, bool) {
	folded := strings.ToLower(strings.TrimSpace(name))
	switch strings.NewReplacer("-", "", "_", "").Replace(folded) {
	case "utf8":
		return Charset{}, true
	case "utf16", "utf16le":
		return Charset{name: "UTF-16LE", width: 2}, true
	case "utf16be":
		return Charset{name: "UTF-16BE", width: 2, big: true}, true
	case "utf32", "utf32le":
		return Charset{name: "UTF-32LE", width: 4}, true
	case "utf32be":
		return Charset{name: "UTF-32BE", width: 4, big: true}, true
	case "cp932", "sjis":
		return Charset{name: "Shift-JIS", enc: japanese.ShiftJIS}, true
	case "cp936":
		return Charset{name: "GB18030", enc: simplifiedchinese.GB18030}, true
	case "cp949", "uhc":
		return Charset{name: "EUC-KR", enc: korean.EUCKR}, true
	case "cp950":
		return Charset{name: "Big5", enc: traditionalchinese.Big5}, true
	case "macroman":
		return Charset{name: "Mac Roman", enc: charmap.Macintosh}, true
	}
	if digits, ok := strings.CutPrefix(folded, "cp"); ok {
		for _, c := range candidates() {
			if strings.HasSuffix(c.name, digits) {
				return Charset{name: c.name, enc: c.enc}, true
			}
		}
	}
	if enc, err := htmlindex.Get(folded); err == nil && enc != encoding.Replacement {
		return Charset{name: name, enc: enc}, true
	}
	if enc, err := ianaindex.IANA.Encoding(folded); err == nil && enc != nil {
		return Charset{name: name, enc: enc}, true
	}
	return Charset{}, false
}
