package detect

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// unchecked reports removed calls of functions that only check something, in a function
// that is otherwise unchanged.
func (r *run) unchecked(p *pair, was, now *syntax.Function) {
	if p.old == nil || len(p.old.Funcs) > maxCheckers || len(multiset.Difference(now.Vouchers, was.Vouchers)) > 0 {
		return
	}
	var there float64
	for _, f := range p.old.Funcs {
		h := syntax.Hash(f.Leaf)
		if f.Test || f.Name == was.Name || len(f.Guards) == 0 || now.All.Has(h) || !was.All.Has(h) || !syntax.ChecksOnly(f) {
			continue
		}
		if there == 0 {
			there = syntax.Stayed(was, now)
		}
		if there < syntax.MostStays || r.of(p).code.Has(h) || r.checkedHere(p, was, now, f) {
			continue
		}
		r.add(p.inOld(was.Line, was.Name, f.Name, 0.85,
			fmt.Sprintf("%s no longer calls %s, which checks its input", was.Name, f.Leaf)), guardRemoved)
		return
	}
}

// maxCheckers is the number of functions in a file up to which they are searched for
// checking functions.
const maxCheckers = 1000

// checkedHere reports whether the checks of a function that is no longer called are done
// in another way.
func (r *run) checkedHere(p *pair, was, now *syntax.Function, f *syntax.Function) bool {
	does := func(o *syntax.Function) bool { return len(o.Guards) > 0 }
	if r.handsOver(p, was, now, does) {
		return true
	}
	for i := range f.Guards {
		g := &f.Guards[i]
		if r.of(p).guards[g.Key] {
			return true
		}
		for j := range now.Guards {
			n := &now.Guards[j]
			fresh := !slices.ContainsFunc(was.Guards, func(o syntax.Guard) bool { return o.Key == n.Key })
			if fresh && (multiset.Containment(g.Words, n.Words) >= 0.5 && len(g.Words) > 0 || len(g.Told) > 1 &&
				multiset.Containment(g.Told, n.Told) >= 0.8) {
				return true
			}
		}
	}
	return false
}
