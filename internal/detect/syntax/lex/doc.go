// Package lex splits source code into tokens, with one token for a string, and comments. It has no
// knowledge of languages besides the Rules that it is given.
//
// Reading never fails and takes time linear in the text.
package lex
