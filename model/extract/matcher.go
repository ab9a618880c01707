package extract

// matcher finds the terms of a query in text. It is read-only after
// newMatcher and may be used by several goroutines.
type matcher struct {
	*alphabet
	// starts has a bit for every beginning (three bytes, folded) of a word
	// that can match. Nearly all words of a text stop here.
	starts [1 << 10]uint32
	// exact maps words, and identifiers without their separators, to terms.
	exact map[string][]form
	// roots maps the roots of words to terms.
	roots map[string][]form
	// pairs lists for each term the pairs of neighbours it is in.
	pairs [maxTerms][]pairOf
	// factor are the figures for words that are not equal to the prompt's.
	inflected, derived float64
}

// form is one spelling of a term.
type form struct {
	term     uint8
	strength float64
	word     string
	// inflected is the word without the endings of grammar.
	inflected string
}

type pairOf struct{ pair, other uint8 }

func newMatcher(q *query, lex *lexicon, a *alphabet) *matcher {
	t := tuned()
	m := &matcher{
		alphabet: a, exact: map[string][]form{}, roots: map[string][]form{},
		inflected: t.inflected, derived: t.derived,
	}
	for i, tm := range q.terms {
		m.addWord(uint8(i), tm.text, 1, tm.whole)
		for _, w := range lex.alike[tm.text] {
			m.addWord(uint8(i), w, t.alike, false)
		}
	}
	for i, p := range q.near {
		x, y := p[0], p[1]
		m.pairs[x] = append(m.pairs[x], pairOf{uint8(i), y})
		m.pairs[y] = append(m.pairs[y], pairOf{uint8(i), x})
		joined := q.terms[x].text + q.terms[y].text
		if len(joined) <= maxWord && len(m.exact[joined]) == 0 {
			m.addExact(form{term: x, strength: 1, word: joined})
			m.addExact(form{term: y, strength: 1, word: joined})
		}
	}
	return m
}

// addWord makes a word match a term, in all its forms unless whole.
func (m *matcher) addWord(term uint8, w string, strength float64, whole bool) {
	if len(w) > maxWord {
		return
	}
	m.addExact(form{term: term, strength: strength, word: w})
	if whole {
		return
	}
	buf := []byte(w)
	n := inflected(buf)
	f := form{term: term, strength: strength, word: w, inflected: string(buf[:n])}
	root := string(buf[:derived(buf[:n])])
	m.roots[root] = append(m.roots[root], f)
	m.addStarts(root)
}

func (m *matcher) addExact(f form) {
	m.exact[f.word] = append(m.exact[f.word], f)
	m.addStart(f.word)
}

// addStarts lets through all words that can have the root.
func (m *matcher) addStarts(root string) {
	m.addStart(root)
	if len(root) > 3 {
		return
	}
	// A final i may have been a y, and behind a root of two letters any third
	// letter may follow.
	if i := len(root) - 1; i > 0 && root[i] == 'i' {
		m.addStart(root[:i] + "y")
	}
	if len(root) < 3 {
		for c := range 256 {
			if m.class[c] != separator {
				m.addStart(root + string([]byte{byte(c)}))
			}
		}
	}
}

func (m *matcher) addStart(w string) {
	k := m.start(w)
	m.starts[k>>5] |= 1 << (k & 31)
}

// mayMatch is the filter that nearly all words of a text end at.
func (m *matcher) mayMatch(w string) bool {
	k := m.start(w)
	return m.starts[k>>5]&(1<<(k&31)) != 0
}

// start folds the first three bytes of a word into 15 bits.
func (m *matcher) start(w string) uint32 {
	fold := &m.fold
	switch {
	case len(w) >= 3:
		return uint32(fold[w[0]])<<10 | uint32(fold[w[1]])<<5 | uint32(fold[w[2]])
	case len(w) == 2:
		return uint32(fold[w[0]])<<10 | uint32(fold[w[1]])<<5
	case len(w) == 1:
		return uint32(fold[w[0]]) << 10
	}
	return 0
}

// tally is what a passage holds of a query. It serves one goroutine.
type tally struct {
	m *matcher
	// terms are the terms that were met, tf their weighted frequencies, valid
	// for these only.
	terms uint64
	tf    [maxTerms]float64
	// words counts the words so far.
	words int
	last  [maxTerms]int
	// near is the closeness, 0 to 1, of each pair of neighbours.
	near   [maxTerms]float64
	window int
	lower  [maxWord]byte
}

func newTally(m *matcher) *tally { return &tally{m: m, window: tuned().nearWindow} }

func (t *tally) reset() {
	clear(t.near[:])
	t.terms, t.words = 0, 0
}

// scan counts the words of s. weight is what an occurrence counts.
func (t *tally) scan(s string, weight float64) {
	class := &t.m.class
	for i := 0; i < len(s); {
		seen := class[s[i]]
		start := i
		i++
		if seen == separator {
			continue
		}
		for i < len(s) {
			c := class[s[i]]
			if c == separator {
				break
			}
			seen |= c
			i++
		}
		switch {
		case seen&wide != 0:
			wideParts(s[start:i], func(lower []byte) {
				t.words++
				t.match(lower, weight)
			})
		case seen == lowerCase:
			t.part(s[start:i], weight)
		default:
			t.identifier(s[start:i], weight)
		}
	}
}

// part counts one word in one case.
func (t *tally) part(w string, weight float64) {
	t.words++
	if !t.m.mayMatch(w) || len(w) > maxWord {
		return
	}
	lower := &t.m.lower
	for i := range len(w) {
		t.lower[i] = lower[w[i]]
	}
	t.match(t.lower[:len(w)], weight)
}

// identifier counts the parts of a word and the undivided word itself.
func (t *tally) identifier(w string, weight float64) {
	start, end := t.m.nextPart(w, 0)
	if end == 0 {
		return
	}
	if end-start == len(w) {
		t.part(w, weight)
		return
	}
	first := true
	for end > 0 {
		t.part(w[start:end], weight)
		if first {
			t.undivided(w[start:], weight)
			first = false
		}
		start, end = t.m.nextPart(w, end)
	}
}

// undivided looks for an identifier without its separators and case. It is
// counted at the place of its first part.
func (t *tally) undivided(w string, weight float64) {
	if len(w) >= 3 && w[1] != '_' && w[2] != '_' && !t.m.mayMatch(w) {
		return
	}
	n, lower := 0, &t.m.lower
	for i := 0; i < len(w); i++ {
		if w[i] == '_' {
			continue
		}
		if n == len(t.lower) {
			return
		}
		t.lower[n] = lower[w[i]]
		n++
	}
	for _, f := range t.m.exact[string(t.lower[:n])] {
		t.add(f.term, f.strength*weight)
	}
}

// match looks a word in lower case up. It may change the word.
func (t *tally) match(w []byte, weight float64) {
	if forms := t.m.exact[string(w)]; forms != nil {
		for _, f := range forms {
			t.add(f.term, f.strength*weight)
		}
		return
	}
	n := inflected(w)
	var buf [maxWord]byte
	k := derived(buf[:copy(buf[:], w[:n])])
	for _, f := range t.m.roots[string(buf[:k])] {
		strength := f.strength * t.m.derived
		if f.inflected == string(w[:n]) {
			strength = f.strength * t.m.inflected
		}
		t.add(f.term, strength*weight)
	}
}

// add counts one occurrence of a term at the current word.
func (t *tally) add(term uint8, amount float64) {
	bit := uint64(1) << term
	if t.terms&bit == 0 {
		t.terms |= bit
		t.tf[term] = 0
	}
	t.tf[term] += amount
	t.last[term] = t.words
	for _, p := range t.m.pairs[term] {
		if t.terms&(1<<p.other) == 0 {
			continue
		}
		apart := t.words - t.last[p.other]
		if apart <= t.window {
			nearness := 1 - float64(max(apart, 1)-1)/float64(t.window)
			t.near[p.pair] = max(t.near[p.pair], nearness)
		}
	}
}
