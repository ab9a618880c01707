// Package metric measures a workspace apart from its tests: line coverage, type errors,
// linter findings, files and lines, and numbers of the user's own commands.
//
// [config.Measures] selects the metrics. A [Plan] records how they are measured in one
// workspace and what they are compared with; a [Meter] measures. A metric that cannot be
// measured is absent with a reason, never 0.
package metric
