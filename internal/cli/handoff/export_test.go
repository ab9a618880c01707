package handoff

// Translated exports translated for tests.
func Translated(err error) error { return translated(err) }
