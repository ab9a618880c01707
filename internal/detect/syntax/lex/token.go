package lex

import "strings"

// Kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Word Kind = iota
	Number
	Text // a string, a character or a pattern, with its quotes
	Op
)

// Token is a piece of code; comments are no tokens.
type Token struct {
	Kind  Kind
	First bool // the first of its line
	Line  int32
	Col   int32 // bytes before it in its line
	Off   int32
	Hash  uint32 // of S
	S     string
}

// Comment is a comment with its marks.
type Comment struct {
	Line  int32
	Off   int32
	Alone bool // no code stands before it on its line
	S     string
}

// noHash is what FNV-1a begins with: the hash of nothing.
const noHash = uint32(2166136261)

// Hash is FNV-1a.
func Hash(s string) uint32 { return hashOn(noHash, s) }

// hashOn goes on with a hash.
func hashOn(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// TextHash is the hash of what a string says, which is none of a name.
func TextHash(s string) uint32 { return hashOn(hashOn(noHash, "\x00"), s) }

// Meaning is the hash of a token, which is the same for a string in different quotes.
func (t *Token) Meaning() uint32 {
	if t.Kind == Text {
		return TextHash(Unquote(t.S))
	}
	return t.Hash
}

// Unquote takes the quotes, and what stands before them, off a string.
func Unquote(s string) string {
	i := strings.IndexAny(s, "\"'`")
	if i < 0 {
		return strings.Trim(s, "/")
	}
	s = s[i:]
	for _, q := range [...]string{`"""`, `'''`} {
		if len(s) >= 6 && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[3 : len(s)-3]
		}
	}
	if len(s) >= 2 {
		return s[1 : len(s)-1]
	}
	return ""
}
