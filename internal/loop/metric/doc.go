// Package metric measures a workspace besides its tests: coverage by line, type
// errors, what linters say, files and lines, and numbers of the user's own
// commands.
//
// [config.Measures] says what is measured, a [Plan] how that is done in one workspace,
// and what later measures are compared with; a [Meter] does it. What cannot be
// measured is absent with a reason, never 0.
package metric
