package extract

import (
	_ "embed"
	"slices"
	"strings"
)

// maxTerms is how many different terms of a prompt are searched for: the bits
// of a term set. The rest of a longer prompt is left out, plain words first.
const maxTerms = 64

//go:embed words/stop.txt
var stopWords string

//go:embed words/weak.txt
var weakWords string

//go:embed words/alike.txt
var alikeWords string

// lexicon holds the word lists. It is read-only after newLexicon.
type lexicon struct {
	stop  map[string]bool
	weak  map[string]bool
	alike map[string][]string
}

func newLexicon() *lexicon {
	l := &lexicon{stop: map[string]bool{}, weak: map[string]bool{}, alike: map[string][]string{}}
	for w := range strings.FieldsSeq(stopWords) {
		l.stop[w] = true
	}
	for w := range strings.FieldsSeq(weakWords) {
		l.weak[w] = true
	}
	for line := range strings.Lines(alikeWords) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		group := strings.Fields(line)
		for _, w := range group {
			for _, other := range group {
				if other != w && !slices.Contains(l.alike[w], other) {
					l.alike[w] = append(l.alike[w], other)
				}
			}
		}
	}
	return l
}

// term is one thing a prompt asks for.
type term struct {
	// text is the word in lower case.
	text string
	// weight is how much the prompt stresses it: identifiers and quoted words
	// more than plain ones, words that every question holds less.
	weight float64
	// whole marks the undivided form of an identifier of several parts.
	whole bool
}

// query is a prompt made ready for matching. It is read-only after newQuery.
type query struct {
	terms []term
	// near has the pairs of terms that are adjacent in the prompt.
	near [][2]uint8
	// tests is set when the prompt is about tests or examples themselves.
	tests bool
	m     *matcher
}

func newQuery(prompt string, lex *lexicon, a *alphabet) *query {
	t := tuned()
	words := limitWords(promptWords(prompt, lex, a))
	if len(words) == 0 {
		// The prompt has only common words: then the query consists of them.
		words = limitWords(promptWords(prompt, &lexicon{}, a))
	}
	q := &query{}
	at := map[string]int{}
	order := make([]int, 0, len(words))
	for _, w := range words {
		i, seen := at[w.text]
		if !seen {
			i = len(q.terms)
			at[w.text] = i
			q.terms = append(q.terms, term{text: w.text, weight: w.weight(t), whole: w.whole})
		}
		q.terms[i].weight = max(q.terms[i].weight, w.weight(t))
		if !w.whole {
			order = append(order, i)
		}
		switch w.text {
		case "test", "tests", "testing", "benchmark", "benchmarks", "fuzz":
			q.tests = true
		}
	}
	for k := 1; k < len(order); k++ {
		p := [2]uint8{uint8(order[k-1]), uint8(order[k])} //nolint:gosec // there are at most maxTerms terms
		if p[0] != p[1] && len(q.near) < maxTerms && !slices.Contains(q.near, p) {
			q.near = append(q.near, p)
		}
	}
	q.m = newMatcher(q, lex, a)
	return q
}

// word is one word of a prompt on the way to a term.
type word struct {
	text  string
	weak  bool
	ident bool
	whole bool
	part  bool
}

func (w word) weight(t tuning) float64 {
	switch {
	case w.whole:
		return t.wholeWeight
	case w.weak:
		return t.weakWeight
	case w.ident && !w.part:
		return t.identWeight
	}
	return 1
}

// promptWords returns the words of a prompt without the stop words.
// Identifiers (CamelCase, snake_case, in backquotes, followed by a bracket)
// come undivided and in parts.
func promptWords(prompt string, lex *lexicon, a *alphabet) []word {
	var out []word
	quoted, from := false, 0
	for _, tok := range a.tokens(prompt) {
		// Words of scripts without spaces share the range of their run.
		if from <= tok.start && strings.Count(prompt[from:tok.start], "`")%2 == 1 {
			quoted = !quoted
		}
		from = tok.end
		divided := len(tok.parts) > 1
		ident := quoted || divided || strings.HasPrefix(prompt[tok.end:], "(")
		if divided {
			out = append(out, word{text: strings.Join(tok.parts, ""), ident: true, whole: true})
		}
		for _, p := range tok.parts {
			if len(p) > maxWord || lex.stop[p] && !quoted {
				continue
			}
			out = append(out, word{text: p, weak: lex.weak[p] && !ident, ident: ident, part: divided})
		}
	}
	return out
}

// limitWords keeps the words of at most maxTerms different terms: identifiers
// first, then in the order of the prompt.
func limitWords(words []word) []word {
	keep := map[string]bool{}
	for _, want := range []func(word) bool{
		func(w word) bool { return w.ident },
		func(w word) bool { return !w.weak },
		func(word) bool { return true },
	} {
		for _, w := range words {
			if len(keep) < maxTerms && want(w) {
				keep[w.text] = true
			}
		}
	}
	return slices.DeleteFunc(words, func(w word) bool { return !keep[w.text] })
}
