package detect

import (
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// vanished returns those of the names that production code declared before and that no
// changed file has now.
func (r *run) vanished(group *material, names multiset.Hashes) map[uint32]bool {
	left := make(map[uint32]bool)
	if len(names) == 0 {
		return left
	}
	for _, p := range r.pairs {
		if p.old == nil || p.class != production || r.of(p) != group || p.newWhy != "" {
			continue
		}
		for _, h := range names {
			if p.old.Declares.Has(h) {
				left[h] = true
			}
		}
	}
	for _, p := range r.pairs {
		if len(left) == 0 || p.new == nil || r.of(p) != group {
			continue
		}
		for _, b := range bagsOf(p.new) {
			for _, h := range b {
				delete(left, h)
			}
		}
	}
	return left
}

// bagsOf returns the token hashes of the parts of a version.
func bagsOf(m *syntax.Model) []multiset.Hashes {
	all := []multiset.Hashes{m.Rest}
	for _, f := range m.Funcs {
		all = append(all, f.All)
	}
	for _, t := range slices.Concat(m.Tests, m.Suites) {
		all = append(all, t.All)
	}
	return all
}

// matchVanished finds the removed names that lost tests, and tests with fewer cases,
// used.
func (r *run) matchVanished(left []int) {
	asked := make(map[*material]multiset.Hashes)
	for i := range r.tests {
		if t := &r.tests[i]; t.how == "" || t.new != nil && len(t.new.Cases) < len(t.old.Cases) {
			asked[r.of(t.from)] = append(asked[r.of(t.from)], t.old.Members...)
		}
	}
	for group, names := range asked {
		group.vanished = r.vanished(group, names)
	}
	for _, n := range left {
		if t := &r.tests[n]; t.how == "" && r.usesVanished(t, t.old.Members) {
			t.how = howVanished
		}
	}
}

// usesVanished reports whether one of the tokens is a name that the test used and that
// the code no longer has.
func (r *run) usesVanished(t *testPair, b multiset.Hashes) bool {
	gone := r.of(t.from).vanished
	return len(gone) > 0 && slices.ContainsFunc(t.old.Members, func(h uint32) bool { return gone[h] && b.Has(h) })
}

// matchReplaced finds lost tests that another test of the same subject replaces and that
// asserts as much, if production code changed with them or the other test has a table.
func (r *run) matchReplaced(left []int, free []*candidate) {
	taken := make(map[*candidate]int)
	compared := 0
	for _, n := range left {
		t := &r.tests[n]
		if t.how != "" || len(t.old.Asserts) == 0 {
			continue
		}
		subject := ownNames(t)
		if len(subject) == 0 { // it differs from the others in its values only
			subject = t.old.Names
		}
		for _, c := range free {
			if compared++; compared > maxCompared {
				return
			}
			if !r.of(t.from).changed && len(c.test.Cases) < 2 || taken[c] >= max(1, len(c.test.Cases)) {
				continue
			}
			if r.of(c.pair) == r.of(t.from) && !c.used && r.assertsAsMuch(t.old, c) &&
				!r.ofSomethingNew(t, c) && multiset.Containment(subject, c.test.Telling) >= sameSubject {
				taken[c]++
				t.how = howReplaced
				break
			}
		}
	}
}

// ofSomethingNew reports whether a test is about a function that the change adds, while
// the subject of a lost test of another name still exists. Such a test replaces the lost
// one only if it keeps one of its assertions.
func (r *run) ofSomethingNew(t *testPair, c *candidate) bool {
	if t.old.Leaf == c.test.Leaf || len(t.old.Asserts) == 0 || r.namesRemoved(t.from, t.old.Names) {
		return false
	}
	fresh := r.of(t.from).freshByHash
	if !slices.ContainsFunc(c.test.Names, func(h uint32) bool { return len(fresh[h]) > 0 && !t.old.All.Has(h) }) {
		return false
	}
	for i := range t.old.Asserts {
		for j := range c.test.Asserts {
			if t.old.Asserts[i].Key == c.test.Asserts[j].Key {
				return false
			}
		}
	}
	return true
}

// ownNames returns the names in a test that most other tests of its file do not have.
func ownNames(t *testPair) multiset.Hashes {
	others := t.from.old.Tests
	return slices.DeleteFunc(multiset.Difference(t.old.Telling, t.old.Literals), func(h uint32) bool {
		n := 0
		for _, o := range others[:min(len(others), maxOthers)] {
			if o != t.old && o.Names.Has(h) {
				n++
			}
		}
		return 2*n > len(others)
	})
}

// maxOthers is the maximum number of tests of a file to compare with.
const maxOthers = 200

// sameSubject is the share of a test's own names that its replacement must have.
const sameSubject = 0.5

// assertsAsMuch reports whether a test runs and has at least as many assertions as
// another one, counted from the strongest down.
func (r *run) assertsAsMuch(was *syntax.Test, c *candidate) bool {
	now := c.test
	if now.Skip == syntax.Always || now.Fails || now.Caught > 0 || len(r.unexplained(c.pair, now, was)) > 0 {
		return false
	}
	a, b := was.Strengths(), now.Strengths()
	more := 0 // surplus of stronger assertions
	for i := len(a) - 1; i > int(syntax.Trivial); i-- {
		if more += b[i] - a[i]; more < 0 {
			return false
		}
	}
	return b[syntax.Trivial] == 0
}

// explainedRemoval reports a removed test for which the change shows a reason.
func (r *run) explainedRemoval(t *testPair, why string) {
	r.add(t.from.inOld(t.old.Line, t.old.Name, t.old.Name, 0.6, why), testExplained)
}
