package detect

import (
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// declared reports declared checks that were removed from a file although their subject
// is still there and no other check of it was added.
func (r *run) declared(p *pair) {
	if p.old == nil || p.new == nil || p.class != production || len(p.old.Checks) == 0 {
		return
	}
	lost := syntax.LostChecks(p.old, p.new)
	gained := syntax.LostChecks(p.new, p.old)
	told := make(map[string]bool)
	for _, c := range lost {
		if told[c.Subject+"\x00"+c.Name] || r.checkedOtherwise(p, &c, gained) || !stillThere(p, &c) {
			continue
		}
		told[c.Subject+"\x00"+c.Name] = true
		r.add(p.inOld(c.Line, c.Subject, c.S, 0.85, "declared check removed: "+c.Name), guardRemoved)
	}
}

// checkedOtherwise reports whether another check replaced one, in this file or another.
func (r *run) checkedOtherwise(p *pair, lost *syntax.Check, gained []syntax.Check) bool {
	for _, c := range gained {
		if c.Subject == lost.Subject || lost.Subject == "" {
			return true
		}
	}
	if r.namesRemoved(p, multiset.Hashes{syntax.Hash(lost.Name)}) {
		return true
	}
	for _, o := range r.pairs {
		if o == p || o.new == nil || r.of(o) != r.of(p) {
			continue
		}
		same := func(c syntax.Check) bool {
			return c.Name == lost.Name && (c.Subject == lost.Subject || c.Subject == "")
		}
		if slices.ContainsFunc(o.new.Checks, same) && !slices.ContainsFunc(o.before().Checks, same) {
			return true
		}
	}
	return false
}

// stillThere reports whether a file still has the subject of a check.
func stillThere(p *pair, c *syntax.Check) bool {
	if c.Apart {
		return true
	}
	if c.Subject != "" {
		word, text := syntax.Hash(c.Subject), lex.TextHash(c.Subject)
		for b := range bagsOf(p.new, false) {
			if b.Has(word) || b.Has(text) {
				return true
			}
		}
		return false
	}
	about := c.Around
	if len(about) == 0 {
		return false
	}
	left := about
	for b := range bagsOf(p.new, false) {
		if left = multiset.Difference(left, b); len(left) == 0 {
			return true
		}
	}
	return 2*len(left) <= len(about)
}
