package detect

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// marks tells of marks that a file has more of than it had, unless other files of
// the change lost the same. Those whose text is new come first.
func (r *run) marks(p *pair) {
	if p.new == nil || p.oldWhy != "" {
		return
	}
	byPattern := make(map[string][]*syntax.Mark)
	var order []string
	for i := range p.new.Marks {
		m := &p.new.Marks[i]
		if byPattern[m.Pattern] == nil {
			order = append(order, m.Pattern)
		}
		byPattern[m.Pattern] = append(byPattern[m.Pattern], m)
	}
	for _, id := range order {
		if p.old == nil && r.newFileMay(id) {
			continue
		}
		r.moreMarks(p, id, byPattern[id])
	}
}

// newFileMay tells of patterns that a new file may have: there is nothing in it
// that was weakened. What forges results counts in new files, too.
func (r *run) newFileMay(id string) bool { return id == syntax.FlagOff || id == syntax.LooseType }

func (r *run) moreMarks(p *pair, id string, now []*syntax.Mark) {
	var was []*syntax.Mark
	if p.old != nil {
		for i := range p.old.Marks {
			if m := &p.old.Marks[i]; m.Pattern == id {
				was = append(was, m)
			}
		}
	}
	more := len(now) - len(was)
	if id == syntax.FlagOff {
		r.switches(p, now)
		return
	}
	if more <= 0 {
		return
	}
	added := slices.DeleteFunc(newMarks(was, now), func(m *syntax.Mark) bool { return r.movedMark(p, m) })
	if id == syntax.OpenEnds {
		if len(added) > maxOpenEnds {
			r.add(Finding{File: p.new.Path, Line: added[0].Line, Evidence: added[0].S, Confidence: 0.6}, id)
		}
		return
	}
	for _, m := range added[:min(more, len(added))] {
		f := Finding{File: p.new.Path, Line: m.Line, Evidence: m.S, Confidence: cmp.Or(m.Confidence, 0.8)}
		if keptFromTool(id) && p.old != nil && m.Target != 0 &&
			p.old.Lines.Count(m.Target) >= max(1, p.new.Lines.Count(m.Target)) {
			f.Confidence = max(f.Confidence, 0.9) // the line was there, and was complained of
			if excused(p, m) || id == syntax.ComplaintOff && m.Confidence < 0.8 && p.class == testCode {
				f.Confidence = 0.7 // one rule, and why; or of a test, of which only tools complain
			}
		}
		if keptFromTool(id) && p.class == production && !excused(p, m) && !conventional(id, m) {
			f.Confidence = max(f.Confidence, 0.85) // of new code, too
		}
		if outdated().MatchString(m.S) {
			f.Confidence = min(f.Confidence, 0.7)
		}
		r.add(f, id)
	}
}

// newMarks are those of now that was does not have: whose line is there already, and
// then whose line without the mark.
func newMarks(was, now []*syntax.Mark) []*syntax.Mark {
	line := func(m *syntax.Mark) string { return m.S }
	return multiset.Excess(multiset.Excess(now, was, line), multiset.Excess(was, now, line),
		func(m *syntax.Mark) uint64 { return m.Key })
}

// outdated is what silences notices that something is deprecated, and nothing else.
// Such a notice comes with the version of what is used; it tells of no fault.
var outdated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`@(?:file:\s*)?Suppress(?:Warnings)?\s*\(\s*\{?\s*"(?:(?:OVERRIDE_)?DEPRECATION|deprecation|removal)"(?:\s*,\s*"(?:deprecation|removal)")?\s*\}?\s*\)|` +
			`pragma warning disable\s+(?:CS)?0?61[28](?:\s*,\s*(?:CS)?0?61[28])*\s*(?://|$)|\[allow\(deprecated\)\]|` +
			`disable(?:-next-line|-line)?\s+(?:@typescript-eslint/no-deprecated|deprecation/deprecation)\s*(?:--|\*/|$)`)
})

// excused tells whether a mark says why it is there: beside it, or in a new comment
// before it. Who silences a tool has to name the rule it is about; for several rules,
// and for what names none by its nature, the reason has more words.
func excused(p *pair, m *syntax.Mark) bool {
	least := 4
	switch s := &m.Silence; {
	case m.Pattern == syntax.CoverageExcluded && p.old != nil && m.Target != 0 && p.old.Lines.Count(m.Target) > 0 &&
		!conventional(m.Pattern, m):
		least = 6 // code that was covered
	case m.Pattern == syntax.CoverageExcluded:
		least = 2
	case s.Rules == 0:
		return false
	case s.Rules == 1 && s.Longest >= 5:
		least = 1
	case s.Rules == 1:
		least = 2
	case s.Rules > 3:
		return false
	}
	if m.Silence.Words >= least {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimLeft(m.Why, "/# "), " ")
	names := slices.Contains(codeWords(m.About), first) // what is declared there: it says what that does
	return m.Why != "" && !names && (p.old == nil || !strings.Contains(p.old.Notes, m.Why))
}

// maxOpenEnds is how many open ends a file may gain.
const maxOpenEnds = 5

// movedMark tells whether another file lost the same mark.
func (r *run) movedMark(p *pair, m *syntax.Mark) bool {
	if r.lostMarks == nil {
		r.countLost()
	}
	key := m.Pattern + "\x00" + m.S
	if r.lostMarks[key] > 0 {
		r.lostMarks[key]--
		return true
	}
	return false
}

// countLost counts the marks that files lost, by their text.
func (r *run) countLost() {
	lost := make(map[string]int)
	for _, p := range r.pairs {
		if p.old == nil || p.newWhy != "" {
			continue
		}
		now := make(map[string]int)
		if p.new != nil {
			for i := range p.new.Marks {
				now[p.new.Marks[i].Pattern+"\x00"+p.new.Marks[i].S]++
			}
		}
		for i := range p.old.Marks {
			key := p.old.Marks[i].Pattern + "\x00" + p.old.Marks[i].S
			if now[key]--; now[key] < 0 {
				lost[key]++
			}
		}
	}
	r.lostMarks = lost
}

// handlers compares how a function handles errors.
func (r *run) handlers(p *pair, was, now *syntax.Function) {
	dropped, broad := 0, 0
	for i := range was.Handlers {
		if was.Handlers[i].Dropped {
			dropped++
		}
		if was.Handlers[i].Broad {
			broad++
		}
	}
	added := len(now.Handlers) > len(was.Handlers)
	for i := range now.Handlers {
		h := &now.Handlers[i]
		f := Finding{File: p.new.Path, Line: h.Line, Subject: now.Name, Evidence: h.S, Confidence: 0.9}
		if h.Dropped {
			if dropped--; dropped < 0 {
				if h.Cleans || added && (h.Expected || syntax.FreshCode(h.Guarded, was)) {
					f.Confidence = 0.7 // a new one, for errors that may be expected, or of new code
				}
				r.add(f, syntax.ErrorSwallowed)
				continue
			}
		}
		if h.StandsIn && added && !h.Expected && !syntax.FreshCode(h.Guarded, was) && len(h.Guarded) > 0 &&
			!syntax.SameBody(was, h.Body) {
			f.Confidence, f.Message = 0.85, "an error that was passed on gives an empty value now"
			r.add(f, syntax.ErrorSwallowed)
			continue
		}
		if h.Hushed && added && !h.Expected && !h.Dropped && !syntax.FreshCode(h.Guarded, was) && len(h.Guarded) > 0 &&
			!syntax.SameBody(was, h.Body) {
			f.Confidence, f.Message = 0.85, "an error that was passed on is told where nobody reads"
			r.add(f, syntax.ErrorSwallowed)
			continue
		}
		if h.Broad {
			if broad--; broad < 0 && added {
				f.Confidence = 0.6
				r.add(f, broadCatch)
			}
		}
	}
	if len(now.Handlers) < len(was.Handlers) && now.Throws <= was.Throws && !syntax.SameHandlers(was, now) {
		f := Finding{File: p.old.Path, Line: was.Handlers[0].Line, Gone: true, Subject: was.Name,
			Evidence: was.Handlers[len(was.Handlers)-1].S, Confidence: 0.6}
		handed := syntax.DoneElsewhere(was, now) || syntax.Moved(was, now) ||
			r.handsOver(p, was, now, func(f *syntax.Function) bool { return len(f.Handlers) > 0 })
		if syntax.MostlyRemoved(was, now) && !handed && !syntax.SharedHandling(was, now) {
			f.Confidence = 0.85
		}
		r.add(f, handlerRemoved)
	}
	r.swallowed(p, was, now)
	r.passedOff(p, was, now)
	r.softened(p, was, now)
	if now.Throws < was.Throws && now.Empties > was.Empties && syntax.MostlySame(was, now) &&
		syntax.TurnedEmpty(was, now) {
		r.add(Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.85},
			throwToReturn)
	}
}

// swallowed tells of errors that were passed on and are not any more: by a handler
// that threw and only goes on now, and by the operator of Rust.
func (r *run) swallowed(p *pair, was, now *syntax.Function) {
	if !syntax.MostlySame(was, now) {
		return
	}
	f := Finding{File: p.new.Path, Line: now.Line, Subject: now.Name, Evidence: now.Name, Confidence: 0.85,
		Message: "an error that was passed on is not any more"}
	if now.Tries < was.Tries && now.Swallows > was.Swallows {
		r.add(f, syntax.ErrorSwallowed)
		return
	}
	if now.Throws >= was.Throws || len(now.Handlers) < len(was.Handlers) {
		return
	}
	passed := 0
	for i := range was.Handlers {
		if was.Handlers[i].Rethrows {
			passed++
		}
	}
	for i := range now.Handlers {
		if now.Handlers[i].Rethrows {
			passed--
		}
	}
	for i := range now.Handlers {
		if h := &now.Handlers[i]; passed > 0 && h.Plain && !h.Rethrows && !h.Dropped && !syntax.SameBody(was, h.Body) {
			f.Line, f.Evidence = h.Line, h.S
			r.add(f, syntax.ErrorSwallowed)
			passed--
		}
	}
}

// passedOff tells of handlers after which all is as if nothing had failed: they passed
// an error on, or gave what tells of one, or something else than what success gives.
func (r *run) passedOff(p *pair, was, now *syntax.Function) {
	if len(was.Handlers) != len(now.Handlers) || syntax.Stayed(was, now) < mostlyThere {
		return
	}
	for i := range now.Handlers {
		before, h := &was.Handlers[i], &now.Handlers[i]
		if before.Body == h.Body || h.Fails && !h.Succeeds {
			continue
		}
		lost := before.Fails && (before.Rethrows || !h.Sets) && h.Plain && now.Throws+now.Failing < was.Throws+was.Failing
		came := len(multiset.Difference(h.Called, before.Called)) > 0
		kept := before.Hands && !before.Rethrows && !h.Hands && !h.Sets && !came && len(now.Handlers) == len(was.Handlers)
		well := before.Rethrows && !h.Rethrows && h.Succeeds && !before.Succeeds
		uncounted := len(h.Counts) == 0 && !came && !h.Hands && syntax.Uncounted(before.Counts, was, now, r.of(p).code)
		if lost || kept || well || uncounted || h.Alike && !before.Alike {
			r.add(Finding{
				File: p.new.Path, Line: h.Line, Subject: now.Name, Evidence: h.S, Confidence: 0.85,
				Message: "a failure leads to what success leads to",
			}, syntax.ErrorSwallowed)
		}
	}
}

// mostlyThere is how much of a function stays that does the same work.
const mostlyThere = 0.5
