// Package checkconfig compares two versions of the files that configure checks (workflows,
// settings of linters, test runners and coverage) by their meaning.
//
//  1. read.go and its neighbours read a file, whatever its format, into settings: a path of
//     keys, a value and a line.
//  2. command.go splits the commands among them into checks: a program, its arguments as
//     settings, and the conditions under which it runs.
//  3. keys.go says for each key what makes a value weaker; settings.go compares by it.
//  4. checks.go finds the checks that were removed, restricted, or that no longer fail.
//
// What got weaker blocks. What cannot be decided (an unknown key, code that is not only
// settings), and a rule, a file or an exception of a linter, is unclear. Everything else is
// harmless.
package checkconfig
