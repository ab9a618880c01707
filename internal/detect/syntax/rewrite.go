package syntax

import (
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Rewrite is the difference between two versions of a function.
type Rewrite struct {
	Removed bool // it lost tokens and gained next to none
	Similar float64
	Now     *Function
	// Conditions are the numbers of conditions gained, by key.
	Conditions map[uint64]int
	// Soft are the new conditions under which it does not fail.
	Soft   []Condition
	Panics bool // it throws by panic, which returned errors may replace
	// Gained are the words of new guards and conditions.
	Gained multiset.Hashes
	// Stayed is the share of the function, without the lost checks, that remains.
	Stayed float64

	// HandedOver is set when it calls a new function that checks something.
	HandedOver bool
}

// Softened reports whether a function continues, returns a value or only logs where a check failed
// before. If it has fewer checks now, the condition may be worded differently.
func (how *Rewrite) Softened(g *Guard, fewer bool) bool {
	return !g.Weak && !g.Failure && len(g.Words) > 0 && slices.ContainsFunc(how.Soft, func(c Condition) bool {
		return g.Throws && !how.Panics &&
			(c.Key == g.Key || fewer && multiset.Containment(g.Words, c.Words) >= 0.6 &&
				multiset.Containment(c.Words, g.Words) >= 0.5)
	})
}

// StillAsks reports whether the function leaves under the condition of a guard with an error value
// or the result of another function.
func (how *Rewrite) StillAsks(g *Guard) bool {
	return slices.ContainsFunc(how.Now.Conditions, func(c Condition) bool {
		return c.Key == g.Key && how.Conditions[c.Key] >= 0
	})
}

// AsksNothing reports whether a function that stayed mostly the same has no new calls or conditions
// that could replace a guard.
func (how *Rewrite) AsksNothing(was *Function) bool {
	if len(multiset.Difference(how.Now.Calls, was.Calls)) > 0 || len(GainedConditions(was.Emptied, how.Now.Emptied)) > 0 ||
		how.Similar < 0.4 {
		return false
	}
	for _, n := range how.Conditions {
		if n > 0 {
			return false
		}
	}
	return true
}

// Asked reports whether a call that may check something is new in the lines about a checked value.
func (how *Rewrite) Asked(was *Function, about multiset.Hashes) bool {
	for _, call := range how.Now.Askers {
		for _, w := range about {
			if h := CallWord(call, w); how.Now.Given.Has(h) && !was.Given.Has(h) {
				return true
			}
		}
	}
	return false
}

// Retold reports whether a new check has the message of a lost one and asks for as much.
func (how *Rewrite) Retold(was *Function, g *Guard) bool {
	if len(g.Told) < 2 {
		return false
	}
	return slices.ContainsFunc(how.Now.Guards, func(n Guard) bool {
		fresh := !slices.ContainsFunc(was.Guards, func(o Guard) bool { return o.Key == n.Key })
		return fresh && multiset.Containment(g.Told, n.Told) >= 0.8 && len(n.Limits) >= len(g.Limits) &&
			!(g.Asks.Bounds() && n.Asks.Presence())
	})
}

// AsksAbout reports whether new checks and conditions test the same values as a lost check, not
// only parts of the same object.
func (how *Rewrite) AsksAbout(g *Guard) bool {
	return multiset.Overlap(askedNames(g.Names, g.Words), how.Gained) > 0
}

// askedNames returns the names of the tested values, or else all words.
func askedNames(names, words multiset.Hashes) multiset.Hashes {
	if len(names) > 0 {
		return names
	}
	return words
}

// MostStays is the share of a function that stays if it is mostly the same.
const MostStays = 0.7
