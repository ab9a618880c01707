package detect

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
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
	for _, n := range lost {
		h := syntax.Hash(n)
		if r.namesRemoved(p, multiset.Hashes{h}) || r.offeredElsewhere(p, n) {
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

// hidden reports a symbol that was public and is now private.
func (r *run) hidden(p *pair, was, now *syntax.Function) {
	if !was.Public || now.Public || was.Test || was.Deprecated || p.class != production {
		return
	}
	f := p.inNew(now.Line, now.Name, now.Name, 0.85, "public symbol made private")
	if notOffered().MatchString(p.old.Path) || notOffered().MatchString(was.Leaf) ||
		strings.Contains(was.Name, syntax.NameSeparator) && cameFor(p, was) || r.usersAdapted(p, was.Leaf) {
		f.Confidence = 0.7
	}
	r.add(f, symbolRemoved)
}
