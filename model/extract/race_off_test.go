//go:build !race

package extract_test

const underRace = false
