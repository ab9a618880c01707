package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Hash is the hash by which a bag has a name.
func Hash(s string) uint32 { return lex.Hash(s) }

func mix(h uint64, s string) uint64 { return mixHash(h, Hash(s)) }

func mixHash(h uint64, more uint32) uint64 { return (h ^ uint64(more)) * 1099511628211 }

// appendBag adds all tokens but operators.
func appendBag(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; t.Kind != lex.Op {
			b = append(b, t.Meaning())
		}
	}
	return b
}

// appendTelling adds the tokens that tell one piece of code from another: literals
// and names that are not everywhere.
func appendTelling(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		t := &tokens[i]
		if literal(t) || t.Kind == lex.Word && len(t.S) > 2 && !everywhere(t) {
			b = append(b, t.Meaning())
		}
	}
	return b
}

// appendLiterals adds the telling tokens that are no names.
func appendLiterals(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; literal(t) {
			b = append(b, t.Meaning())
		}
	}
	return b
}

// everywhere tells of a word that tells nothing.
func everywhere(t *lex.Token) bool { return commonSieve().may(t.Hash) && Everywhere(t.S) }

// literal tells of a string or a number that tells something.
func literal(t *lex.Token) bool {
	return t.Kind == lex.Text && len(t.S) > 2 || t.Kind == lex.Number && t.S != "0" && t.S != "1"
}

// appendParts adds what stands between commas and bars in strings, as numbers and
// as strings.
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

// appendNames adds all words.
func appendNames(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range tokens {
		if t := &tokens[i]; t.Kind == lex.Word {
			b = append(b, t.Hash)
		}
	}
	return b
}

// bagOf has all tokens but operators.
func (u *unit) bagOf(tokens []lex.Token) multiset.Hashes {
	u.scratch = appendBag(u.scratch[:0], tokens)
	return u.sorted()
}

// once has each of what some tokens add once.
func (u *unit) once(add func(multiset.Hashes, []lex.Token) multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	u.scratch = add(u.scratch[:0], tokens)
	return u.sortedOnce()
}

// sorted is a bag of what is in the scratch.
func (u *unit) sorted() multiset.Hashes {
	slices.Sort(u.scratch)
	return append(multiset.Hashes(nil), u.scratch...)
}

// sortedOnce is the same with each hash once.
func (u *unit) sortedOnce() multiset.Hashes {
	slices.Sort(u.scratch)
	u.scratch = slices.Compact(u.scratch)
	return append(multiset.Hashes(nil), u.scratch...)
}

// commonWords tell nothing: keywords, and what tests are made of.
var commonWords = sync.OnceValue(wordSet("abstract and any args assert assertEqual assertEquals assertThat async " +
	"await begin bool boolean break case cases catch class const context continue def defer describe else elsif end " +
	"ensure err error Equal Errorf equal except expect expected export extends false False Fatal Fatalf final finally " +
	"float for foreach from fun func function get got if import input int it lambda let list make map module name new " +
	"nil None not null or override package pass private protected public pub raise range require rescue result return " +
	"Run self should static str string String struct switch test testing tests Test then this throw throws toBe " +
	"toEqual true True try type undefined use using val value var void want when while with yield assert_eq " +
	"assert_equal $this"))

var commonSieve = sync.OnceValue(func() *sieve { return commonWords().sieve() })

// Everywhere tells of words that tell nothing: keywords, and what tests are made of.
func Everywhere(s string) bool { return commonWords()[s] }
