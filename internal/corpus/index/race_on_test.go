//go:build race

package index_test

// underRace is set when the race detector makes everything ten times slower.
const underRace = true
