package handoff

// Translated is translated.
func Translated(err error) error { return translated(err) }
