package detect

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// marks reports the marks that a file has more of than before, unless other files of the
// change lost the same. Marks whose text is new come first.
func (r *run) marks(p *pair) {
	if p.new == nil || p.oldWhy != "" {
		return
	}
	was, now := marksByPattern(p.before()), marksByPattern(p.new)
	for _, id := range slices.Sorted(maps.Keys(now)) {
		switch {
		case p.old == nil && (id == syntax.FlagOff || id == syntax.LooseType): // nothing was weakened
		case id == syntax.FlagOff:
			r.switches(p, was[id], now[id])
		default:
			r.moreMarks(p, id, was[id], now[id])
		}
	}
}

func marksByPattern(m *syntax.Model) map[string][]*syntax.Mark {
	all := make(map[string][]*syntax.Mark)
	for i := range m.Marks {
		mark := &m.Marks[i]
		all[mark.Pattern] = append(all[mark.Pattern], mark)
	}
	return all
}

func (r *run) moreMarks(p *pair, id string, was, now []*syntax.Mark) {
	more := len(now) - len(was)
	if more <= 0 {
		return
	}
	added := slices.DeleteFunc(newMarks(was, now), r.movedMark)
	if id == syntax.OpenEnds {
		if len(added) > maxOpenEnds {
			r.add(p.inNew(added[0].Line, "", added[0].S, 0.6, ""), id)
		}
		return
	}
	for _, m := range added[:min(more, len(added))] {
		f := p.inNew(m.Line, "", m.S, cmp.Or(m.Confidence, 0.8), "")
		switch {
		case id == syntax.ComplaintOff && m.Silence.Named, id == syntax.CoverageExcluded && excused(p, m):
			f.Confidence = min(f.Confidence, 0.7)
		case id == syntax.ComplaintOff && p.class == production, id == syntax.CoverageExcluded && p.class == production:
			f.Confidence = max(f.Confidence, 0.85)
		}
		r.add(f, id)
	}
}

// newMarks returns the marks of now that was does not have: first those whose line is
// new, then those whose line without the mark is new.
func newMarks(was, now []*syntax.Mark) []*syntax.Mark {
	key := func(m *syntax.Mark) uint64 { return m.Key }
	type whole struct {
		text string // of a comment, or of the line with the mark
		rest uint64
	}
	line := func(m *syntax.Mark) whole { return whole{m.S, m.Key} }
	return multiset.Excess(multiset.Excess(now, was, line), multiset.Excess(was, now, line), key)
}

// excused reports whether code may be excluded from coverage: tests cannot run it, or a
// reason is on the line or in a new comment before it. Code that was covered needs a longer
// reason.
func excused(p *pair, m *syntax.Mark) bool {
	least := 2
	if p.old != nil && m.Target != 0 && p.old.Lines.Count(m.Target) > 0 {
		least = 6
	}
	if neverTested().MatchString(m.About) || m.Silence.Words >= least {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimLeft(m.Why, "/# "), " ")
	names := slices.Contains(codeWords(m.About), first) // the comment documents the declaration
	return m.Why != "" && !names && (p.old == nil || !strings.Contains(p.old.Notes, m.Why))
}

// neverTested matches lines that tests do not or cannot run.
var neverTested = lazyregexp.New(`^\s*(import|from)\s|__name__|TYPE_CHECKING|NotImplemented|UnsupportedOperation|abstractmethod|` +
	`ImportError|ModuleNotFoundError|@overload|__repr__|__str__|` +
	`(?i)unreachable|\bnever\b|assert_?never|exhaustive|impossible|cannot happen|\bdefault\s*:|^\s*default\b|` +
	`\bprocess\.exit|sys\.exit|\bmain\s*\(|version_info|sys\.platform|process\.platform|Protocol\)|^\s*\.\.\.$|` +
	`DebuggerDisplay|private \w+\(\) ?\{|panic\(`)

// maxOpenEnds is the number of marks of unfinished work that a file may gain.
const maxOpenEnds = 5

// movedMark reports whether another file lost the same mark.
func (r *run) movedMark(m *syntax.Mark) bool {
	if r.lostMarks == nil {
		r.countLost()
	}
	r.lostMarks[keyOf(m)]--
	return r.lostMarks[keyOf(m)] >= 0
}

// countLost counts the marks that files lost, by their text.
func (r *run) countLost() {
	r.lostMarks = make(map[string]int)
	for _, p := range r.pairs {
		if p.newWhy != "" {
			continue
		}
		now := make(map[string]int)
		for i := range p.after().Marks {
			now[keyOf(&p.new.Marks[i])]++
		}
		for i := range p.before().Marks {
			key := keyOf(&p.old.Marks[i])
			if now[key]--; now[key] < 0 {
				r.lostMarks[key]++
			}
		}
	}
}

func keyOf(m *syntax.Mark) string { return m.Pattern + "\x00" + m.S }

// handlers compares the error handling of two versions of a function.
func (r *run) handlers(p *pair, was, now *syntax.Function) {
	dropped, broad := was.Drops(), 0
	for i := range was.Handlers {
		if was.Handlers[i].Broad {
			broad++
		}
	}
	added := len(now.Handlers) > len(was.Handlers)
	for i := range now.Handlers {
		h := &now.Handlers[i]
		f := p.inNew(h.Line, now.Name, h.S, 0.9, "")
		if h.Dropped {
			if dropped--; dropped < 0 {
				if h.Cleans || added && (h.Expected || syntax.FreshCode(h.Guarded, was)) || !p.dropsMore() {
					f.Confidence = 0.7 // a new handler of expected errors or of new code, or one that moved
				}
				r.add(f, syntax.ErrorSwallowed)
				continue
			}
		}
		if h.Broad {
			if broad--; broad < 0 && added {
				f.Confidence = 0.6
				r.add(f, broadCatch)
			}
		}
	}
	if len(now.Handlers) < len(was.Handlers) && now.Throws <= was.Throws && !syntax.SameHandlers(was, now) {
		f := p.inOld(was.Handlers[0].Line, was.Name, was.Handlers[len(was.Handlers)-1].S, 0.6, "")
		handed := syntax.DoneElsewhere(was, now) || syntax.Moved(was, now) ||
			r.handsOver(p, was, now, func(f *syntax.Function) bool { return len(f.Handlers)+f.Throws > 0 })
		if syntax.MostlyRemoved(was, now) && !handed && !syntax.SharedHandling(was, now) {
			f.Confidence = 0.85
		}
		r.add(f, handlerRemoved)
	}
	r.swallowed(p, was, now)
	if now.Throws < was.Throws && now.Empties > was.Empties && syntax.MostlySame(was, now) &&
		syntax.TurnedEmpty(was, now) {
		r.add(p.inNew(now.Line, now.Name, now.Name, 0.85, ""), throwToReturn)
	}
}

// dropsMore reports whether the new version ignores errors in more places than the old one.
// It counts them once, however many functions ask.
func (p *pair) dropsMore() bool {
	if p.moreDrops == nil {
		p.moreDrops = new(dropsOf(p.new) > dropsOf(p.old))
	}
	return *p.moreDrops
}

// dropsOf counts the places of a version where errors are ignored; nested functions have
// the same.
func dropsOf(m *syntax.Model) int {
	lines := make(map[int]bool)
	for _, f := range m.Funcs {
		for i := range f.Handlers {
			if f.Handlers[i].Dropped {
				lines[f.Handlers[i].Line] = true
			}
		}
	}
	return len(lines)
}

// swallowed reports errors that are no longer passed on: by a handler that threw and now
// just continues, and by the ? operator of Rust.
func (r *run) swallowed(p *pair, was, now *syntax.Function) {
	if !syntax.MostlySame(was, now) {
		return
	}
	f := p.inNew(now.Line, now.Name, now.Name, 0.85, "error is no longer passed on")
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
