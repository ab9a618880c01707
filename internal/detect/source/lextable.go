package source

import (
	"strings"
	"unicode/utf8"
)

// class says what a byte may begin, or go on with.
type class uint8

const (
	newline class = 1 << iota
	blank
	opens  // a comment or a string may begin
	digit  // a number begins
	letter // a word begins
	inner  // a word goes on
)

// lexTable has what lexRules say by the byte with which it begins.
type lexTable struct {
	class     [256]class
	operators [256][]string
}

// operators of more than one byte that matter to the readers; the first that fits
// is taken.
var operators = [...]string{"===", "!==", "...", "<=>", "**=", "??=", "=>", "->", "::", "==", "!=", ":=", "&&", "||", "?.", "??", "<=", ">=", "+=", "-=", "++", "--", "!!", "?:", "=~", "..", "**"}

func (r *lexRules) makeTable() *lexTable {
	t := new(lexTable)
	for n := range t.class {
		switch c := byte(n); { //nolint:gosec // an index of 256
		case c >= '0' && c <= '9':
			t.class[c] = digit | inner
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf || c == '$' && r.dollar:
			t.class[c] = letter | inner
		case c == '@' && r.at:
			t.class[c] = letter
		}
	}
	t.class['\n'] = newline
	for _, c := range []byte(" \t\r\f\v") {
		t.class[c] = blank
	}
	// More than what begins one in this language: it is asked then.
	for _, c := range []byte("'\"`/%<#" + r.prefixes + r.block + strings.Join(r.line, "")) {
		t.class[c] |= opens
	}
	for _, o := range operators {
		t.operators[o[0]] = append(t.operators[o[0]], o)
	}
	return t
}
