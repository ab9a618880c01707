package dedupe

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxCandidates bounds among how many words the nearest is looked for.
const maxCandidates = 10_000

// Shorten cuts a text to about n bytes, between characters, and marks the cut.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// NotOneOf says that a word is none of some, and which was probably meant.
func NotOneOf(word string, words []string) string {
	const shown, longest = 20, 60
	msg := fmt.Sprintf("%q is not one of %s", Shorten(word, longest), strings.Join(words[:min(len(words), shown)], ", "))
	switch {
	case len(words) == 0:
		msg = fmt.Sprintf("%q is not there; there are none", Shorten(word, longest))
	case len(words) > shown:
		msg += fmt.Sprintf(" and %d more", len(words)-shown)
	}
	if near := Nearest(word, words); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return msg
}

// Nearest returns the candidate with the fewest edits from word, "" when none
// is near.
func Nearest(word string, candidates []string) string {
	const longest = 100 // beyond it, nobody meant a name
	if len(word) > longest {
		return ""
	}
	best, limit := "", max(1, len(word)/3)
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		if len(c) > len(word)+limit || len(word) > len(c)+limit {
			continue
		}
		if n := edits(word, c); n <= limit {
			best, limit = c, n-1
		}
	}
	return best
}

// edits is the number of letters to add, drop, change or exchange with their
// neighbour between two words.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				cost = 1 + min(cost, rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, 1+rows[i-2][j-2])
			}
			rows[i][j] = cost
		}
	}
	return rows[len(a)][len(b)]
}
