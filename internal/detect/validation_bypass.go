package detect

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// guards compares the checks of a function: those that leave it when something is
// wrong. A check that became another one with the same words, here or in what the
// change added, was rewritten.
func (r *run) guards(p *pair, was, now *syntax.Function) {
	r.refusals(p, was, now)
	if len(was.Guards) == 0 {
		return
	}
	how := syntax.Rewrite{Removed: syntax.MostlyRemoved(was, now), Similar: multiset.Jaccard(was.All, now.All), Now: now,
		Conditions: make(map[uint64]int)}
	how.Soft, how.Panics = syntax.GainedConditions(was.Soft, now.Soft), p.lang.Name == "go"
	how.HandedOver = len(multiset.Difference(now.Vouchers, was.Vouchers)) > 0 ||
		r.handsOver(p, was, now, func(f *syntax.Function) bool { return len(f.Guards)+f.Throws > 0 })
	for _, c := range now.Conditions {
		how.Conditions[c.Key]++
	}
	for _, c := range was.Conditions {
		how.Conditions[c.Key]--
	}
	count := make(map[uint64]int)
	for i := range now.Guards {
		count[now.Guards[i].Key]++
	}
	var gained multiset.Hashes
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
		if how.Conditions[c.Key] > 0 {
			gained = append(gained, c.Words...)
		}
	}
	gained = multiset.Sum(gained, nil)
	how.Gained, how.Stayed = gained, syntax.Stayed(was, now)
	how.Alternatives(was)
	fewer := len(was.Guards) - len(now.Guards)
	for i := range was.Guards {
		g := &was.Guards[i]
		if g.Of != 0 && !g.Failure && len(now.Calls) > 0 && !now.Calls.Has(g.Of) {
			continue // what it asked about went with the call that gave it
		}
		if count[g.Key]--; count[g.Key] >= 0 {
			continue
		}
		if syntax.Weaker(was, now, i, &how) || r.weakened(p, was, i, &how) {
			r.add(Finding{File: p.old.Path, Line: g.Line, Gone: true, Subject: was.Name, Evidence: g.S, Confidence: 0.85,
				Message: "a check lets far more through than it did"}, guardRemoved)
			continue
		}
		softened := how.Softened(g, fewer > 0)
		if !softened && (r.guardElsewhere(p, was, g, &how) || g.Called && fewer <= 0 && len(g.Words) == 0) {
			continue
		}
		f := Finding{File: p.old.Path, Line: g.Line, Gone: true, Subject: was.Name, Evidence: g.S, Confidence: 0.6}
		switch {
		case softened:
			f.Confidence, f.Message = 0.85, fmt.Sprintf("%s does not fail any more under a condition under which it did",
				was.Name)
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
			if r.unvouched(p, g, &how) {
				f.Confidence, f.Message = 0.85, was.Name+" does not ask any more what it asked of a check"
				r.add(f, guardRemoved)
				continue
			}
			r.uncheckedCall(f, was, now, g, len(r.of(p).code) > 0)
			continue
		}
		if g.Weak || how.HandedOver && !softened || g.Called && r.calledElsewhere(p, g) || how.Retold(was, g) {
			f.Confidence = min(f.Confidence, 0.7)
		}
		r.add(f, guardRemoved)
	}
}

// calledElsewhere tells whether a call that checks about the same as a guard came
// anywhere in the change, in a file of the same language.
func (r *run) calledElsewhere(p *pair, g *syntax.Guard) bool {
	had, found := make(map[uint64]bool), false
	for _, o := range r.pairs {
		if o.lang != p.lang {
			continue
		}
		syntax.EachGuard(o.old, func(was *syntax.Guard) { had[was.Key] = true })
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

// unasked tells whether nothing in a function, which is there as it was otherwise,
// asks what a guard asked: neither a condition nor a call that may check is new and has
// to do with it, and what it asked about is still used.
func (r *run) unasked(p *pair, was *syntax.Function, g *syntax.Guard, how *syntax.Rewrite, fewer bool) bool {
	now, about, words := how.Now, multiset.Sum(g.Words, g.Names), g.Words
	if len(words) == 0 {
		words = g.Names
	}
	if len(words) == 0 || g.Lacks || g.Called || how.Stayed < syntax.MostStays || how.AsksAbout(g, about) {
		return false
	}
	gone, elsewhere := g.Throws && fewer && multiset.Overlap(g.Names, now.All) > 0, r.of(p).code
	if gone { // what stands in the function now is looked at by itself
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

// handsOver tells whether a function names one that is new, or a type that is, which it
// did not name, and which does something.
func (r *run) handsOver(p *pair, was, now *syntax.Function, does func(*syntax.Function) bool) bool {
	fresh := r.of(p).freshByHash
	for _, h := range slices.Concat(multiset.Difference(now.Calls, was.Calls), multiset.Difference(now.All, was.All)) {
		if slices.ContainsFunc(fresh[h], does) {
			return true
		}
	}
	// Or one that has the name of what was called there, and calls that in its turn.
	for _, h := range now.Calls {
		if slices.ContainsFunc(fresh[h], func(f *syntax.Function) bool { return f.Calls.Has(h) && does(f) }) {
			return true
		}
	}
	return false
}

// guardElsewhere tells whether what a guard checked is checked by another one, or
// is not there any more.
func (r *run) guardElsewhere(p *pair, was *syntax.Function, g *syntax.Guard, how *syntax.Rewrite) bool {
	if g.Failure { // the call may have gone with its check
		if r.unvouched(p, g, how) {
			return false
		}
		return !how.Now.Calls.Has(g.Words[0]) && (!g.Inline || !how.Removed || r.of(p).code.Has(g.Words[0]))
	}
	if len(g.Words) > 0 && multiset.Containment(g.Words, how.Gained) >= 0.6 || how.StillAsks(g) {
		return true
	}
	if r.of(p).guards[g.Key] || len(g.Words) > 1 && multiset.Containment(g.Words, r.of(p).code) == 1 {
		return true
	}
	about := g.Words
	if g.Called { // it may have gone with the function that it calls
		about = multiset.Difference(about, was.Calls)
	}
	if r.namesRemoved(p, about) {
		return true
	}
	used := how.Stayed >= syntax.MostStays && multiset.Overlap(g.Names, how.Now.All) > 0
	return len(g.Words) > 0 && multiset.Containment(g.Words, how.Now.All) < 0.3 && !how.Removed && !used
}

// uncheckedCall tells of the error of a call that is not looked at any more. A call
// whose error is returned, kept or asked for in another way is none; one that went
// with its check was a step, and that is a warning when other code came.
func (r *run) uncheckedCall(f Finding, was, now *syntax.Function, g *syntax.Guard, came bool) {
	call := g.Words[0]
	if now.Ignored.Count(call) > was.Ignored.Count(call) {
		f.Confidence, f.Message = 0.85, "an error that was passed on is not any more"
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
	f.Message = fmt.Sprintf("a check of an error was removed from %s", was.Name)
	r.add(f, handlerRemoved)
}

// forged tells of equality that is always true, and of checks that say yes to all.
func (r *run) forged(p *pair, was, now *syntax.Function) {
	if now.AlwaysTrue && (was == nil || !was.AlwaysTrue) {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.95},
			equalityForged)
	}
	if was != nil && now.Agrees && !was.Agrees && was.Tokens > now.Tokens && !now.Test {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.85,
			Message: "a check says yes to all now"}, guardRemoved)
	}
}

// special tells of functions that gained special cases.
func (r *run) special(p *pair, was, now *syntax.Function) {
	if now.Fixed-was.Fixed >= 2 {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.6,
			Message: fmt.Sprintf("%d special cases return fixed results", now.Fixed-was.Fixed)}, specialCases)
	}
}

// unvouched tells whether a function, which is there as it was otherwise, does not call
// any more what checked something and gave an error back.
func (r *run) unvouched(p *pair, g *syntax.Guard, how *syntax.Rewrite) bool {
	call := g.Words[0]
	return g.Vouched && how.Stayed >= syntax.MostStays && !how.HandedOver && !how.Now.All.Has(call) &&
		!r.of(p).code.Has(call)
}

// weakened tells whether a check lost some of its alternatives, while others of them
// stay in a new one, or whether no more is asked of a value that had to lie within
// limits than that there is one.
func (r *run) weakened(p *pair, was *syntax.Function, lost int, how *syntax.Rewrite) bool {
	g := &was.Guards[lost]
	if g.Failure || g.Weak || how.HandedOver || how.Stayed < syntax.MostStays {
		return false
	}
	about := multiset.Sum(g.Words, g.Names)
	if how.Asked(was, about) || r.of(p).guards[g.Key] {
		return false
	}
	if g.Formed && len(g.Told) > 0 && how.Formless(was, g) {
		return true
	}
	kept, gone := false, false
	for _, part := range g.Parts {
		kept = kept || how.Parts[part.Key]
		gone = gone || !how.Parts[part.Key] && !part.Asks.Presence() && len(part.Words) > 0 &&
			multiset.Overlap(part.Words, how.PartWords) == 0 && multiset.Overlap(part.Words, how.Now.All) > 0
	}
	if kept && gone {
		return true
	}
	return g.Asks.Bounds() && !kept && how.OnlyPresence(was, about)
}

// refusals tells of branches for all that is left in which a function threw, and goes on
// now, though nothing else in it checks more than it did.
func (r *run) refusals(p *pair, was, now *syntax.Function) {
	if now.Refuses >= was.Refuses || now.Elses < was.Elses || now.Throws >= was.Throws ||
		syntax.Stayed(was, now) < syntax.MostStays {
		return
	}
	checks := func(f *syntax.Function) bool { return len(f.Guards)+f.Throws > 0 }
	if len(now.Guards) > len(was.Guards) || len(now.Conditions) >= len(was.Conditions)+1 ||
		len(multiset.Difference(now.Askers, was.Askers)) > 0 || r.handsOver(p, was, now, checks) {
		return
	}
	r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.85,
		Message: "what was refused when nothing else held goes on now"}, guardRemoved)
}
