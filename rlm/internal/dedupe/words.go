package dedupe

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/nearest"
)

// maxCandidates bounds among how many words the nearest is looked for.
const maxCandidates = 10_000

// NotOneOf says that a word is not one of a list, and which one was probably meant.
func NotOneOf(word string, words []string) string {
	const shown, longest = 20, 60
	msg := fmt.Sprintf("%q is not one of %s", clip.Bytes(word, longest),
		strings.Join(words[:min(len(words), shown)], ", "))
	switch {
	case len(words) == 0:
		msg = fmt.Sprintf("%q is not there; there are none", clip.Bytes(word, longest))
	case len(words) > shown:
		msg += fmt.Sprintf(" and %d more", len(words)-shown)
	}
	if near, ok := nearest.ByEdits(word, words[:min(len(words), maxCandidates)]); ok {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return msg
}
