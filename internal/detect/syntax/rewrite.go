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
	// Parts are the alternatives of the current checks; PartWords are the values tested by new
	// alternatives and conditions.
	Parts     map[uint64]bool
	PartWords multiset.Hashes
	// GainedNames are the names of values tested by new checks and conditions.
	GainedNames multiset.Hashes
	// HandedOver is set when it calls a new function that checks something.
	HandedOver bool
}

// Softened reports whether a function continues, returns a value or only logs where a check failed
// before. If it has fewer checks now, the condition may be worded differently.
func (how *Rewrite) Softened(g *Guard, fewer bool) bool {
	return !g.Weak && !g.Failure && len(g.Words) > 0 && slices.ContainsFunc(how.Soft, func(c Condition) bool {
		return (c.Off || g.Throws && !how.Panics) &&
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

// Weaker reports whether a check was replaced by one without an alternative, or with a far limit. A
// check that was split is not weaker.
func Weaker(was, now *Function, lost int, how *Rewrite) bool {
	g := &was.Guards[lost]
	if g.Failure || g.Weak || how.HandedOver || how.Stayed < MostStays {
		return false
	}
	known := make(map[uint64]bool)
	for i := range was.Guards {
		known[was.Guards[i].Key] = true
	}
	var others multiset.Hashes
	for _, c := range now.Conditions {
		if how.Conditions[c.Key] > 0 {
			others = multiset.Sum(others, c.Words)
		}
	}
	presences := []uint32{Hash("nil"), Hash("null"), Hash("None"), Hash("undefined")}
	for i := range now.Guards {
		n := &now.Guards[i]
		if known[n.Key] || n.Failure || n.Weak || len(n.Cond) == 0 {
			continue
		}
		if n.Wider(g) && multiset.Jaccard(n.Cond, g.Cond) == 1 {
			return true
		}
		dropped := multiset.Difference(g.Cond, n.Cond)
		other := func(h uint32) bool { return !n.Cond.Has(h) && !slices.Contains(presences, h) }
		if n.Ors < g.Ors && len(n.Limits) <= len(g.Limits) && len(multiset.Difference(n.Cond, g.Cond)) == 0 &&
			len(dropped) > 1 &&
			slices.ContainsFunc(dropped, other) && multiset.Overlap(dropped, multiset.Difference(others, n.Words)) == 0 {
			return true
		}
	}
	return false
}

// Alternatives notes under what the function fails now, and which of that is new.
func (how *Rewrite) Alternatives(was *Function) {
	known, guards := make(map[uint64]bool), make(map[uint64]bool)
	for i := range was.Guards {
		for _, part := range was.Guards[i].Parts {
			known[part.Key] = true
		}
	}
	how.Parts = make(map[uint64]bool)
	for i := range how.Now.Guards {
		g := &how.Now.Guards[i]
		guards[g.Key] = true
		if fresh := !slices.ContainsFunc(was.Guards, func(o Guard) bool { return o.Key == g.Key }); fresh {
			how.GainedNames = append(how.GainedNames, askedNames(g.Names, g.Words)...)
		}
		for _, part := range g.Parts {
			how.Parts[part.Key] = true
			if !known[part.Key] {
				how.PartWords = append(how.PartWords, part.Words...)
			}
		}
	}
	for _, c := range how.Now.Conditions {
		if how.Conditions[c.Key] > 0 && !guards[c.Key] {
			how.PartWords = append(append(how.PartWords, c.Words...), c.Names...)
			how.GainedNames = append(how.GainedNames, askedNames(c.Names, c.Words)...)
		}
	}
	how.PartWords, how.GainedNames = multiset.Sum(how.PartWords, nil), multiset.Sum(how.GainedNames, nil)
}

// OnlyPresence reports whether new checks of a value only test that it exists.
func (how *Rewrite) OnlyPresence(was *Function, about multiset.Hashes) bool {
	known, asked := make(map[uint64]bool), false
	for i := range was.Guards {
		known[was.Guards[i].Key] = true
	}
	for i := range how.Now.Guards {
		n := &how.Now.Guards[i]
		if known[n.Key] || multiset.Overlap(n.Words, about)+multiset.Overlap(n.Names, about) == 0 {
			continue
		}
		if !n.Asks.Presence() {
			return false
		}
		asked = true
	}
	for _, c := range how.Now.Conditions {
		if how.Conditions[c.Key] > 0 && multiset.Overlap(c.Words, about) > 0 && !c.Asks.Presence() {
			return false
		}
	}
	return asked
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
func (how *Rewrite) AsksAbout(g *Guard, about multiset.Hashes) bool {
	return multiset.Overlap(about, how.GainedNames) > 0 || multiset.Overlap(askedNames(g.Names, g.Words), how.Gained) > 0
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

// Formless reports whether a new check has the message of a format check, but not the check.
func (how *Rewrite) Formless(was *Function, g *Guard) bool {
	return slices.ContainsFunc(how.Now.Guards, func(n Guard) bool {
		fresh := !slices.ContainsFunc(was.Guards, func(o Guard) bool { return o.Key == n.Key })
		return fresh && !n.Formed && multiset.Containment(g.Told, n.Told) >= 0.8 && multiset.Overlap(g.Names, n.Names)+
			multiset.Overlap(g.Words, n.Words) > 0 && (n.Partly || n.Asks.Presence())
	})
}
