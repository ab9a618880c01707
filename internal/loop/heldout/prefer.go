package heldout

import (
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/config"
)

// Prefers reports whether an iteration is a better candidate than another, which may be nil: first those
// that pass the held-out check, then those whose gap is within the limit, then as [state.Prefers]. results
// are those of the held-out check by iteration; nil without one.
func Prefers(c *config.Config, results map[int]*Result, o, than *state.Outcome) bool {
	if than != nil && results != nil {
		a, b := rank(c, results[o.Iteration]), rank(c, results[than.Iteration])
		if a != b {
			return a > b
		}
	}
	return state.Prefers(c, o, than)
}

func rank(c *config.Config, r *Result) int {
	switch {
	case r == nil || r.Over(c.HeldOutGap):
		return 0
	case r.State != Passed:
		return 1
	}
	return 2
}
