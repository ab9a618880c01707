package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// functions compares the functions of production code.
func (r *run) functions() {
	for _, p := range r.pairs {
		if p.class != production && p.class != testCode || p.new == nil && p.newWhy != "" {
			continue
		}
		now := make(map[string][]*syntax.Function)
		for _, f := range p.after().Funcs {
			now[f.Name] = append(now[f.Name], f)
		}
		became := counterparts(p.before().Funcs, now)
		for _, was := range p.before().Funcs {
			switch f := became[was]; {
			case f != nil:
				r.compareFunction(p, was, f)
			case len(now[was.Name]) == 0:
				r.goneFunction(p, was)
				r.goneInit(p, was)
			}
		}
		r.offers(p)
		r.commentedOut(p)
	}
}

// maxNamesakes is the maximum number of functions of one name that are matched.
const maxNamesakes = 50

// counterparts matches functions with those of the same name: the one with the same body,
// or else the most similar one that is free.
func counterparts(old []*syntax.Function, now map[string][]*syntax.Function) map[*syntax.Function]*syntax.Function {
	became := make(map[*syntax.Function]*syntax.Function, len(old))
	taken := make(map[*syntax.Function]bool)
	for _, was := range old {
		all := now[was.Name]
		for _, f := range all[:min(len(all), maxNamesakes)] {
			if !taken[f] && f.BodyHash == was.BodyHash && f.Kind == was.Kind {
				became[was], taken[f] = f, true
				break
			}
		}
	}
	seen := make(map[string]int)
	for _, was := range old {
		seen[was.Name]++
	}
	for _, was := range old {
		if became[was] != nil {
			continue
		}
		all, most := now[was.Name], 0.3
		if len(all) == 1 && seen[was.Name] == 1 {
			most = -1
		}
		for _, f := range all[:min(len(all), maxNamesakes)] {
			if taken[f] {
				continue
			}
			if s := multiset.Jaccard(was.All, f.All); s > most {
				became[was], most = f, s
			}
		}
		taken[became[was]] = true
	}
	return became
}

// compareFunction compares two versions of a function.
func (r *run) compareFunction(p *pair, was, now *syntax.Function) {
	if was.Kind == syntax.DeclContainer || now.Kind == syntax.DeclContainer || was.BodyHash == now.BodyHash {
		return
	}
	r.forged(p, was, now)
	if now.Test {
		return
	}
	r.stub(p, was, now)
	r.guards(p, was, now)
	r.handlers(p, was, now)
	r.special(p, was, now)
	if now.Early && !was.Early && multiset.Containment(was.All, now.All) > 0.9 {
		r.add(p.inNew(now.EarlyLine, now.Name, now.Name, 0.85, ""), earlyReturn)
	}
}

// goneInit reports the checks in a removed Kotlin initialiser whose class still exists.
func (r *run) goneInit(p *pair, was *syntax.Function) {
	if was.Leaf != "init" || !p.lang.InitBlocks || p.new == nil {
		return
	}
	around := strings.TrimSuffix(was.Name, syntax.NameSeparator+was.Leaf)
	for _, f := range p.new.Funcs {
		if f.Name == around && f.Kind == syntax.DeclContainer {
			r.guards(p, was, &syntax.Function{Name: was.Name, Line: f.Line})
			return
		}
	}
}

// stub reports a body that was replaced by an empty one.
func (r *run) stub(p *pair, was, now *syntax.Function) {
	if !now.Stub || was.Stub || was.Tokens < 30 || now.Tokens*2 > was.Tokens {
		return
	}
	r.add(p.inNew(now.Line, now.Name, now.Name, 0.9,
		fmt.Sprintf("function body of %d lines replaced by a stub", was.Lines)), stubBody)
}

// maxRenamed is the maximum number of added functions that a removed one is compared
// with.
const maxRenamed = 2000

// goneFunction reports a removed public function or type, unless it moved, was renamed,
// or was deprecated before. If its tests were removed with it, or its users were adapted,
// the finding warns.
func (r *run) goneFunction(p *pair, was *syntax.Function) {
	added := r.of(p).fresh
	if !was.Public || was.Test || was.Deprecated || len(added[was.Leaf]) > 0 || p.class != production {
		return
	}
	others := added[""]
	for _, f := range others[:min(len(others), maxRenamed)] {
		if r.compared++; r.compared > maxCompared {
			return
		}
		if f.Kind == was.Kind && f.Public && multiset.Jaccard(was.All, f.All) >= 0.6 {
			return
		}
	}
	f := p.inOld(was.Line, was.Name, was.Name, 0.85, "")
	switch {
	case was.Overrides, p.new != nil && stillNamed(p, was):
		f.Confidence = 0.5
	case notOffered().MatchString(p.old.Path), notOffered().MatchString(was.Leaf):
		f.Confidence = 0.6 // not part of the promised interface
	case r.of(p).defined[was.Leaf]:
		f.Confidence = 0.5 // defined elsewhere
	case r.announced(was.Leaf), r.usersAdapted(p, was.Leaf):
		f.Confidence = 0.7
	case len(r.of(p).removed) > 3, r.testsWent(was) && !r.amidOther(p):
		f.Confidence = 0.5
	case p.old != nil && p.new != nil && cameFor(p, was):
		f.Confidence = 0.7
	}
	r.add(f, symbolRemoved)
}

// stillNamed reports whether a file still exports the name of a removed symbol, has it
// anew outside of functions or still has the type, or needs no constructor.
func stillNamed(p *pair, was *syntax.Function) bool {
	h := syntax.Hash(was.Leaf)
	return makers()[was.Leaf] || slices.Contains(p.new.Offers, was.Leaf) || p.new.Rest.Count(h) > p.old.Rest.Count(h) ||
		was.Kind == syntax.DeclContainer && p.new.Rest.Has(h)
}

// notOffered matches paths and names of symbols that are public only within the project.
var notOffered = lazyregexp.New(
	`(?i)(?:^|/)(?:_[a-z]|(?:internals?|demos?|examples|stories|benchmarks?|scripts)/)|unstable|experimental`)

// cameFor reports whether the file, or class, of a removed symbol gained a public one of
// the same kind with a similar name or body, or made public one that the symbol called:
// the interface changed and did not just shrink.
func cameFor(p *pair, was *syntax.Function) bool {
	around := strings.TrimSuffix(was.Name, was.Leaf)
	known := make(map[string]bool, len(p.old.Funcs))
	for _, f := range p.old.Funcs {
		known[f.Name] = f.Public
	}
	for _, f := range p.new.Funcs {
		public, had := known[f.Name]
		if f.Kind != was.Kind || !f.Public || public {
			continue
		}
		if had && was.Calls.Has(syntax.Hash(f.Leaf)) {
			return true
		}
		if beside := strings.TrimSuffix(f.Name, f.Leaf) == around; sharePart(f.Leaf, was.Leaf) || beside &&
			multiset.Jaccard(f.All, was.All) >= likeOne {
			return true
		}
	}
	return false
}

// likeOne is the similarity from which a function counts as a replacement.
const likeOne = 0.55

// sharePart reports whether two names have a word in common.
func sharePart(a, b string) bool {
	had := make(map[string]bool)
	for _, w := range nameParts().FindAllString(a, -1) {
		had[strings.ToLower(w)] = true
	}
	return slices.ContainsFunc(nameParts().FindAllString(b, -1), func(w string) bool { return had[strings.ToLower(w)] })
}

// nameParts matches the meaningful words of a name.
var nameParts = lazyregexp.New(`[A-Z]?[a-z]{3,}|[A-Z]{4,}`)

// amidOther reports whether the change that removed a symbol also does something else: a
// deliberate removal does nothing else.
func (r *run) amidOther(p *pair) bool {
	beside := p.old != nil && p.new != nil && len(multiset.Difference(p.new.Rest, p.old.Rest)) > 0
	return beside || r.otherWork(p)
}

// otherWork reports whether a change adds code.
func (r *run) otherWork(p *pair) bool {
	return len(r.of(p).fresh[""]) > 0 || len(r.of(p).code) >= otherWork
}

// otherWork is the number of added tokens from which a change does more than remove code.
const otherWork = 3

// usersAdapted reports whether production code of the change used a name outside of its
// declaration, and none does now.
func (r *run) usersAdapted(p *pair, name string) bool {
	h := syntax.Hash(name)
	uses := func(m *syntax.Model) bool {
		return slices.ContainsFunc(m.Funcs, func(f *syntax.Function) bool {
			return f.Kind != syntax.DeclContainer && f.Leaf != name && f.All.Has(h)
		})
	}
	if uses(p.before()) && !uses(p.after()) {
		return true // the file gave up the feature, not just the access to it
	}
	used := false
	for _, o := range r.pairs {
		if o == p || o.class != production || r.of(o) != r.of(p) {
			continue
		}
		if uses(o.after()) || o.after().Rest.Has(h) {
			return false
		}
		used = used || uses(o.before()) || o.before().Rest.Has(h)
	}
	return used
}

// testsWent reports whether tests of a symbol were removed with it.
func (r *run) testsWent(was *syntax.Function) bool {
	h := syntax.Hash(was.Leaf)
	return slices.ContainsFunc(r.tests, func(t testPair) bool { return t.how == howObsolete && t.old.Names.Has(h) })
}

// commentedOut reports lines of code that became comments.
func (r *run) commentedOut(p *pair) {
	if p.old == nil || p.new == nil || p.lang == nil {
		return
	}
	first := syntax.CommentLine{}
	n := 0
	for h, c := range p.new.Commented {
		if _, was := p.old.Commented[h]; was || !p.old.Lines.Has(h) || p.new.Lines.Has(h) {
			continue
		}
		if n++; first.Line == 0 || c.Line < first.Line {
			first = c
		}
	}
	if n >= minCommented {
		r.add(p.inNew(first.Line, "", first.S, 0.7, fmt.Sprintf("%d lines of code commented out", n)), codeCommented)
	}
}

// minCommented is the minimum number of lines commented out to be reported.
const minCommented = 3

// switches reports settings that were on and are off. The confidence is higher if the
// name suggests a check or a feature.
func (r *run) switches(p *pair, was, now []*syntax.Mark) {
	on := make(map[uint64][]bool)
	for _, m := range was {
		on[m.Key] = append(on[m.Key], m.On)
	}
	for _, m := range now {
		old := on[m.Key]
		if len(old) != 1 || !old[0] || m.On {
			continue // the key occurs more than once
		}
		f := p.inNew(m.Line, "", m.S, 0.6, "")
		if checkName().MatchString(m.S) {
			f.Confidence = 0.85
		}
		if !offName().MatchString(m.S) {
			r.add(f, syntax.FlagOff)
		}
	}
}

var (
	checkName = lazyregexp.New(`(?i)enable|feature|valid|check|strict|verif|auth|secur|lint|require|enforce|test`)
	offName   = lazyregexp.New(`(?i)disable|skip|debug|verbose|dry|allow|ignore|insecure|unsafe|experimental`)
)

// offers reports names that a file no longer exports although their definition is still
// there.
func (r *run) offers(p *pair) {
	if p.old == nil || p.new == nil || p.class != production || len(p.old.Offers) == 0 {
		return
	}
	missing := func(names, from []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(from, n) })
	}
	lost, came := missing(p.old.Offers, p.new.Offers), missing(p.new.Offers, p.old.Offers)
	if slices.Contains(came, "*") {
		return // it re-exports everything of another file
	}
	functions := functionsByName(p.new)
	for _, n := range lost {
		h := syntax.Hash(n)
		if f := functions[n]; f != nil && f.Public || r.namesRemoved(p, multiset.Hashes{h}) || r.offeredElsewhere(p, n) {
			continue
		}
		f := p.inOld(1, n, n, 0.85, "public symbol no longer exported")
		if slices.ContainsFunc(came, func(o string) bool { return n == "*" || sharePart(o, n) }) ||
			notOffered().MatchString(p.old.Path) || notOffered().MatchString(n) || len(lost) > 3 || r.usersAdapted(p, n) {
			f.Confidence = 0.7
		}
		r.add(f, symbolRemoved)
	}
}

// offeredElsewhere reports whether another file of the change newly exports a name.
func (r *run) offeredElsewhere(p *pair, name string) bool {
	return slices.ContainsFunc(r.pairs, func(o *pair) bool {
		return o != p && r.of(o) == r.of(p) && slices.Contains(o.after().Offers, name) &&
			!slices.Contains(o.before().Offers, name)
	})
}
