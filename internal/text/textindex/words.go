package textindex

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is the longest word in bytes; longer runs of letters and digits, such as encoded
// data, are not indexed.
const maxWord = 64

// word is a word of a text: a part of an identifier, or a whole identifier of several parts
// without its separators.
type word struct {
	start, end int
	lower      []byte // valid during the call only
	// whole marks the undivided form of an identifier of several parts, which precedes its
	// parts; part marks one of them.
	whole, part bool
}

// The classes of bytes.
const (
	separator = iota
	lowerCase
	upperCase
	digit
	underscore
	wide // part of a rune outside ASCII
)

func classOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return lowerCase
	case 'A' <= c && c <= 'Z':
		return upperCase
	case '0' <= c && c <= '9':
		return digit
	case c == '_':
		return underscore
	case c >= utf8.RuneSelf:
		return wide
	}
	return separator
}

// words calls emit for the words of a text in order.
func words(text string, emit func(word)) {
	var buf [maxWord]byte
	for i := 0; i < len(text); {
		if classOf(text[i]) == separator {
			i++
			continue
		}
		start, isWide := i, false
		for i < len(text) && classOf(text[i]) != separator {
			isWide = isWide || text[i] >= utf8.RuneSelf
			i++
		}
		switch {
		case isWide:
			wideWords(text[start:i], start, buf[:], emit)
		case i-start <= maxWord:
			identifier(text[start:i], start, buf[:], emit)
		}
	}
}

// identifier emits an identifier of ASCII and its parts: between underscores and at changes of
// case, so that "HTTPServer_v2" has the parts "http", "server" and "v2".
func identifier(s string, offset int, buf []byte, emit func(word)) {
	first := partEnd(s, 0)
	divided := first < len(s) && !isEncoded(s)
	if !divided {
		first = len(s)
	}
	if divided {
		lower := buf[:0]
		for i := range len(s) {
			if s[i] != '_' {
				lower = append(lower, lowerOf(s[i]))
			}
		}
		if len(lower) > 0 {
			emit(word{start: offset, end: offset + len(s), lower: lower, whole: true})
		}
	}
	for start, end := 0, first; start < len(s); start, end = end, partEnd(s, end) {
		for start < end && s[start] == '_' {
			start++
		}
		if start == end {
			continue
		}
		lower := buf[:0]
		for i := start; i < end; i++ {
			lower = append(lower, lowerOf(s[i]))
		}
		emit(word{start: offset + start, end: offset + end, lower: lower, part: divided})
	}
}

// isEncoded reports whether a long run of letters and digits has so many parts that it is encoded
// data.
func isEncoded(s string) bool {
	parts := 0
	for at := 0; at < len(s); at = partEnd(s, at) {
		parts++
	}
	return len(s) > 24 && parts*4 > len(s)
}

// partEnd returns the end of the part of an identifier that begins at or after start.
func partEnd(s string, start int) int {
	i := start
	for i < len(s) && s[i] == '_' {
		i++
	}
	for k := i + 1; k < len(s); k++ {
		before, c := classOf(s[k-1]), classOf(s[k])
		switch {
		case c == underscore, c == upperCase && before != upperCase:
			return k
		case c == lowerCase && before == upperCase && k-1 > i &&
			(s[k] != 's' || k+1 < len(s) && classOf(s[k+1]) == lowerCase):
			return k - 1 // URLs is one word
		}
	}
	return len(s)
}

func lowerOf(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// wideWords emits the words of a run with runes outside ASCII. Scripts that are written
// without spaces come rune by rune.
func wideWords(s string, offset int, buf []byte, emit func(word)) {
	lower, start := buf[:0], 0
	flush := func(end int) {
		if len(lower) > 0 {
			emit(word{start: offset + start, end: offset + end, lower: lower})
		}
		lower = buf[:0]
	}
	for i, r := range s {
		switch {
		case !unicode.In(r, unicode.L, unicode.N, unicode.M):
			flush(i)
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer):
			flush(i)
			start, lower = i, utf8.AppendRune(lower, r)
			flush(i + utf8.RuneLen(r))
		default:
			if len(lower) == 0 {
				start = i
			}
			if r = unicode.ToLower(r); len(lower)+utf8.RuneLen(r) <= maxWord {
				lower = utf8.AppendRune(lower, r)
			}
		}
	}
	flush(len(s))
}

// endings returns the endings that are cut from words with this last letter, the first that fits.
func endings(last byte) []string {
	switch last {
	case 's':
		return []string{"izations", "ations", "ments", "ions", "ings", "ness", "ors", "ers", "ies", "es", "s"}
	case 'n':
		return []string{"ization", "ation", "ion"}
	case 'g':
		return []string{"ing"}
	case 'd':
		return []string{"ied", "ed"}
	case 'e':
		return []string{"able", "ible", "e"}
	case 'r':
		return []string{"or", "er"}
	case 't':
		return []string{"ment"}
	case 'y':
		return []string{"ly", "y"}
	case 'l':
		return []string{"al"}
	case 'c':
		return []string{"ic"}
	}
	return nil
}

// root returns a word without the endings of grammar and of derived words: "allocate",
// "allocator" and "allocations" have the root "aloc". It is for comparing, not for reading.
func root(w []byte) []byte {
	if len(w) < 4 {
		return w
	}
	for _, ending := range endings(w[len(w)-1]) {
		stem := len(w) - len(ending)
		least := 3 + len(ending)/4
		if stem < least || string(w[stem:]) != ending || !hasVowel(w[:stem]) ||
			ending == "s" && strings.IndexByte("sui", w[stem-1]) >= 0 || ending == "ed" && w[stem-1] == 'e' {
			continue
		}
		w = w[:stem]
		break
	}
	if n := len(w); n >= 6 && string(w[n-2:]) == "at" { // validat, valid
		w = w[:n-2]
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] { // stopp, stop
		w = w[:n-1]
	}
	return w
}

func hasVowel(w []byte) bool {
	for _, c := range w {
		if strings.IndexByte("aeiouy", c) >= 0 {
			return true
		}
	}
	return false
}

// hash returns the FNV-1a hash of a word.
func hash(w []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range w {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
