// Package slug converts titles to URL slugs. It is the workspace of the loop example.
package slug

import "strings"

// Slug makes a name for a URL of a title.
func Slug(title string) string { return strings.ReplaceAll(title, " ", "-") }
