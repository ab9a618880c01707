// Package syntax reads a source file into a small model: its tests with their assertions and skips, its
// functions with their guards and error handlers, and marks that instruct tools or test runners. Go is
// read from its syntax tree; TypeScript, JavaScript, Python, Java, Kotlin, C#, Rust, Ruby and PHP from
// the tokens of package lex, with tables of each language's words (language.go, marktable.go and
// strength.go).
//
// Package platform then decides whether the condition of a skipped test depends on the platform. Package
// multiset compares code by its tokens, regardless of their order.
//
// Reading never fails and takes time linear in the text: code that is broken or not understood is not in
// the model. Package detect compares the models of two versions.
package syntax
