package risk

import (
	"path"
	"slices"
	"strings"
)

// validates reports whether a file is code that validates, by a word of its path that begins
// with "validat": validators.py, EmailValidator.java, src/validation/email.ts. Words such as
// "invalidate" are others.
func validates(rel string) bool {
	if slices.Contains([]string{".md", ".rst", ".txt", ".adoc", ".html"}, strings.ToLower(path.Ext(rel))) {
		return false
	}
	const word = "validat"
	for at := range len(rel) - len(word) {
		if !strings.EqualFold(rel[at:at+len(word)], word) {
			continue
		}
		if camel := rel[at] == 'V' && rel[at+1] == 'a'; camel || at == 0 || !letter(rel[at-1]) {
			return true
		}
	}
	return false
}

// letter reports whether a byte of a path is a letter of ASCII.
func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
