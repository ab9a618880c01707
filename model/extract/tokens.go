package extract

import (
	"unicode"
	"unicode/utf8"
)

// The classes of bytes; a word is a run of bytes that are not separators.
const (
	separator  = 0
	lowerCase  = 1
	upperCase  = 2
	digit      = 4
	underscore = 8
	wide       = 16 // part of a rune outside ASCII
)

// alphabet tells what bytes are. Tables, because the scan looks at every byte
// of the context.
type alphabet struct {
	class [256]uint8
	lower [256]byte
	// fold maps a byte to five bits, both cases alike; 0 stands for no byte.
	fold [256]uint8
}

func newAlphabet() *alphabet {
	a := &alphabet{}
	for i := range 256 {
		c := byte(i)
		a.lower[i] = c
		switch {
		case c >= 'a' && c <= 'z':
			a.class[i], a.fold[i] = lowerCase, c-'a'+1
		case c >= 'A' && c <= 'Z':
			a.class[i], a.fold[i] = upperCase, c-'A'+1
			a.lower[i] = c + 'a' - 'A'
		case c >= '0' && c <= '9':
			a.class[i], a.fold[i] = digit, 27+c%5
		case c == '_':
			a.class[i] = underscore
		case c >= utf8.RuneSelf:
			a.class[i] = wide
		}
	}
	return a
}

// nextPart returns the next part of an identifier at or after from: the parts
// between underscores and at changes of case. "HTTPServer_v2" has the parts
// "HTTP", "Server" and "v2". end is 0 when there is none.
func (a *alphabet) nextPart(w string, from int) (start, end int) {
	for from < len(w) && a.class[w[from]] == underscore {
		from++
	}
	if from == len(w) {
		return 0, 0
	}
	class := &a.class
	before := class[w[from]]
	for k := from + 1; k < len(w); k++ {
		c := class[w[k]]
		switch {
		case c == underscore, c == upperCase && before != upperCase:
			return from, k
		case c == lowerCase && before == upperCase && k-1 > from && !a.pluralAt(w, k):
			return from, k - 1
		}
		before = c
	}
	return from, len(w)
}

// pluralAt reports whether the s at k only makes the plural of capitals before
// it, as in URLs.
func (a *alphabet) pluralAt(w string, k int) bool {
	return w[k] == 's' && (k+1 == len(w) || a.class[w[k+1]] != lowerCase)
}

// wideParts calls emit for the words of text that holds runes outside ASCII,
// in lower case. Scripts that write no spaces come rune by rune. What emit is
// given is valid during the call only.
func wideParts(text string, emit func(lower []byte)) {
	var buf [maxWord]byte
	n, long := 0, false
	flush := func() {
		if n > 0 && !long {
			emit(buf[:n])
		}
		n, long = 0, false
	}
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			flush()
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer):
			flush()
			n = utf8.EncodeRune(buf[:], r)
			flush()
		default:
			r = unicode.ToLower(r)
			if n+utf8.RuneLen(r) > maxWord {
				long = true
				continue
			}
			n += utf8.EncodeRune(buf[n:], r)
		}
	}
	flush()
}

// token is one word of a text with its parts in lower case.
type token struct {
	start, end int
	parts      []string
}

// tokens splits a short text, a prompt, into words. For long text there is
// [tally.scan], which does the same without building strings.
func (a *alphabet) tokens(text string) []token {
	var out []token
	for i := 0; i < len(text); {
		if a.class[text[i]] == separator {
			i++
			continue
		}
		start, seen := i, uint8(0)
		for i < len(text) && a.class[text[i]] != separator {
			seen |= a.class[text[i]]
			i++
		}
		if seen&wide != 0 {
			wideParts(text[start:i], func(lower []byte) {
				out = append(out, token{start: start, end: i, parts: []string{string(lower)}})
			})
			continue
		}
		tok := token{start: start, end: i}
		for from, end := a.nextPart(text[start:i], 0); end > 0; from, end = a.nextPart(text[start:i], end) {
			tok.parts = append(tok.parts, a.toLower(text[start+from:start+end]))
		}
		if len(tok.parts) > 0 {
			out = append(out, tok)
		}
	}
	return out
}

func (a *alphabet) toLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = a.lower[c]
	}
	return string(b)
}
