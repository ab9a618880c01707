package textindex

import (
	_ "embed"
	"slices"
	"strings"
)

// maxTerms is how many different words of a query are looked for, identifiers first.
const maxTerms = 32

//go:embed stop.txt
var stopWords string

//go:embed alike.txt
var alikeWords string

// lexicon holds the lists of words.
type lexicon struct {
	stop  map[string]bool
	alike map[string][]string // words for the same thing
}

// newLexicon reads the lists.
func newLexicon() *lexicon {
	l := &lexicon{stop: map[string]bool{}, alike: map[string][]string{}}
	for w := range strings.FieldsSeq(stopWords) {
		l.stop[w] = true
	}
	for group := range strings.Lines(alikeWords) {
		list := strings.Fields(group)
		for _, w := range list {
			if list[0] != "#" {
				l.alike[w] = append(l.alike[w], list...)
			}
		}
	}
	return l
}

// term is a word that a query looks for.
type term struct {
	text string
	// before is the number of the term before it in the query, -1 for none.
	before int
	idf    float64
}

// form is a way in which a term occurs in a text: the word itself, a word with the same root,
// or a word for the same thing.
type form struct {
	term   int
	text   string
	weight float64
}

// Query is a question in the form in which passages are compared with it.
type Query struct {
	terms []term
	// forms by the hashes of their roots.
	forms map[uint32][]form
	// tests is set if the question is about tests.
	tests bool
}

// What occurrences of other words than that of the query count.
const (
	rootWeight  = 0.55
	alikeWeight = 0.3
)

// NewQuery returns the query for a question. Common words are left out unless it has no others.
func NewQuery(question string) *Query {
	l := newLexicon()
	q := &Query{forms: map[uint32][]form{}}
	if q.read(question, l); len(q.terms) == 0 {
		q.read(question, &lexicon{})
	}
	return q
}

func (q *Query) read(question string, l *lexicon) {
	before := -1
	words(question, func(w word) {
		text := string(w.lower)
		quoted := w.start > 0 && question[w.start-1] == '`'
		ident := w.part || w.whole || quoted || strings.HasPrefix(question[w.end:], "(")
		if l.stop[text] && !quoted || len(q.terms) == maxTerms && !ident {
			return
		}
		at := slices.IndexFunc(q.terms, func(t term) bool { return t.text == text })
		if at < 0 && len(q.terms) < 2*maxTerms {
			at = len(q.terms)
			q.terms = append(q.terms, term{text: text, before: before})
			q.add(form{at, text, 1}, root(w.lower))
			if before >= 0 && !w.whole { // hash table, hashtable
				both := q.terms[before].text + text
				q.add(form{at, both, 1}, root([]byte(both)))
				q.add(form{before, both, 1}, root([]byte(both)))
			}
			for _, other := range l.alike[text] {
				if other != text {
					q.add(form{at, other, alikeWeight}, root([]byte(other)))
				}
			}
		}
		if !w.whole {
			before = at
		}
		q.tests = q.tests || strings.HasPrefix(text, "test") || text == "benchmark"
	})
}

// add makes a word, and words with its root, occurrences of a term.
func (q *Query) add(f form, root []byte) {
	h := hash(root)
	if !slices.ContainsFunc(q.forms[h], func(o form) bool { return o.term == f.term }) {
		q.forms[h] = append(q.forms[h], f)
	}
}

// match returns the best form of a word of a text, and what it counts; 0 for other words.
func (q *Query) match(lower []byte) (at int, weight float64) {
	if len(q.forms) == 0 {
		return 0, 0
	}
	for _, f := range q.forms[hash(root(lower))] {
		w := f.weight
		if f.text != string(lower) {
			w *= rootWeight
		}
		if w > weight {
			at, weight = f.term, w
		}
	}
	return at, weight
}

// Match is a word of a text that a query looks for.
type Match struct{ Start, End int }

// Matches returns the words of a text that a query looks for, in order.
func (q *Query) Matches(text string) []Match {
	var out []Match
	words(text, func(w word) {
		if _, weight := q.match(w.lower); weight == 0 {
			return
		}
		if n := len(out); n > 0 && w.start < out[n-1].End { // a part of an identifier that matches as a whole
			return
		}
		out = append(out, Match{w.start, w.end})
	})
	return out
}
