package detect

import "github.com/perdure/perdure/internal/detect/syntax"

// Coverage by lines is compared by internal/check/coverage, whose results come as
// Results. What can be told without a run is that code was taken out of the count:
// comments and attributes that exclude it, found by the tables of marks.

// markTypes are patterns whose marks say that something is kept from a tool: the
// complaint of a checker, the count of coverage. They weigh more on a line that
// the baseline had than on a new one.
func keptFromTool(pattern string) bool {
	return pattern == syntax.ComplaintOff || pattern == syntax.CoverageExcluded
}
