package detect

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/detect/bag"
	"github.com/perdure/perdure/internal/detect/source"
)

// rewritten says how a function changed.
type rewritten struct {
	removed bool // it lost tokens and gained next to none
	similar float64
	now     *source.Function
	// conditions are how many it has more of each than before.
	conditions map[uint64]int
	// soft are the conditions under which it does not fail, and did not stand before.
	soft   []source.Condition
	panics bool // what throws is Go's, which errors take the place of
	// gained are the words of guards and conditions that are new.
	gained bag.Bag
	// stayed is how much of what is besides the lost checks is still there.
	stayed float64
	// handedOver is set when it calls a function that is new and checks something.
	handedOver bool
}

// guards compares the checks of a function: those that leave it when something is
// wrong. A check that became another one with the same words, here or in what the
// change added, was rewritten.
func (r *run) guards(p *pair, was, now *source.Function) {
	if len(was.Guards) == 0 {
		return
	}
	how := rewritten{removed: mostlyRemoved(was, now), similar: bag.Similar(was.All, now.All), now: now, conditions: make(map[uint64]int)}
	how.soft, how.panics = gainedConditions(was.Soft, now.Soft), p.lang.Name == "go"
	how.handedOver = len(bag.Without(now.Vouchers, was.Vouchers)) > 0 || r.handsOver(p, was, now, func(f *source.Function) bool { return len(f.Guards) > 0 })
	for _, c := range now.Conditions {
		how.conditions[c.Key]++
	}
	for _, c := range was.Conditions {
		how.conditions[c.Key]--
	}
	count := make(map[uint64]int)
	for i := range now.Guards {
		count[now.Guards[i].Key]++
	}
	var gained bag.Bag
	known := make(map[uint64]int)
	for i := range was.Guards {
		known[was.Guards[i].Key]++
	}
	for i := range now.Guards {
		if g := &now.Guards[i]; known[g.Key] == 0 {
			gained = append(gained, g.Words...)
		}
	}
	for _, c := range now.Conditions {
		if how.conditions[c.Key] > 0 {
			gained = append(gained, c.Words...)
		}
	}
	gained = bag.Join(gained, nil)
	how.gained, how.stayed = gained, stayed(was, now)
	fewer := len(was.Guards) - len(now.Guards)
	for i := range was.Guards {
		g := &was.Guards[i]
		if g.Of != 0 && !g.Failure && len(now.Calls) > 0 && !now.Calls.Has(g.Of) {
			continue // what it asked about went with the call that gave it
		}
		if count[g.Key]--; count[g.Key] >= 0 {
			continue
		}
		if weaker(was, now, i, &how) {
			r.add(Finding{File: p.old.Path, Line: g.Line, Gone: true, Subject: was.Name, Evidence: g.S, Confidence: 0.85, Message: "a check lets far more through than it did"}, guardRemoved)
			continue
		}
		softened := how.softened(g, fewer > 0)
		if !softened && (r.guardElsewhere(p, g, gained, &how) || g.Called && fewer <= 0 && len(g.Words) == 0) {
			continue
		}
		f := Finding{File: p.old.Path, Line: g.Line, Gone: true, Subject: was.Name, Evidence: g.S, Confidence: 0.6}
		switch {
		case softened:
			f.Confidence, f.Message = 0.85, fmt.Sprintf("%s does not fail any more under a condition under which it did", was.Name)
		case fewer > 0 && how.removed:
			f.Confidence = 0.9
		case fewer > 0 && how.asksNothing(was) && bag.Shared(g.Words, r.of(p).code) == 0, r.unasked(p, was, g, &how):
			f.Confidence = 0.85
		case fewer > 0 && (how.similar > 0.7 || how.stayed >= mostStays):
			f.Confidence = 0.75
		case fewer <= 0:
			f.Confidence = 0.5
		}
		if g.Failure {
			r.uncheckedCall(f, was, now, g, len(r.of(p).code) > 0)
			continue
		}
		if g.Weak || how.handedOver && !softened || g.Called && r.calledElsewhere(p, g) {
			f.Confidence = min(f.Confidence, 0.7)
		}
		r.add(f, guardRemoved)
	}
}

// calledElsewhere tells whether a call that checks about the same as a guard came
// anywhere in the change, in a file of the same language.
func (r *run) calledElsewhere(p *pair, g *source.Guard) bool {
	had, found := make(map[uint64]bool), false
	for _, o := range r.pairs {
		if o.lang != p.lang {
			continue
		}
		eachGuard(o.old, func(was *source.Guard) { had[was.Key] = true })
	}
	for _, o := range r.pairs {
		if o.lang == p.lang {
			eachGuard(o.new, func(now *source.Guard) {
				found = found || now.Called && !had[now.Key] && len(now.Words) > 0 && bag.Inside(g.Words, now.Words) >= 0.5
			})
		}
	}
	return found
}

// eachGuard goes through the guards of a version.
func eachGuard(m *source.Model, do func(*source.Guard)) {
	if m == nil {
		return
	}
	for _, f := range m.Funcs {
		for i := range f.Guards {
			do(&f.Guards[i])
		}
	}
}

// asksNothing tells whether a function that stayed mostly the same neither calls
// anything that it did not, nor leaves under any new condition: nothing in it can check
// what a guard did.
func (how *rewritten) asksNothing(was *source.Function) bool {
	if len(bag.Without(how.now.Calls, was.Calls)) > 0 || len(gainedConditions(was.Emptied, how.now.Emptied)) > 0 || how.similar < 0.4 {
		return false
	}
	for _, n := range how.conditions {
		if n > 0 {
			return false
		}
	}
	return true
}

// unasked tells whether nothing in a function, which is there as it was otherwise,
// asks what a guard asked: neither a condition nor a call that may check is new and has
// to do with it, and what it asked about is still used.
func (r *run) unasked(p *pair, was *source.Function, g *source.Guard, how *rewritten) bool {
	now, about, words := how.now, bag.Join(g.Words, g.Names), g.Words
	if len(words) == 0 {
		words = g.Names
	}
	if len(words) == 0 || g.Lacks || g.Called || how.stayed < mostStays || bag.Shared(words, how.gained) > 0 || bag.Inside(words, r.of(p).code) > 0.5 {
		return false
	}
	if bag.Inside(about, bag.Without(was.All, now.All)) < 0.5 || bag.Shared(about, now.All) == 0 {
		return false
	}
	if len(gainedConditions(was.Emptied, now.Emptied)) > 0 {
		return false
	}
	for _, call := range now.Askers {
		for _, w := range about {
			if h := source.Beside(call, w); now.Given.Has(h) && !was.Given.Has(h) {
				return false
			}
		}
	}
	return true
}

// mostStays is how much of a function stays that is about the same.
const mostStays = 0.7

// weaker tells whether another check stands in the place of one of a function, which
// is the same but for an alternative that is gone, or for a limit far away. What was
// split in two is none.
func weaker(was, now *source.Function, lost int, how *rewritten) bool {
	g := &was.Guards[lost]
	if g.Failure || g.Weak || how.handedOver || how.stayed < mostStays {
		return false
	}
	known := make(map[uint64]bool)
	for i := range was.Guards {
		known[was.Guards[i].Key] = true
	}
	var others bag.Bag
	for _, c := range now.Conditions {
		if how.conditions[c.Key] > 0 {
			others = bag.Join(others, c.Words)
		}
	}
	presences := []uint32{source.Hash("nil"), source.Hash("null"), source.Hash("None"), source.Hash("undefined")}
	for i := range now.Guards {
		n := &now.Guards[i]
		if known[n.Key] || n.Failure || n.Weak {
			continue
		}
		if n.Wider(g) && bag.Similar(n.Cond, g.Cond) == 1 {
			return true
		}
		dropped := bag.Without(g.Cond, n.Cond)
		other := func(h uint32) bool { return !n.Cond.Has(h) && !slices.Contains(presences, h) }
		if n.Ors < g.Ors && len(n.Limits) <= len(g.Limits) && len(bag.Without(n.Cond, g.Cond)) == 0 && len(dropped) > 1 && slices.ContainsFunc(dropped, other) && bag.Shared(dropped, bag.Without(others, n.Words)) == 0 {
			return true
		}
	}
	return false
}

// stayed is how much of a function is still there, without its checks that are gone.
func stayed(was, now *source.Function) float64 {
	kept := make(map[uint64]int)
	for i := range now.Guards {
		kept[now.Guards[i].Key]++
	}
	rest := was.All
	for i := range was.Guards {
		if g := &was.Guards[i]; kept[g.Key] > 0 {
			kept[g.Key]--
		} else {
			rest = bag.Without(rest, g.Whole)
		}
	}
	return bag.Inside(rest, now.All)
}

// gainedConditions are those of now that was does not have.
func gainedConditions(was, now []source.Condition) []source.Condition {
	return beyond(now, was, func(c source.Condition) uint64 { return c.Key })
}

// softened tells whether a function does not fail where one of its checks did: it
// goes on, gives a value, or only tells of it. The condition may be written in another
// way when the function has fewer checks now.
func (how *rewritten) softened(g *source.Guard, fewer bool) bool {
	return !g.Weak && !g.Failure && len(g.Words) > 0 && slices.ContainsFunc(how.soft, func(c source.Condition) bool {
		return (c.Off || g.Throws && !how.panics) && (c.Key == g.Key || fewer && bag.Inside(g.Words, c.Words) >= 0.6 && bag.Inside(c.Words, g.Words) >= 0.5)
	})
}

// handsOver tells whether a function calls one that is new, which it did not call,
// and which does something.
func (r *run) handsOver(p *pair, was, now *source.Function, does func(*source.Function) bool) bool {
	fresh := r.of(p).freshByHash
	for _, h := range bag.Without(now.Calls, was.Calls) {
		if slices.ContainsFunc(fresh[h], does) {
			return true
		}
	}
	// Or one that has the name of what was called there, and calls that in its turn.
	for _, h := range now.Calls {
		if slices.ContainsFunc(fresh[h], func(f *source.Function) bool { return f.Calls.Has(h) && does(f) }) {
			return true
		}
	}
	return false
}

// guardElsewhere tells whether what a guard checked is checked by another one, or
// is not there any more.
func (r *run) guardElsewhere(p *pair, g *source.Guard, gained bag.Bag, how *rewritten) bool {
	if g.Failure { // the call may have gone with its check
		return !how.now.Calls.Has(g.Words[0]) && (!g.Inline || !how.removed || r.of(p).code.Has(g.Words[0]))
	}
	if len(g.Words) > 0 && bag.Inside(g.Words, gained) >= 0.6 || how.stillAsks(g) {
		return true
	}
	if r.of(p).guards[g.Key] || len(g.Words) > 1 && bag.Inside(g.Words, r.of(p).code) == 1 {
		return true
	}
	if r.namesRemoved(p, g.Words) {
		return true
	}
	used := how.stayed >= mostStays && bag.Shared(g.Names, how.now.All) > 0
	return len(g.Words) > 0 && bag.Inside(g.Words, how.now.All) < 0.3 && !how.removed && !used
}

// stillAsks tells whether the function leaves under the condition of a guard in
// another way: with a value that tells of it, or what another function returns.
func (how *rewritten) stillAsks(g *source.Guard) bool {
	return slices.ContainsFunc(how.now.Conditions, func(c source.Condition) bool {
		return c.Key == g.Key && how.conditions[c.Key] >= 0
	})
}

// uncheckedCall tells of the error of a call that is not looked at any more. A call
// whose error is returned, kept or asked for in another way is none; one that went
// with its check was a step, and that is a warning when other code came.
func (r *run) uncheckedCall(f Finding, was, now *source.Function, g *source.Guard, came bool) {
	call := g.Words[0]
	if now.Ignored.Count(call) > was.Ignored.Count(call) {
		f.Confidence, f.Message = 0.85, "an error that was passed on is not any more"
		r.add(f, source.ErrorSwallowed)
		return
	}
	dropped := now.Dropped.Count(call) > was.Dropped.Count(call)
	switch {
	case dropped && f.Confidence >= 0.75:
		f.Confidence = 0.9
	case dropped:
	case now.Calls.Count(call) >= was.Calls.Count(call):
		return
	case came:
		f.Confidence = min(f.Confidence, 0.7)
	}
	f.Message = fmt.Sprintf("a check of an error was removed from %s", was.Name)
	r.add(f, handlerRemoved)
}

// forged tells of equality that is always true, and of checks that say yes to all.
func (r *run) forged(p *pair, was, now *source.Function) {
	if now.AlwaysTrue && (was == nil || !was.AlwaysTrue) {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.95}, equalityForged)
	}
	if was != nil && now.Agrees && !was.Agrees && was.Tokens > now.Tokens && !now.Test {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.85, Message: "a check says yes to all now"}, guardRemoved)
	}
}

// special tells of functions that gained special cases.
func (r *run) special(p *pair, was, now *source.Function) {
	if now.Fixed-was.Fixed >= 2 {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.6, Message: fmt.Sprintf("%d special cases return fixed results", now.Fixed-was.Fixed)}, specialCases)
	}
}
