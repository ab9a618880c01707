// Package detect finds signs that a change weakens what keeps a program correct: tests
// deleted or skipped, assertions weakened, validation and error handling removed, tool
// warnings suppressed, features stubbed. It compares two versions of the changed files
// and returns findings; it knows nothing of loops, stores, processes or the file system.
//
// Run reads the changed files and builds a small model of each version (package syntax).
// When all models exist, it matches tests and functions that moved or were renamed
// (match.go), and the detectors compare the models: one file for each type of finding.
// Catalog lists all patterns with their tier and severity.
//
// The folder: gitdiff yields the changed files of a git repository, syntax parses source
// code into models, checkconfig compares the configuration of checks, rules reads the
// settings file of a project, and planted holds the test corpus. Package
// internal/loop/regression describes how a finding becomes a regression of a loop.
package detect
