//go:build !race

package index_test

const underRace = false
