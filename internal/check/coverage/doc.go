// Package coverage reads which lines the tests covered, and tells which lines
// of a baseline lost their coverage.
//
// Percentages do not compare: deleting untested code raises one, adding code
// lowers it. [Lost] therefore asks of every line that the baseline's tests
// covered whether it is still there ([FollowLines] finds it, also when it was
// moved or indented differently), and if so, whether it is still covered. Lines
// without a letter or digit (closing braces, blanks) are not asked for.
//
// Three formats are read: Go's coverprofile, LCOV, and Cobertura's XML. They
// stream; a [Profile] keeps two sets of line numbers for each file, 16 bytes for
// 64 lines that stand together. Limits are those of [Config]; passing one is a
// [LimitError].
package coverage
