// Package syntax reads a file of code into a small model: its tests by identity
// with what they assert and whether they run, its functions with their guards and
// error handlers, and marks that tell tools or runners something. Go is read from
// its syntax tree; TypeScript, JavaScript, Python, Java, Kotlin, C#, Rust, Ruby and
// PHP through the tokens of package lex, which takes comments and strings apart from
// code, and tables of what the languages call things (language.go, and packages
// marktable and strength).
//
// Reading never fails and takes time linear in the text: what is broken or not
// understood is not in the model. Nothing here compares versions; package detect
// does.
package syntax
