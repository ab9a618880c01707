package dedupe

import (
	"fmt"
	"slices"
	"strings"
)

// Earlier writes the results, which come latest first, in their order.
func Earlier(results []string, left int) string {
	if len(results) == 0 && left == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n=== results so far ===\n")
	if left > 0 {
		fmt.Fprintf(&b, "(%d earlier results are left out)\n", left)
	}
	for i, result := range slices.Backward(results) {
		fmt.Fprintf(&b, "\n--- result %d ---\n%s\n", left+len(results)-i, strings.TrimRight(result, "\n"))
	}
	b.WriteString("\n=== end of results so far ===\n")
	return b.String()
}
