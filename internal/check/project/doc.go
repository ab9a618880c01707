// Package project knows what stands in a workspace: which kinds of project,
// with which commands; how the results of a test command can be had in a form
// for programs; and which of the files the result of a loop hangs on.
//
// [Detect] lists the projects, the one nearest to the root first. [Measure]
// takes a command as the user wrote it and adds what makes its test runner
// write results (go test ./... becomes go test -json ./...), and nothing that
// changes what is tested or how it exits. A command where that cannot be done
// without guessing is weak: its exit code is all there is, and why is told.
// [Command.Again] makes a command that runs some tests of it again. Results
// are files or what the command prints; [Command.Clear] removes the files of
// an earlier run, [Command.Collect] finds those of this one.
//
// [Classify] says what a file is, by its path: a test, configuration of CI,
// runner, linter or coverage, a fixture, perdure's own, source, or another. The
// table is paths.yaml.
//
// Formats are named as packages testreport and coverage name them.
package project
