package detect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// extends reports whether one of two test names is the other one with words added. The
// shorter one has at least three words, in the same order.
func extends(short, long []string) bool {
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) < 3 {
		return false
	}
	for _, w := range long {
		if len(short) > 0 && w == short[0] {
			short = short[1:]
		}
	}
	return len(short) == 0
}

// wordsOf returns the words of a name, cached because a name is compared with many.
func (r *run) wordsOf(name string) []string {
	words, known := r.words[name]
	if !known {
		words = nameWords(name)
		r.words[name] = words
	}
	return words
}

// nameWords splits a name at separators and before capitals.
func nameWords(s string) []string {
	var all []string
	begin := 0
	end := func(i int) {
		if i > begin {
			all = append(all, strings.ToLower(s[begin:i]))
		}
	}
	lower := false
	for i, c := range s {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			end(i)
			begin = i + utf8.RuneLen(c)
		case unicode.IsUpper(c) && lower:
			end(i)
			begin = i
		}
		lower = unicode.IsLower(c)
	}
	end(len(s))
	return all
}
