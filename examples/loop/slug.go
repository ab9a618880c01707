// Package slug makes names for URLs. It is what the example of a loop works on.
package slug

import "strings"

// Slug makes a name for a URL of a title.
func Slug(title string) string { return strings.ReplaceAll(title, " ", "-") }
