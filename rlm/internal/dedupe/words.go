package dedupe

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/nearest"
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
	if near, ok := nearest.ByEdits(word, words[:min(len(words), maxCandidates)]); ok {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return msg
}
