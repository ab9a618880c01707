// Package nearest finds the known word nearest to an unknown one, for the hints of
// errors.
package nearest

import "strings"

// Word returns the candidate most similar to word, and whether there is one: the
// candidate with the fewest edits (see [ByEdits]), or else the shortest candidate that
// begins with word. Case does not count.
func Word(word string, candidates []string) (string, bool) {
	if near, ok := ByEdits(word, candidates); ok {
		return near, true
	}
	const enough = 3 // letters that make a beginning worth a guess
	best, found := "", false
	for _, c := range candidates {
		begins := len(word) >= enough && strings.HasPrefix(strings.ToLower(c), strings.ToLower(word))
		if begins && (!found || len(c) < len(best)) {
			best, found = c, true
		}
	}
	return best, found
}

// ByEdits returns the candidate with the fewest edits (a letter more, less,
// other, or two exchanged), at most a third of the word's length and at most
// three. Of candidates with as many edits, one of the word's length wins, else the first.
func ByEdits(word string, candidates []string) (string, bool) {
	w := []rune(strings.ToLower(word))
	const longest = 200 // longer text is not a mistyped name
	if len(w) == 0 || len(w) > longest {
		return "", false
	}
	limit := min(3, max(1, len(w)/3))
	best, found := "", false
	fewest, alike := limit+1, false
	for _, c := range candidates {
		r := []rune(strings.ToLower(c))
		if len(r) > len(w)+limit || len(w) > len(r)+limit {
			continue
		}
		n := edits(w, r)
		if n < fewest || n == fewest && len(r) == len(w) && !alike {
			best, found = c, true
			fewest, alike = n, len(r) == len(w)
		}
	}
	return best, found
}

// edits is the edit distance with exchanged neighbours counted once (optimal
// string alignment). Three rows of the table are enough.
func edits(a, b []rune) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
