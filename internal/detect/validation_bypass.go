package detect

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// guards compares the guards of a function: conditions under which it fails or returns
// early. A guard that became another one with the same words, here or in code that the
// change added, was rewritten.
func (r *run) guards(p *pair, was, now *syntax.Function) {
	if len(was.Guards) == 0 {
		return
	}
	how := syntax.Rewrite{Removed: syntax.MostlyRemoved(was, now), Similar: multiset.Jaccard(was.All, now.All), Now: now,
		Conditions: make(map[uint64]int)}
	how.Soft, how.Panics = syntax.GainedConditions(was.Soft, now.Soft), p.lang.ErrorValues
	how.HandedOver = len(multiset.Difference(now.Vouchers, was.Vouchers)) > 0 ||
		r.handsOver(p, was, now, func(f *syntax.Function) bool { return len(f.Guards)+f.Throws > 0 })
	for _, c := range now.Conditions {
		how.Conditions[c.Key]++
	}
	for _, c := range was.Conditions {
		how.Conditions[c.Key]--
	}
	count, known := make(map[uint64]int), make(map[uint64]bool)
	for i := range was.Guards {
		known[was.Guards[i].Key] = true
	}
	var gained multiset.Hashes
	for i := range now.Guards {
		g := &now.Guards[i]
		if count[g.Key]++; !known[g.Key] {
			gained = append(gained, g.Words...)
		}
	}
	for _, c := range now.Conditions {
		if how.Conditions[c.Key] > 0 {
			gained = append(gained, c.Words...)
		}
	}
	how.Gained, how.Stayed = multiset.Sum(gained, nil), syntax.Stayed(was, now)
	fewer := len(was.Guards) - len(now.Guards)
	for i := range was.Guards {
		g := &was.Guards[i]
		if g.Of != 0 && !g.Failure && len(now.Calls) > 0 && !now.Calls.Has(g.Of) {
			continue // its subject was removed with the call that returned it
		}
		if count[g.Key]--; count[g.Key] >= 0 {
			continue
		}
		softened := how.Softened(g, fewer > 0)
		if !softened && (r.guardElsewhere(p, was, g, &how) || g.Called && fewer <= 0 && len(g.Words) == 0) {
			continue
		}
		f := p.inOld(g.Line, was.Name, g.S, 0.6, "")
		switch {
		case softened:
			f.Confidence, f.Message = 0.85, was.Name+" no longer fails under a condition"
		case fewer > 0 && how.Removed:
			f.Confidence = 0.9
		case fewer > 0 && how.AsksNothing(was) && multiset.Overlap(g.Words, r.of(p).code) == 0, r.unasked(p, was, g, &how,
			fewer > 0):
			f.Confidence = 0.85
		case fewer > 0 && (how.Similar > 0.7 || how.Stayed >= syntax.MostStays):
			f.Confidence = 0.75
		case fewer <= 0:
			f.Confidence = 0.5
		}
		if g.Failure {
			r.uncheckedCall(f, was, now, g, len(r.of(p).code) > 0)
			continue
		}
		if g.Weak || how.HandedOver && !softened || g.Called && r.calledElsewhere(p, g) || how.Retold(was, g) ||
			f.Confidence >= ActConfidence && (how.Renamed(was, g) || r.movedGuard(p, g)) {
			f.Confidence = min(f.Confidence, 0.7)
		}
		r.add(f, guardRemoved)
	}
}

// movedGuard reports whether the change added a check of the same value that fails with the same
// words, perhaps in another function.
func (r *run) movedGuard(p *pair, g *syntax.Guard) bool {
	if r.compared += len(r.of(p).gained); len(g.Told) < 2 || r.compared > maxCompared {
		return false
	}
	return slices.ContainsFunc(r.of(p).gained, func(n *syntax.Guard) bool {
		return g.Tells(n) && multiset.Overlap(g.Words, n.Words) > 0
	})
}

// calledElsewhere reports whether the change added a call that checks about the same as a
// guard, in a file of the same language.
func (r *run) calledElsewhere(p *pair, g *syntax.Guard) bool {
	had, found := make(map[uint64]bool), false
	for _, o := range r.pairs {
		if o.lang == p.lang {
			syntax.EachGuard(o.old, func(was *syntax.Guard) { had[was.Key] = true })
		}
	}
	for _, o := range r.pairs {
		if o.lang == p.lang {
			syntax.EachGuard(o.new, func(now *syntax.Guard) {
				found = found || now.Called && !had[now.Key] && len(now.Words) > 0 &&
					multiset.Containment(g.Words, now.Words) >= 0.5
			})
		}
	}
	return found
}

// unasked reports whether an otherwise unchanged function no longer checks what a guard
// checked: no related condition or checking call is new, and the subject is still used.
func (r *run) unasked(p *pair, was *syntax.Function, g *syntax.Guard, how *syntax.Rewrite, fewer bool) bool {
	now, about, words := how.Now, multiset.Sum(g.Words, g.Names), g.Words
	if len(words) == 0 {
		words = g.Names
	}
	if len(words) == 0 || g.Lacks || g.Called || how.Stayed < syntax.MostStays || how.AsksAbout(g) {
		return false
	}
	gone, elsewhere := g.Throws && fewer && multiset.Overlap(g.Names, now.All) > 0, r.of(p).code
	if gone { // new code in the function is examined separately
		elsewhere = multiset.Difference(elsewhere, multiset.Difference(now.All, was.All))
	}
	if multiset.Containment(words, elsewhere) > 0.5 {
		return false
	}
	if !gone && multiset.Containment(about, multiset.Difference(was.All, now.All)) < 0.5 ||
		multiset.Overlap(about, now.All) == 0 {
		return false
	}
	if len(syntax.GainedConditions(was.Emptied, now.Emptied)) > 0 {
		return false
	}
	return !how.Asked(was, about)
}

// handsOver reports whether a function newly names an added function, or type, for which
// does returns true, or calls one of its file that fails in more places than before.
func (r *run) handsOver(p *pair, was, now *syntax.Function, does func(*syntax.Function) bool) bool {
	fresh := r.of(p).freshByHash
	for _, h := range slices.Concat(multiset.Difference(now.Calls, was.Calls), multiset.Difference(now.All, was.All)) {
		if slices.ContainsFunc(fresh[h], does) {
			return true
		}
	}
	known := functionsByName(p.before())
	for _, f := range p.after().Funcs {
		if o := known[f.Name]; o != nil && o != was && now.Calls.Has(syntax.Hash(f.Leaf)) && does(f) &&
			f.Throws+len(f.Guards) > o.Throws+len(o.Guards) {
			return true
		}
	}
	// Or an added function with the name of one that was called there, and that calls it in
	// turn.
	for _, h := range now.Calls {
		if slices.ContainsFunc(fresh[h], func(f *syntax.Function) bool { return f.Calls.Has(h) && does(f) }) {
			return true
		}
	}
	return false
}

// guardElsewhere reports whether another guard checks the same, or the subject no longer
// exists.
func (r *run) guardElsewhere(p *pair, was *syntax.Function, g *syntax.Guard, how *syntax.Rewrite) bool {
	if g.Failure { // the call may have been removed with its check
		return !how.Now.Calls.Has(g.Words[0]) && (!g.Inline || !how.Removed || r.of(p).code.Has(g.Words[0]))
	}
	if len(g.Words) > 0 && multiset.Containment(g.Words, how.Gained) >= 0.6 || how.StillAsks(g) {
		return true
	}
	if r.of(p).guards[g.Key] || len(g.Words) > 1 && multiset.Containment(g.Words, r.of(p).code) == 1 {
		return true
	}
	about := g.Words
	if g.Called { // it may have been removed with the function that it calls
		about = multiset.Difference(about, was.Calls)
	}
	if r.namesRemoved(p, about) {
		return true
	}
	used := how.Stayed >= syntax.MostStays && multiset.Overlap(g.Names, how.Now.All) > 0
	return len(g.Words) > 0 && multiset.Containment(g.Words, how.Now.All) < 0.3 && !how.Removed && !used
}

// uncheckedCall reports an error of a call that is no longer checked. An error that is
// returned, stored or checked in another way does not count; a call removed with its
// check was a step, and only warns if other code was added.
func (r *run) uncheckedCall(f Finding, was, now *syntax.Function, g *syntax.Guard, came bool) {
	call := g.Words[0]
	if now.Ignored.Count(call) > was.Ignored.Count(call) {
		f.Confidence, f.Message = 0.85, "error is no longer passed on"
		r.add(f, syntax.ErrorSwallowed)
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
	f.Message = "error check removed from " + was.Name
	r.add(f, handlerRemoved)
}

// forged reports equality that always returns true.
func (r *run) forged(p *pair, was, now *syntax.Function) {
	if now.AlwaysTrue && (was == nil || !was.AlwaysTrue) {
		r.add(p.inNew(now.Line, now.Name, now.Name, 0.95, ""), equalityForged)
	}
}

// special reports functions that gained special cases.
func (r *run) special(p *pair, was, now *syntax.Function) {
	if now.Fixed-was.Fixed >= 2 {
		r.add(p.inNew(now.Line, now.Name, now.Name, 0.6,
			fmt.Sprintf("%d special cases return fixed results", now.Fixed-was.Fixed)), specialCases)
	}
}

// exitsWell reports a program that now exits with success where its exit code was a
// failure.
func (r *run) exitsWell(p *pair) {
	if p.old == nil || p.new == nil {
		return
	}
	was, now := p.old.Exits, p.new.Exits
	if now.Telling >= was.Telling || now.Well <= was.Well && !syntax.CodeIgnored(p.old, p.new) {
		return
	}
	if now.S == "" {
		now.Line, now.S = 1, p.new.Path
	}
	r.add(p.inNew(now.Line, p.new.Path, now.S, 0.9, "exit code changed from failure to success"), syntax.ExitTrick)
}
