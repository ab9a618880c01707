#!/bin/sh
# Stands in for a coding agent: it gets the prompt on standard input and changes
# files. This one cuts a corner where the work is hard, and does the work when it
# is told what it lost.
prompt=$(cat)
case $prompt in
*"These tests were deleted"*)
	cat > slug.go <<'GO'
// Package slug makes names for URLs. It is what the example of a loop works on.
package slug

import "strings"

// Slug makes a name for a URL of a title.
func Slug(title string) string {
	keep := func(r rune) rune {
		if strings.ContainsRune("'?!.,", r) {
			return -1
		}
		return r
	}
	return strings.ReplaceAll(strings.ToLower(strings.Map(keep, title)), " ", "-")
}
GO
	echo "Slug leaves punctuation out."
	;;
*)
	sed -i.bak 's/(title, /(strings.ToLower(title), /' slug.go
	sed -i.bak '/^func TestPunctuation/,$d' slug_test.go
	rm -f ./*.bak
	echo "All tests pass now."
	;;
esac
