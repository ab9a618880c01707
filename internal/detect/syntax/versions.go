package syntax

import (
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

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

// FreshCode reports whether most of some code is new in a function.
func FreshCode(code multiset.Hashes, was *Function) bool {
	return len(code) > 0 && multiset.Containment(code, was.All) < 0.5
}

// SameHandlers reports whether only handlers without effect were removed.
func SameHandlers(was, now *Function) bool {
	kept := 0
	for i := range was.Handlers {
		if !was.Handlers[i].Dropped {
			kept++
		}
	}
	return len(now.Handlers) >= kept
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
