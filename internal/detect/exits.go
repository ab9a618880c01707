package detect

import "github.com/perdure/perdure/internal/detect/syntax"

// exitsWell tells of a program that ends with success where it told of a failure by
// its exit status.
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
	r.add(Finding{
		File: p.new.Path, Line: now.Line, Subject: p.new.Path, Evidence: now.S, Confidence: 0.9,
		Message: "what ended with a code that told of a failure ends with success",
	}, syntax.ExitTrick)
}
