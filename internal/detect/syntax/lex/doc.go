// Package lex takes a text of code apart: into tokens, of which strings are one
// each, and comments. What comments and strings look like in a language is data,
// the Rules; there is nothing else of a language here.
//
// Reading never fails and takes time linear in the text, whatever that holds.
package lex
