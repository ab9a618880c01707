package detect

import "github.com/perdure/perdure/internal/detect/syntax"

// Line coverage is compared by internal/check/coverage, whose results are part of
// Results. Without a run, only code excluded from coverage can be found: comments and
// attributes listed in the tables of marks.

// keptFromTool reports whether a pattern's marks hide code from a tool: a linter, or the
// coverage count. They weigh more on a line that the baseline had than on a new one.
func keptFromTool(pattern string) bool {
	return pattern == syntax.ComplaintOff || pattern == syntax.CoverageExcluded
}
