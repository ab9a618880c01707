package detect

import (
	"github.com/perdure/perdure/internal/detect/bag"
	"github.com/perdure/perdure/internal/detect/source"
)

// softened tells of calls that failed and do not any more: one of another name, which
// gives something in any case, stands in their place, the same gives another value then,
// or what made failures known is gone.
func (r *run) softened(p *pair, was, now *source.Function) {
	if stayed(was, now) < 0.5 {
		return
	}
	f := Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.85, Message: "a call that failed gives something in any case now"}
	if p.lang.Name == "go" {
		if was.Tries > 0 && now.Tries == 0 && now.Oks > was.Oks && failures(was) == failures(now) && bag.Inside(was.Askers, now.Askers) == 1 {
			f.Message = "an error that was passed on is not any more"
			r.add(f, source.ErrorSwallowed)
		}
		return
	}
	checked := now.Throws > was.Throws || len(now.Guards) > len(was.Guards)
	for _, call := range bag.Without(now.Softer, was.Softer) {
		if now.All.Count(call) < was.All.Count(call) && !checked {
			r.add(f, source.ErrorSwallowed)
			return
		}
	}
	for _, call := range bag.Without(now.Ignored, was.Ignored) {
		failing := was.All.Count(call) - was.Ignored.Count(call)
		fewer := now.All.Count(call)-now.Ignored.Count(call) < failing
		if fewer && (p.lang.Name != "rust" || now.Oks > was.Oks || now.Throws < was.Throws || now.Tries < was.Tries) {
			r.add(f, source.ErrorSwallowed)
			return
		}
	}
	for _, word := range bag.Without(was.Strict, now.Strict) {
		if !checked && !r.of(p).code.Has(word) && len(now.Handlers) <= len(was.Handlers) {
			f.Message = "what makes a failure known is gone"
			r.add(f, source.ErrorSwallowed)
			return
		}
	}
}

// failures counts the checks of errors of calls, in Go.
func failures(f *source.Function) int {
	n := 0
	for i := range f.Guards {
		if f.Guards[i].Failure {
			n++
		}
	}
	return n
}
