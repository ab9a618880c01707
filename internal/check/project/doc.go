// Package project recognises the projects in a workspace: their kinds, their commands,
// how test results can be obtained from a test command, and which files configure the
// checks.
//
// [Detect] lists the projects, the one nearest to the root first, with their type
// checkers and linters. [Measure] takes a user's command and adds the arguments that make
// its test runner write results (go test ./... becomes go test -json ./...), without
// changing which tests run or how the command exits. If this is not possible without
// guessing, the command is weak: only its exit code is known, and the reason is recorded.
// [Command.Again] returns a command that reruns some of its tests. Results are files or
// output of the command; [Command.Clear] removes the files of an earlier run,
// [Command.Collect] finds those of this one.
//
// [Classify] returns the role of a file by its path: a test, configuration of CI, test
// runner, linter or coverage, a fixture, perdure's own, source, or another. The rules are
// in paths.yaml.
//
// Formats have the names of packages testreport and coverage.
package project
