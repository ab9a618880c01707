package extract

// tuning holds the figures of the ranking. They were chosen on general grounds and adjusted
// on questions about the Go toolchain's source, among them those of testdata/questions.json;
// types, alias and alike on those of bench/retrieve/first.json too. Those of
// testdata/heldout.json and of bench/retrieve/second.json were not used.
type tuning struct {
	// k1 and b are the parameters of BM25: how soon repeating a term stops
	// counting, and how much a long passage is held against it.
	k1, b float64
	// idfPower, below 1, keeps a single rare word from deciding everything.
	idfPower float64

	// The weight of an occurrence by its place. types is for the types that comments
	// give in braces, alias for comments that only name a type.
	text, code, name, imported, types, alias float64
	// What a match in the path and in the declarations around counts.
	path, head float64
	// title is what it counts when the file is named by a term.
	title float64

	// What an occurrence counts that is another form of the word, a word
	// derived from the same root, or a word for the same thing.
	inflected, derived, alike float64

	// What the words of the prompt count: undivided identifiers, words every
	// question holds, identifiers and what is quoted.
	wholeWeight, weakWeight, identWeight float64

	// near is the weight of two terms that are as close as in the prompt,
	// nearWindow how many words apart they may be.
	near       float64
	nearWindow int

	// cover is the share of the score that depends on how much of the prompt
	// a passage covers.
	cover float64

	// Factors for program text that no comment introduces, and for passages
	// from the middle of something.
	uncommented, inside float64

	// Factors for files that are seldom the place that explains something.
	tests, generated, vendored float64
}

func tuned() tuning {
	return tuning{
		k1: 1, b: 0.35, idfPower: 0.85,
		text: 1, code: 0.5, name: 1.2, imported: 0.2, types: 0.5, alias: 0.2,
		path: 3, head: 0.2, title: 0.7,
		inflected: 0.6, derived: 0.2, alike: 0.4,
		wholeWeight: 1.4, weakWeight: 0.65, identWeight: 1.3,
		near: 1, nearWindow: 6,
		cover:       0.25,
		uncommented: 0.74, inside: 0.92,
		tests: 0.5, generated: 0.6, vendored: 0.7,
	}
}
