package config

import "github.com/perdure/perdure/internal/text/nearest"

// Nearest returns the candidate that somebody who wrote word most likely
// meant, and whether there is one. See package nearest.
func Nearest(word string, candidates []string) (string, bool) { return nearest.Word(word, candidates) }

func nearestByEdits(word string, candidates []string) (string, bool) {
	return nearest.ByEdits(word, candidates)
}
