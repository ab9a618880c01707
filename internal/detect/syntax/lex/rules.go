package lex

import (
	"strings"
	"unicode/utf8"
)

// Quote is a form of string.
type Quote struct {
	Open, Close string
	// Escape takes away the meaning of the byte after it; 0 for none.
	Escape byte
	// Lines is set when it may go on in the next line.
	Lines bool
	// Code begins a piece of code inside, which ends with a brace.
	Code string
	// Doubled is set when the closing mark, written twice, stands for itself.
	Doubled bool
	// Name is set when what is quoted is a name.
	Name bool
}

// Rules say how comments, strings and words of a language look.
type Rules struct {
	Line      []string // what begins comments to the end of the line
	Block     string   // what begins block comments; they end with its mirror
	Nested    bool     // block comments nest
	Quotes    []Quote  // longest opening first
	Prefixes  string   // letters that may stand before a quote
	Char      bool     // ' is a character or a lifetime, label or name: 'x' but not 'a
	Regex     bool     // /x/ where no division can be
	Hashes    bool     // r#"x"# of Rust
	Documents string   // what begins a document in place: <<~ or <<<
	Percent   bool     // %w[x] of Ruby
	Dollar    bool     // $ belongs to words
	At        bool     // @ belongs to words
	Query     bool     // words may end with ? or !
	Tag       string   // code begins after it, as in PHP
	// Preprocessor is set when lines that begin with # are for one.
	Preprocessor bool
	// Raw is set when three quotes or more begin a string that as many end.
	Raw   bool
	table *table
}

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

// table has what Rules say by the byte with which it begins.
type table struct {
	class     [256]class
	operators [256][]string
}

// operators of more than one byte that matter to the readers; the first that fits
// is taken.
var operators = [...]string{"===", "!==", "...", "<=>", "**=", "??=", "=>", "->", "::", "==", "!=", ":=", "&&", "||",
	"?.", "??", "<=", ">=", "+=", "-=", "++", "--", "!!", "?:", "=~", "..", "**"}

// Prepare makes rules ready to be read with, once they are complete. A copy of them that
// differs in its Tag is ready, too.
func (r *Rules) Prepare() {
	t := new(table)
	for n := range t.class {
		switch c := byte(n); { //nolint:gosec // an index of 256
		case c >= '0' && c <= '9':
			t.class[c] = digit | inner
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf || c == '$' && r.Dollar:
			t.class[c] = letter | inner
		case c == '@' && r.At:
			t.class[c] = letter
		}
	}
	t.class['\n'] = newline
	for _, c := range []byte(" \t\r\f\v") {
		t.class[c] = blank
	}
	// More than what begins one in this language: it is asked then.
	for _, c := range []byte("'\"`/%<#" + r.Prefixes + r.Block + strings.Join(r.Line, "")) {
		t.class[c] |= opens
	}
	for _, o := range operators {
		t.operators[o[0]] = append(t.operators[o[0]], o)
	}
	r.table = t
}
