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

// Retold reports whether a new check of the function has the message of a lost one.
func (how *Rewrite) Retold(was *Function, g *Guard) bool {
	return len(g.Told) >= 2 && slices.ContainsFunc(how.Now.Guards, func(n Guard) bool {
		return g.Tells(&n) && !slices.ContainsFunc(was.Guards, func(o Guard) bool { return o.Key == n.Key })
	})
}

// Tells reports whether another check fails with the words of this one.
func (g *Guard) Tells(other *Guard) bool {
	return len(g.Told) >= 2 && multiset.Containment(g.Told, other.Told) >= 0.8
}

// Renamed reports whether a new check is a lost one with another name for a variable that the
// function renamed: the check is the same otherwise, and so is what the function does with it.
func (how *Rewrite) Renamed(was *Function, g *Guard) bool {
	return slices.ContainsFunc(how.Now.Guards, func(n Guard) bool {
		if len(n.Whole) != len(g.Whole) {
			return false
		}
		lost, gained := multiset.Difference(g.Whole, n.Whole), multiset.Difference(n.Whole, g.Whole)
		if len(lost) == 0 || len(lost) != len(gained) || lost[0] != lost[len(lost)-1] || gained[0] != gained[len(lost)-1] {
			return false
		}
		uses := was.All.Count(lost[0]) - how.Now.All.Count(lost[0])
		return uses > len(lost) && was.All.Count(gained[0]) == 0 && how.Now.All.Count(gained[0]) >= uses
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

// TurnedEmpty reports whether a function returns nothing where it threw, under the same condition
// or unconditionally.
func TurnedEmpty(was, now *Function) bool {
	plain := func(f *Function) (throws, empties int) {
		throws = f.Throws
		for i := range f.Guards {
			if f.Guards[i].Throws {
				throws--
			}
		}
		return throws, f.Empties - len(f.Emptied)
	}
	throws, empties := plain(was)
	throwsNow, emptiesNow := plain(now)
	if throwsNow < throws && emptiesNow > empties {
		return true
	}
	kept := make(map[uint64]int)
	for i := range now.Guards {
		kept[now.Guards[i].Key]++
	}
	fresh := GainedConditions(was.Emptied, now.Emptied)
	for i := range was.Guards {
		g := &was.Guards[i]
		if kept[g.Key]--; kept[g.Key] >= 0 || !g.Throws {
			continue
		}
		if g.Failure || slices.ContainsFunc(fresh,
			func(c Condition) bool { return c.Key == g.Key || multiset.Containment(g.Words, c.Words) >= 0.5 }) {
			return true
		}
	}
	return false
}

// FreshCode reports whether much of some code is new in a function.
func FreshCode(code multiset.Hashes, was *Function) bool {
	return len(code) > 0 && multiset.Containment(code, was.All) < 0.6
}

// SameHandlers reports whether only handlers without effect were removed.
func SameHandlers(was, now *Function) bool {
	return len(now.Handlers) >= len(was.Handlers)-was.Drops()
}

// Drops counts the handlers of a function that ignore their error.
func (f *Function) Drops() int {
	n := 0
	for i := range f.Handlers {
		if f.Handlers[i].Dropped {
			n++
		}
	}
	return n
}

// SharedHandling reports whether each previous handler has the body of a current one: handlers of
// several errors were merged.
func SharedHandling(was, now *Function) bool {
	return !slices.ContainsFunc(was.Handlers, func(h handler) bool { return !SameBody(now, h.Body) })
}

// MostlyRemoved reports whether a function lost tokens and gained next to none.
func MostlyRemoved(was, now *Function) bool {
	return len(multiset.Difference(now.All, was.All)) <= max(1, len(now.All)/12)
}

// MostlySame reports whether most of a function stayed.
func MostlySame(was, now *Function) bool { return multiset.Jaccard(was.All, now.All) >= 0.5 }

// SameBody reports whether a handler of a function has a body.
func SameBody(f *Function, body uint64) bool {
	return slices.ContainsFunc(f.Handlers, func(h handler) bool { return h.Body == body })
}

// DoneElsewhere reports whether a function still does what its lost handlers did.
func DoneElsewhere(was, now *Function) bool {
	for i := range was.Handlers {
		h := &was.Handlers[i]
		if h.Dropped || SameBody(now, h.Body) {
			continue
		}
		done := len(h.Does) > 0 && !h.Rethrows
		for _, w := range h.Does {
			done = done && now.All.Count(w) >= was.All.Count(w)
		}
		told := len(h.Told) > 0 && slices.ContainsFunc(now.Guards,
			func(g Guard) bool { return multiset.Containment(h.Told, g.Told) == 1 })
		if !done && !told {
			return false
		}
	}
	return true
}

// Moved reports whether the code of removed handlers is elsewhere in the function: nearly all of
// their words occur as often as before.
func Moved(was, now *Function) bool {
	lost, moved := multiset.Difference(was.All, now.All), false
	for i := range was.Handlers {
		h := &was.Handlers[i]
		if SameBody(now, h.Body) {
			continue
		}
		if len(h.Does) < 4 || multiset.Containment(h.Does, lost) > 0.25 {
			return false
		}
		moved = true
	}
	return moved
}

// Stayed returns the share of a function that remains, without its lost checks.
func Stayed(was, now *Function) float64 {
	kept := make(map[uint64]int)
	for i := range now.Guards {
		kept[now.Guards[i].Key]++
	}
	rest := was.All
	for i := range was.Guards {
		if g := &was.Guards[i]; kept[g.Key] > 0 {
			kept[g.Key]--
		} else {
			rest = multiset.Difference(rest, g.Whole)
		}
	}
	return multiset.Containment(rest, now.All)
}

// GainedConditions returns the conditions that only now has.
func GainedConditions(was, now []Condition) []Condition {
	return multiset.Excess(now, was, func(c Condition) uint64 { return c.Key })
}

// EachGuard calls a function for each guard of a version.
func EachGuard(m *Model, do func(*Guard)) {
	if m == nil {
		return
	}
	for _, f := range m.Funcs {
		for i := range f.Guards {
			do(&f.Guards[i])
		}
	}
}
