package charset

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// detectWide recognises UTF-16 and UTF-32 without a byte order mark.
func detectWide(head []byte, whole bool) (Charset, bool) {
	sample := head[:min(len(head), maxSample)]
	var best Charset
	bestScore, next := 0.0, 0.0
	for _, c := range []Charset{{name: "UTF-16LE", width: 2}, {name: "UTF-16BE", width: 2, big: true},
		{name: "UTF-32LE", width: 4}, {name: "UTF-32BE", width: 4, big: true}} {
		if whole && len(sample) == len(head) && len(head)%2 != 0 {
			return Charset{}, false
		}
		text, rest, ok := c.decode(nil, sample)
		if !ok || len(rest) >= c.width && len(sample) == len(head) {
			continue
		}
		score := wideTextScore(string(text))
		if score > bestScore {
			best, bestScore, next = c, score, bestScore
		} else {
			next = max(next, score)
		}
	}
	const enough, lead = 0.7, 0.3
	return best, bestScore >= enough && bestScore-next >= lead
}

// wideTextScore returns how natural a text of any language is, from 0 to 1.
func wideTextScore(text string) float64 {
	const least = 2
	if utf8.RuneCountInString(text) < least {
		return 0
	}
	n, good, han, common := 0.0, 0.0, 0.0, 0.0
	before := rune(0)
	for _, r := range text {
		n++
		switch {
		case r == utf8.RuneError: // the source can have it
		case r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r) || r == 0x7f || !isText(r):
			return 0
		case r < utf8.RuneSelf, isSpacePunct(r):
			good++
		case unicode.Is(unicode.Han, r):
			han++
			if strings.ContainsRune(simplified+traditional+kanji, r) {
				common++
			}
		case before >= utf8.RuneSelf && sameBlock(before, r) || before < utf8.RuneSelf && r < 0x2000:
			good++
		}
		before = r
	}
	if han > 0 {
		const usual = 0.35
		good += han * min(1, common/han/usual)
	}
	return good / n
}

// isSpacePunct reports whether a character is of the general punctuation or that of East Asia.
func isSpacePunct(r rune) bool {
	return r >= 0x2000 && r < 0x2070 || r >= 0x3000 && r < 0x3040 || r >= 0xff00 && r < 0xffef || r == 0xa0
}

// sameBlock reports whether two characters are of one script.
func sameBlock(a, b rune) bool {
	if unicode.Is(unicode.Hangul, a) && unicode.Is(unicode.Hangul, b) {
		return true
	}
	return a>>8 == b>>8 || unicode.Is(unicode.Han, a) && b>>8 == 0x30 || a < 0x250 && b < 0x250
}

// unit returns the number at the beginning of src.
func (c Charset) unit(src []byte) rune {
	switch {
	case c.width == 2 && c.big:
		return rune(binary.BigEndian.Uint16(src))
	case c.width == 2:
		return rune(binary.LittleEndian.Uint16(src))
	case c.big:
		return rune(binary.BigEndian.Uint32(src)) //nolint:gosec // negative ones are refused
	}
	return rune(binary.LittleEndian.Uint32(src)) //nolint:gosec // negative ones are refused
}

// decode appends the characters of src, UTF-16 or UTF-32, to dst as UTF-8. It returns the
// bytes of an incomplete character at the end, and whether all others are valid; rest begins
// with the invalid one if not.
func (c Charset) decode(dst, src []byte) (out, rest []byte, ok bool) {
	for len(src) >= c.width {
		r, size := c.unit(src), c.width
		if c.width == 2 && utf16.IsSurrogate(r) {
			if r >= 0xdc00 {
				return dst, src, false
			}
			if len(src) < 2*c.width {
				return dst, src, true
			}
			low := c.unit(src[2:])
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return dst, src, false
			}
			size = 2 * c.width
		}
		if !utf8.ValidRune(r) {
			return dst, src, false
		}
		dst = utf8.AppendRune(dst, r)
		src = src[size:]
	}
	return dst, src, true
}
