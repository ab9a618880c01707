package detect

import (
	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// softened reports calls that could fail and no longer do: the call was replaced by one
// that always returns a value, now returns a fallback, or the option that reported
// failures was removed.
func (r *run) softened(p *pair, was, now *syntax.Function) {
	if syntax.Stayed(was, now) < 0.5 {
		return
	}
	f := p.inNew(now.Line, now.Name, now.Name, 0.85, "call that could fail replaced by one that always succeeds")
	if p.lang.Name == "go" {
		if was.Tries > 0 && now.Tries == 0 && now.Oks > was.Oks && syntax.CountFailures(was) == syntax.CountFailures(now) &&
			multiset.Containment(was.Askers, now.Askers) == 1 {
			f.Message = "error is no longer passed on"
			r.add(f, syntax.ErrorSwallowed)
		}
		for _, call := range multiset.Difference(was.Stops, now.Stops) {
			if syntax.CheckedFailure(was, call) || syntax.Stayed(was, now) < syntax.MostStays {
				continue
			}
			goesOn := now.Idle.Count(call) > was.Idle.Count(call) || now.Ignored.Count(call) > was.Ignored.Count(call) ||
				now.Dropped.Count(call) > was.Dropped.Count(call)
			if goesOn && now.Calls.Count(call) == was.Calls.Count(call) {
				f.Message = "function continues after a failure that ended it before"
				r.add(f, syntax.ErrorSwallowed)
				return
			}
		}
		return
	}
	checked := now.Throws > was.Throws || len(now.Guards) > len(was.Guards)
	for _, call := range multiset.Difference(now.Softer, was.Softer) {
		if now.All.Count(call) < was.All.Count(call) && !checked {
			r.add(f, syntax.ErrorSwallowed)
			return
		}
	}
	for _, call := range multiset.Difference(now.Ignored, was.Ignored) {
		failing := was.All.Count(call) - was.Ignored.Count(call)
		fewer := now.All.Count(call)-now.Ignored.Count(call) < failing
		if fewer && (p.lang.Name != "rust" || now.Oks > was.Oks || now.Throws < was.Throws || now.Tries < was.Tries) {
			r.add(f, syntax.ErrorSwallowed)
			return
		}
	}
	for _, word := range multiset.Difference(was.Strict, now.Strict) {
		if !checked && !r.of(p).code.Has(word) && len(now.Handlers) <= len(was.Handlers) {
			f.Message = "call or option that reports failures removed"
			r.add(f, syntax.ErrorSwallowed)
			return
		}
	}
}
