package lex

import "strings"

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Word Kind = iota
	Number
	Text // a string, a character or a pattern, with its quotes
	Op
)

// Token is a word, a literal or an operator.
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
	Alone bool // no code before it on its line
	S     string
}

// noHash is the initial value of FNV-1a.
const noHash = uint32(2166136261)

// Hash returns the FNV-1a hash of a string.
func Hash(s string) uint32 { return hashOn(noHash, s) }

// hashOn continues a hash.
func hashOn(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// TextHash returns the hash of a string's contents, which differs from that of a name.
func TextHash(s string) uint32 { return hashOn(hashOn(noHash, "\x00"), s) }

// Meaning returns the hash of a token, regardless of the quotes of a string.
func (t *Token) Meaning() uint32 {
	if t.Kind == Text {
		return TextHash(Unquote(t.S))
	}
	return t.Hash
}

// Unquote removes the quotes and the prefix of a string.
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
