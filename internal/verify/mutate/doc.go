// Package mutate finds small changes of code that a test of this code should notice: a negated
// condition, another operator or constant, an early return. A test that passes with all of them
// does not depend on what the code does.
//
// The changes are made in the text, by the tokens of package syntax, and in Go by its syntax tree
// too. Some give code that does not compile: the caller runs the tests and sees it.
package mutate
