package dedupe

import (
	"fmt"
	"unicode/utf8"
)

// WithoutMiddle cuts a text to at most about n bytes: the beginning stays, and
// half as much of the end, between characters.
func WithoutMiddle(text string, n int) string {
	if len(text) <= n {
		return text
	}
	mark := fmt.Sprintf("\n[… of %d bytes the middle is left out …]\n", len(text))
	n = max(0, n-len(mark))
	head, tail := n*2/3, len(text)-n/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + mark + text[tail:]
}
