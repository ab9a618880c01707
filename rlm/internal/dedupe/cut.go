package dedupe

import (
	"fmt"

	"github.com/perdure/perdure/internal/text/clip"
)

// WithoutMiddle cuts a text to at most about n bytes: the beginning stays, and
// half as much of the end, between characters.
func WithoutMiddle(text string, n int) string {
	if len(text) <= n {
		return text
	}
	mark := fmt.Sprintf("\n[… of %d bytes the middle is left out …]\n", len(text))
	n = max(0, n-len(mark))
	return clip.Prefix(text, n*2/3) + mark + clip.Suffix(text, n/3)
}
