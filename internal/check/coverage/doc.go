// Package coverage reads which lines the tests covered, and finds the lines of a baseline
// that lost their coverage.
//
// Percentages cannot be compared: deleting untested code raises one, adding code lowers
// it. [Lost] therefore checks for every line that the baseline's tests covered whether it
// still exists ([FollowLines] finds it, also when it was moved or indented differently),
// and if so, whether it is still covered. Lines without a letter or digit (closing
// braces, blank lines) do not count.
//
// Four formats are read: Go's coverprofile, LCOV, Cobertura and Clover XML. Input is streamed;
// a [Profile] stores two sets of line numbers for each file, 16 bytes for 64 adjacent
// lines. Limits are set in [Config]; exceeding one is a [LimitError].
package coverage
