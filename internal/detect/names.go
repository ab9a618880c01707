package detect

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
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

// announced reports whether documents of the change, above all a changelog, newly mention
// the words of a name.
func (r *run) announced(leaf string) bool {
	if r.said == nil {
		r.said = multiset.Hashes{}
		for _, p := range r.pairs {
			if p.lang == nil && p.new != nil && document(p.new.Path) {
				r.said = append(r.said, multiset.Difference(p.new.Rest, p.before().Rest)...)
			}
		}
		slices.Sort(r.said)
	}
	parts := nameParts().FindAllString(leaf, -1)
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(w string) bool { return !r.said.Has(stem(w)) })
}

// document reports whether a file name is that of a document for people.
func document(name string) bool {
	return slices.Contains([]string{".md", ".rst", ".adoc", ".txt", ""}, strings.ToLower(path.Ext(name))) &&
		(documents().MatchString(path.Base(name)) || strings.HasPrefix(name, "docs/"))
}

var documents = lazyregexp.New(`(?i)^(?:change|history|news|readme|release|upgrad|migrat|breaking|unreleased)`)

// stems returns the hashes of the word stems of a text, with repetitions.
func stems(text string) multiset.Hashes {
	var all multiset.Hashes
	for w := range strings.FieldsFuncSeq(text, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }) {
		for _, part := range nameParts().FindAllString(w, -1) {
			all = append(all, stem(part))
		}
	}
	slices.Sort(all)
	return all
}

// stem returns the hash of the beginning of a word.
func stem(w string) uint32 {
	return syntax.Hash(strings.ToLower(w[:min(len(w), stemLength)]))
}

// stemLength is the number of letters that identify a word: cancel, cancelled.
const stemLength = 5
