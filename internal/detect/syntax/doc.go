// Package syntax reads a source file into a small model: its tests with their assertions and skips, its
// functions with their guards and error handlers, and marks that instruct tools or test runners. Go is
// read from its syntax tree; TypeScript, JavaScript, Python, Java, Kotlin, C#, Rust, Ruby and PHP from
// the tokens of package lex.
//
// A language is one file (golang.go, script.go, python.go ...): the tables of its words and marks, and
// the functions of forms.go for what it writes unlike other languages. LanguageOf finds it. The other
// files do not test the name of a language.
//
// A file is read in this order, which is also the order to read the package in:
//
//   - unit.go has the tokens with their brackets and statements, hashes.go their multisets, values.go what
//     is assigned to a name;
//   - declare.go finds declarations, titled.go the tests that are calls with a title;
//   - tests.go decides which declarations are tests; tables.go and loops.go read their rows;
//   - asserts.go finds assertions, strength.go weighs them; hollow.go, dead.go, under.go and caught.go
//     find those that cannot fail, never run, run under a condition, or whose failure is lost;
//   - skips.go, hooks.go and skipwhen.go read whether and when a test is skipped;
//   - functions.go reads functions with guards.go, conditions.go and askers.go for checks, handlers.go and
//     exits.go for errors, and public.go for what others may use;
//   - marks.go finds marks, asked.go code that detects test runs, silence.go the scope of suppressions;
//   - model.go puts the model together; versions.go compares functions of two versions.
//
// Package platform then decides whether the condition of a skipped test depends on the platform. Package
// multiset compares code by its tokens, regardless of their order, and discard finds discarded results of Go.
//
// Reading never fails and takes time linear in the text: code that is broken or not understood is not in
// the model. Package detect compares the models of two versions.
package syntax
