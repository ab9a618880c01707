package lex

import (
	"strings"
	"unicode/utf8"
)

// Quote is a kind of string literal.
type Quote struct {
	Open, Close string
	// Escape is the byte that escapes the next one; 0 for none.
	Escape byte
	// Lines is set when it may span lines.
	Lines bool
	// Code begins interpolated code, which ends with a brace.
	Code string
	// Doubled is set when the closing mark is escaped by repeating it.
	Doubled bool
	// Name is set for quoted identifiers.
	Name bool
}

// Rules are the comments, strings and words of a language.
type Rules struct {
	Line      []string // begins comments to the end of the line
	Block     string   // begins block comments; its mirror ends them
	Nested    bool     // block comments nest
	Quotes    []Quote  // longest opening first
	Prefixes  string   // letters that may precede a quote
	Char      bool     // ' is a character or a lifetime, label or name: 'x' but not 'a
	Regex     bool     // /x/ where no division can be
	Hashes    bool     // r#"x"# of Rust
	Documents string   // begins a heredoc: <<~ or <<<
	Percent   bool     // %w[x] of Ruby
	Dollar    bool     // $ belongs to words
	At        bool     // @ belongs to words
	Query     bool     // words may end with ? or !
	Tag       string   // code begins after it, as in PHP
	// Preprocessor is set when # begins a preprocessor line.
	Preprocessor bool
	// Raw is set when a string may begin and end with three quotes or more.
	Raw   bool
	table *table
}

// class is a set of the roles of a byte.
type class uint8

const (
	newline class = 1 << iota
	blank
	opens  // a comment or a string may begin
	digit  // a number begins
	letter // a word begins
	inner  // a word continues
)

// table has the rules by first byte.
type table struct {
	class     [256]class
	operators [256][]string
}

// operators are the operators of more than one byte that matter to the readers; the first match
// counts.
var operators = [...]string{"===", "!==", "...", "<=>", "**=", "??=", "=>", "->", "::", "==", "!=", ":=", "&&", "||",
	"?.", "??", "<=", ">=", "+=", "-=", "++", "--", "!!", "?:", "=~", "..", "**"}

// Prepare builds the table of complete rules. A copy with another Tag may share it.
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
	// These may begin a string or comment in some language.
	for _, c := range []byte("'\"`/%<#" + r.Prefixes + r.Block + strings.Join(r.Line, "")) {
		t.class[c] |= opens
	}
	for _, o := range operators {
		t.operators[o[0]] = append(t.operators[o[0]], o)
	}
	r.table = t
}
