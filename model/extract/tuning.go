package extract

// tuning holds the figures of the ranking. They were chosen on general grounds
// and adjusted on the shipped questions; testdata/heldout.json was not used.
type tuning struct {
	// k1 and b are the parameters of BM25: how soon repeating a term stops
	// counting, and how much a long passage is held against it.
	k1, b float64

	// What an occurrence counts by where it stands.
	comment, code, decl, declName, imported float64
	// What matching the path and the enclosing declaration or heading counts.
	path, head float64

	// How far an occurrence is from the word of the prompt.
	inflected, derived, alike float64

	// What the words of the prompt count.
	wholeWeight, weakWeight, identWeight float64

	// near is what two terms side by side count, nearWindow how many words
	// apart they may be.
	near       float64
	nearWindow int

	// cover is the share of the score that depends on how much of the prompt
	// a passage covers.
	cover float64

	// Factors for files that are seldom the answer.
	tests, generated, vendored float64
}

func tuned() tuning {
	return tuning{
		k1: 1.2, b: 0.5,
		comment: 1, code: 0.7, decl: 1.2, declName: 2, imported: 0.3,
		path: 1, head: 0.7,
		inflected: 0.95, derived: 0.6, alike: 0.6,
		wholeWeight: 1.5, weakWeight: 0.35, identWeight: 1.3,
		near: 0.6, nearWindow: 5,
		cover: 0.6,
		tests: 0.7, generated: 0.75, vendored: 0.85,
	}
}
