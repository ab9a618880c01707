package detect

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// matchMerged finds tests whose content is in other tests now.
func (r *run) matchMerged(left []int, free []*candidate) {
	for _, n := range left {
		t := &r.tests[n]
		if t.how != "" || r.of(t.from).asserts == 0 || len(t.old.Asserts) == 0 || len(t.old.Telling) < 2 {
			continue
		}
		// Many tests share names; a test without literals needs all of its names.
		if len(t.old.Literals) == 0 && multiset.Containment(t.old.Telling, r.of(t.from).tests) < 0.95 {
			continue
		}
		if multiset.Containment(t.old.Literals, r.of(t.from).tests) < 0.75 ||
			multiset.Containment(t.old.Telling, r.of(t.from).whole) < 0.75 {
			continue
		}
		if multiset.Containment(asserted(t.old), r.of(t.from).tests) < 0.75 {
			continue
		}
		t.how = howMerged
		t.to, t.new = r.mergedInto(t, free)
	}
}

// matchRepeated finds tests of which a copy is left in the file. In another suite it is the
// same test only if the file prepares nothing for its tests.
func (r *run) matchRepeated(left []int) {
	for _, n := range left {
		t := &r.tests[n]
		for i := range r.tests {
			o := &r.tests[i]
			if t.how == "" && o.from == t.from && o.how == howSame && o.new.BodyHash == t.old.BodyHash &&
				len(t.old.Cases)+len(o.new.Cases) == 0 && o.new.Skip <= t.old.Skip &&
				(suiteOf(o.new) == suiteOf(t.old) || !prepares(t.from.old)) {
				t.how, t.to, t.new = howMerged, o.to, o.new
			}
		}
	}
}

// suiteOf returns the name of the suite of a test, with a separator at its end.
func suiteOf(t *syntax.Test) string { return strings.TrimSuffix(t.Name, t.Leaf) }

// prepares reports whether a file has code that runs before its tests.
func prepares(m *syntax.Model) bool {
	for _, b := range bagsOf(m) {
		for name := range setups() {
			if b.Has(syntax.Hash(name)) {
				return true
			}
		}
	}
	return false
}

// matchTabled finds Go tests whose values, except those in failure messages, all appear
// in what another test of the file gained, most often a table.
func (r *run) matchTabled(left []int) {
	compared := 0
	for _, n := range left {
		t := &r.tests[n]
		values := multiset.Difference(t.old.Literals, t.old.Said)
		if t.how != "" || len(t.old.Said) == 0 || len(values) == 0 || t.from.new == nil {
			continue
		}
		telling := multiset.Difference(t.old.Telling, t.old.Said)
		had := make(map[string]*syntax.Test, len(t.from.old.Tests))
		for _, o := range t.from.old.Tests {
			had[o.Name] = o
		}
		for _, host := range t.from.new.Tests {
			if compared++; compared > maxCompared {
				return
			}
			more := host.All
			if o := had[host.Name]; o != nil {
				more = multiset.Difference(host.All, o.All)
			}
			if host.Skip == syntax.Runs && len(host.Asserts) > 0 && multiset.Containment(values, more) == 1 &&
				multiset.Containment(telling, host.All) >= 0.95 {
				t.how, t.to, t.new = howMerged, t.from, host
				break
			}
		}
	}
}

// asserted returns the strings and numbers in the assertions of a test.
func asserted(t *syntax.Test) multiset.Hashes {
	var all multiset.Hashes
	for i := range t.Asserts {
		all = append(all, t.Asserts[i].Literals...)
	}
	slices.Sort(all)
	return all
}

// mergedInto finds the test that contains most of a merged one; nil if several tests
// share it.
func (r *run) mergedInto(t *testPair, free []*candidate) (*pair, *syntax.Test) {
	for _, c := range free[:min(len(free), maxRenamed)] {
		if 4*len(c.test.Literals) < 3*len(t.old.Literals) || 10*len(c.test.Telling) < 7*len(t.old.Telling) {
			continue // too small
		}
		if multiset.Containment(t.old.Literals, c.test.Literals) >= 0.75 &&
			multiset.Containment(t.old.Telling, c.test.Telling) >= 0.7 {
			return c.pair, c.test
		}
	}
	return nil, nil
}

// matchObsolete marks tests whose subject the change removed.
func (r *run) matchObsolete(t *testPair) {
	if t.how != "" {
		return
	}
	if t.old.Empty {
		t.how = howObsolete
		return
	}
	removed := r.of(t.from).removed
	if slices.ContainsFunc(t.old.Names,
		func(h uint32) bool { return removed[h] != "" && !syntax.Everywhere(removed[h]) }) {
		t.how = howObsolete
	}
}
