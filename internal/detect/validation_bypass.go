package detect

import (
	"fmt"

	"github.com/perdure/perdure/internal/detect/source"
)

// rewritten says how a function changed.
type rewritten struct {
	removed bool // it lost tokens and gained next to none
	similar float64
	now     *source.Function
}

// guards compares the checks of a function: those that leave it when something is
// wrong. A check that became another one with the same words, here or in what the
// change added, was rewritten.
func (r *run) guards(p *pair, was, now *source.Function) {
	if len(was.Guards) == 0 {
		return
	}
	how := rewritten{removed: mostlyRemoved(was, now), similar: source.Similar(was.All, now.All), now: now}
	count := make(map[uint64]int)
	for i := range now.Guards {
		count[now.Guards[i].Key]++
	}
	var gained source.Bag
	known := make(map[uint64]int)
	for i := range was.Guards {
		known[was.Guards[i].Key]++
	}
	for i := range now.Guards {
		if g := &now.Guards[i]; known[g.Key] == 0 {
			gained = append(gained, g.Words...)
		}
	}
	gained = source.Join(gained, nil)
	fewer := len(was.Guards) - len(now.Guards)
	for i := range was.Guards {
		g := &was.Guards[i]
		if count[g.Key]--; count[g.Key] >= 0 {
			continue
		}
		if r.guardElsewhere(p, g, gained, &how) {
			continue
		}
		f := Finding{File: p.old.Path, Line: g.Line, Gone: true, Subject: was.Name, Evidence: g.S, Confidence: 0.6}
		switch {
		case fewer > 0 && how.removed:
			f.Confidence = 0.9
		case fewer > 0 && how.similar > 0.7:
			f.Confidence = 0.75
		case fewer <= 0:
			f.Confidence = 0.5
		}
		if g.Weak || g.Inline && !now.Calls.Has(g.Words[0]) {
			f.Confidence = min(f.Confidence, 0.7)
		}
		if g.Failure {
			f.Message = fmt.Sprintf("a check of an error was removed from %s", was.Name)
			r.add(f, handlerRemoved)
			continue
		}
		r.add(f, guardRemoved)
	}
}

// guardElsewhere tells whether what a guard checked is checked by another one, or
// is not there any more.
func (r *run) guardElsewhere(p *pair, g *source.Guard, gained source.Bag, how *rewritten) bool {
	if g.Failure { // the call may have gone with its check
		return !how.now.Calls.Has(g.Words[0]) && (!g.Inline || !how.removed || r.of(p).code.Has(g.Words[0]))
	}
	if len(g.Words) > 0 && source.Inside(g.Words, gained) >= 0.6 {
		return true
	}
	if r.of(p).guards[g.Key] || len(g.Words) > 1 && source.Inside(g.Words, r.of(p).code) == 1 {
		return true
	}
	if r.namesRemoved(p, g.Words) {
		return true
	}
	return len(g.Words) > 0 && source.Inside(g.Words, how.now.All) < 0.3 && !how.removed
}

// forged tells of equality that is always true.
func (r *run) forged(p *pair, was, now *source.Function) {
	if now.AlwaysTrue && (was == nil || !was.AlwaysTrue) {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.95}, equalityForged)
	}
}

// special tells of functions that gained special cases.
func (r *run) special(p *pair, was, now *source.Function) {
	if now.Fixed-was.Fixed >= 2 {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.6, Message: fmt.Sprintf("%d special cases return fixed results", now.Fixed-was.Fixed)}, specialCases)
	}
}
