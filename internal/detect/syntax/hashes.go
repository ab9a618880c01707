package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Hash returns the hash of a word, as in multisets.
func Hash(s string) uint32 { return lex.Hash(s) }

// containsAny reports whether a text contains one of the parts.
func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

func mix(h uint64, s string) uint64 { return mixHash(h, Hash(s)) }

func mixHash(h uint64, more uint32) uint64 { return (h ^ uint64(more)) * 1099511628211 }

// appendBag appends the hashes of all tokens but operators.
func appendBag(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; t.Kind != lex.Op {
			b = append(b, t.Meaning())
		}
	}
	return b
}

// appendTelling appends the distinctive tokens: literals, and names other than common words.
func appendTelling(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		t := &tokens[i]
		if literal(t) || t.Kind == lex.Word && len(t.S) > 2 && !everywhere(t) {
			b = append(b, t.Meaning())
		}
	}
	return b
}

// appendLiterals appends the distinctive literals.
func appendLiterals(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; literal(t) {
			b = append(b, t.Meaning())
		}
	}
	return b
}

// everywhere reports whether a token is a common word.
func everywhere(t *lex.Token) bool { return commonSieve().may(t.Hash) && Everywhere(t.S) }

// literal reports whether a token is a string or a number other than 0 and 1.
func literal(t *lex.Token) bool {
	return t.Kind == lex.Text && len(t.S) > 2 || t.Kind == lex.Number && t.S != "0" && t.S != "1"
}

// appendParts appends the fields between commas and bars in strings, as numbers and as strings.
func appendParts(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; t.Kind != lex.Text || len(t.S) > 500 || !strings.ContainsAny(t.S, ",|") {
			continue
		}
		for field := range strings.FieldsFuncSeq(lex.Unquote(tokens[i].S),
			func(c rune) bool { return c == ',' || c == '|' || c == '\n' }) {
			field = strings.Trim(field, " '\t")
			b = append(b, Hash(field), lex.TextHash(field))
		}
	}
	return b
}

// appendNames appends all words.
func appendNames(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; t.Kind == lex.Word {
			b = append(b, t.Hash)
		}
	}
	return b
}

// bagOf returns the multiset of all tokens but operators.
func (u *unit) bagOf(tokens []lex.Token) multiset.Hashes {
	u.scratch = appendBag(u.scratch[:0], tokens)
	return u.sorted()
}

// once returns what add appends for some tokens, each hash once.
func (u *unit) once(add func(multiset.Hashes, []lex.Token) multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	u.scratch = add(u.scratch[:0], tokens)
	return u.sortedOnce()
}

// sorted returns the hashes of the scratch memory, sorted.
func (u *unit) sorted() multiset.Hashes {
	slices.Sort(u.scratch)
	return append(multiset.Hashes(nil), u.scratch...)
}

// sortedOnce is sorted, with each hash once.
func (u *unit) sortedOnce() multiset.Hashes {
	slices.Sort(u.scratch)
	u.scratch = slices.Compact(u.scratch)
	return append(multiset.Hashes(nil), u.scratch...)
}

// commonWords are keywords and the words that all tests consist of.
var commonWords = sync.OnceValue(wordSet("abstract and any args assert assertEqual assertEquals assertThat async " +
	"await begin bool boolean break case cases catch class const context continue def defer describe else elsif end " +
	"ensure err error Equal Errorf equal except expect expected export extends false False Fatal Fatalf final finally " +
	"float for foreach from fun func function get got if import input int it lambda let list make map module name new " +
	"nil None not null or override package pass private protected public pub raise range require rescue result return " +
	"Run self should static str string String struct switch test testing tests Test then this throw throws toBe " +
	"toEqual true True try type undefined use using val value var void want when while with yield assert_eq " +
	"assert_equal $this"))

var commonSieve = sync.OnceValue(func() *sieve { return commonWords().sieve() })

// Everywhere reports whether a word is a keyword or common in all tests.
func Everywhere(s string) bool { return commonWords()[s] }

// oneOf reports whether a word is one of a list.
func oneOf(s string, words ...string) bool { return slices.Contains(words, s) }
