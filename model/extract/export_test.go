package extract

// Words counts the words of a text in the two ways there are: as the scan does
// and as prompts are split.
func Words(text string) (scanned, split int) {
	a := newAlphabet()
	t := newTally(newMatcher(&query{}, newLexicon(), a))
	t.scan(text, 1)
	for _, tok := range a.tokens(text) {
		split += len(tok.parts)
	}
	return t.words, split
}

// Parts returns the parts of the words of a text, in lower case.
func Parts(text string) []string {
	var out []string
	for _, tok := range newAlphabet().tokens(text) {
		out = append(out, tok.parts...)
	}
	return out
}

// Terms returns what a prompt is searched for.
func Terms(prompt string) []string {
	var out []string
	for _, t := range newQuery(prompt, newLexicon(), newAlphabet()).terms {
		out = append(out, t.text)
	}
	return out
}

// Root returns the root of a word in lower case.
func Root(word string) string {
	w := []byte(word)
	return string(w[:derived(w[:inflected(w)])])
}

// Passages returns the first and last lines of the passages of a file.
func Passages(file, text string) [][2]int {
	var r reader
	r.read(text, languageOf(file))
	var out [][2]int
	for _, s := range r.spans(1, nil) {
		out = append(out, [2]int{s.first + 1, s.last})
	}
	return out
}
