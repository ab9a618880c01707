#!/bin/sh
# A scripted agent for this example. It reads the prompt from standard input. First it
# deletes a test; when the prompt says that this was taken back, it fixes the code.
prompt=$(cat)
case $prompt in
*"These tests were deleted"* | *"was reverted because"*)
	cat > slug.go <<'GO'
// Package slug converts titles to URL slugs. It is the workspace of the loop example.
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
