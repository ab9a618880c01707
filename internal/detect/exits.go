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
	r.add(p.inNew(now.Line, p.new.Path, now.S, 0.9, "exit code changed from failure to success"), syntax.ExitTrick)
}
