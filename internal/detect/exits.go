package detect

import "github.com/perdure/perdure/internal/detect/syntax"

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
	r.add(Finding{File: p.new.Path, Line: now.Line, Subject: p.new.Path, Evidence: now.S, Confidence: 0.9,
		Message: "exit code changed from failure to success"}, syntax.ExitTrick)
}
