// Package clip shortens text to a number of bytes or characters, to one of its
// lines, to a single line, or to what databases can hold. It never cuts inside a
// character.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Mark stands for the part of a text that was cut off.
const Mark = "…"

// Storable returns s as databases can hold it: with U+FFFD in place of NUL characters and of
// bytes that are not UTF-8, such as a lone surrogate.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Prefix returns the beginning of s, at most n bytes, without a mark.
func Prefix(s string, n int) string {
	n = max(n, 0)
	if len(s) <= n {
		return s
	}
	for i := n; i > n-utf8.UTFMax && i >= 0; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n] // not UTF-8
}

// Suffix returns the end of s, at most n bytes, without a mark.
func Suffix(s string, n int) string {
	n = max(n, 0)
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for i := from; i < from+utf8.UTFMax; i++ {
		if i == len(s) || utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s[from:]
}

// Bytes returns s in at most n bytes; if some of it was cut off, it ends with
// [Mark].
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n < len(Mark) {
		return ""
	}
	return Prefix(s, n-len(Mark)) + Mark
}

// End returns the end of s in at most n bytes; if some of it was cut off, it
// begins with [Mark].
func End(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n < len(Mark) {
		return ""
	}
	return Mark + Suffix(s, n-len(Mark))
}

// Runes returns s in at most n characters; if some of it was cut off, it ends with
// [Mark], without blanks before it. It reads no more of s than needed.
func Runes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	count, last := 0, 0
	for i := range s {
		if count == n-1 {
			last = i
		}
		if count == n {
			return strings.TrimSpace(s[:last]) + Mark
		}
		count++
	}
	return s
}

// OneLine returns s with every run of blanks and line ends as one space, and
// without those at its ends.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// FirstLine returns the first line of s that is not blank, without the blanks at
// its ends.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

// LastLine returns the last line of s that is not blank, without the blanks at its
// ends.
func LastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}
