package detect

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// announced tells whether the documents of the change, a changelog most of all, say
// something new with the words of a name.
func (r *run) announced(leaf string) bool {
	if r.said == nil {
		r.said = multiset.Hashes{}
		for _, p := range r.pairs {
			if p.lang != nil || p.new == nil || !document(p.new.Path) {
				continue
			}
			var before multiset.Hashes
			if p.old != nil {
				before = p.old.Rest
			}
			r.said = append(r.said, multiset.Difference(p.new.Rest, before)...)
		}
		slices.Sort(r.said)
	}
	parts := nameParts().FindAllString(leaf, -1)
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(w string) bool { return !r.said.Has(stem(w)) })
}

// document tells by the name whether a file is written for people.
func document(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".rst", ".adoc", ".txt", "":
		return documents().MatchString(path.Base(name)) || strings.HasPrefix(name, "docs/")
	}
	return false
}

var documents = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:change|history|news|readme|release|upgrad|migrat|breaking|unreleased)`)
})

// stems are the words of a text without their endings, with repetition.
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

// stem is the hash of the beginning of a word.
func stem(w string) uint32 {
	return syntax.Hash(strings.ToLower(w[:min(len(w), stemLength)]))
}

// stemLength is how many letters of a word tell it from others: cancel, cancelled.
const stemLength = 5
