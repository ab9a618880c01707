package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/human"
)

// testDeletion reports removed baseline tests and removed rows of test tables.
func (r *run) testDeletion() {
	gone := make(map[*pair][]*testPair)
	var order []*pair
	for i := range r.tests {
		t := &r.tests[i]
		switch {

		case t.how == "":
			if gone[t.from] == nil {
				order = append(order, t.from)
			}
			gone[t.from] = append(gone[t.from], t)
		case t.how == howVanished:
			r.explainedRemoval(t, "test removed together with a name that it used")
		case t.how == howReplaced:
			r.explainedRemoval(t, "test replaced by one of the same subject that asserts as much")
		case t.how == howSame || t.how == howMoved || t.how == howRenamed:
			if t.new != nil {
				r.lostCases(t)
			}
		}
	}
	for _, p := range order {
		r.removedTests(p, gone[p])
	}
}

// removedTests reports the tests that a file lost: in one finding if no test is left,
// else one finding each.
func (r *run) removedTests(p *pair, gone []*testPair) {
	if len(gone) > 1 && len(gone) == len(p.old.Tests) && (p.new == nil || len(p.new.Tests) == 0) {
		var names []string
		for _, t := range gone[:min(len(gone), 8)] {
			names = append(names, t.old.Name)
		}
		r.add(p.inOld(gone[0].old.Line, p.old.Path, strings.Join(names, "; "), 0.95,
			fmt.Sprintf("all %d tests of the file removed", len(gone))), testFileRemoved)
		return
	}
	for _, t := range gone {
		if t.old.Silent {
			r.explainedRemoval(t, "test without assertions removed")
			continue
		}
		id := testRemoved
		if becameComment(p, t.old) {
			id = testCommented
		}
		r.add(p.inOld(t.old.Line, t.old.Name, t.old.Name, 0.95, ""), id)
	}
}

// becameComment reports whether the name of a test newly appears in a comment.
func becameComment(p *pair, t *syntax.Test) bool {
	return p.new != nil && p.new.Notes != "" && strings.Contains(p.new.Notes, t.Leaf) &&
		!strings.Contains(p.old.Notes, t.Leaf)
}

// declaredIn reports whether comments contain a name in the form of a test declaration:
// quoted, or before parentheses.
func declaredIn(notes, name string) bool {
	forms := []string{"'" + name + "'", `"` + name + `"`, "`" + name + "`", name + "(", name + " ("}
	return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(notes, form) })
}

// lostCases reports rows that a test's table lost and that were not added to other tests.
func (r *run) lostCases(t *testPair) {
	if len(t.old.Cases) == 0 {
		return
	}
	r.casesOff(t)
	now := make(map[uint64]int)
	for i := range t.new.Cases {
		now[t.new.Cases[i].Key]++
	}
	most := len(t.old.Cases) - len(t.new.Cases)
	if most <= 0 {
		return
	}
	if len(t.new.Cases) == 0 && multiset.Containment(t.old.Telling, t.new.All) > 0.7 {
		return // the table is written in another form
	}
	lost := r.lostRows(t, now)
	if len(lost) == 0 {
		return
	}
	f := t.from.inOld(lost[0].Line, t.old.Name, lost[0].S, 0.95, "")
	if len(lost) > 1 && len(lost) == len(t.old.Cases) { // another table or none: the test was rewritten
		f.Confidence, f.Message = 0.6, "all cases of a test table replaced or removed"
		r.add(f, assertionLost)
		return
	}
	if !slices.ContainsFunc(lost, func(c *syntax.Case) bool { return !r.usesVanished(t, c.All) }) {
		f.Confidence, f.Message = 0.6, "test cases removed together with a name that they used"
		r.add(f, testExplained)
		return
	}
	lost = lost[:min(len(lost), most)]
	if len(lost) > 1 {
		f.Message = fmt.Sprintf("%d test cases removed", len(lost))
	}
	r.add(f, caseRemoved)
}

// casesOff reports rows that are newly marked as skipped or failing.
func (r *run) casesOff(t *testPair) {
	if t.new.Skip == syntax.Always {
		return
	}
	for i := range t.new.Cases {
		c := &t.new.Cases[i]
		if !c.Off {
			continue
		}
		for j := range t.old.Cases[:min(len(t.old.Cases), maxOthers)] {
			if o := &t.old.Cases[j]; !o.Off && len(o.All) > 0 && multiset.Containment(o.All, c.All) >= 0.9 {
				r.add(t.to.inNew(c.Line, t.new.Name, c.S, 0.9, "test case skipped"), skipAdded)
				break
			}
		}
	}
}

// lostRows returns the rows that were removed: not there unchanged (now counts the new
// rows by key), not edited, not moved to another test, and not about a removed subject.
func (r *run) lostRows(t *testPair, now map[uint64]int) []*syntax.Case {
	more, gone := multiset.Difference(t.new.All, t.old.All), multiset.Difference(t.old.All, t.new.All)
	var missing []*syntax.Case
	for i := range t.old.Cases {
		c := &t.old.Cases[i]
		if now[c.Key]--; now[c.Key] >= 0 {
			continue
		}
		kept := len(c.Literals) > 0 && multiset.Overlap(c.Literals, gone) == 0 // its values are as frequent as before
		if !kept && multiset.Containment(c.All, more) < 0.8 && !r.rowMoved(t.from, c) && !r.namesRemoved(t.from, c.All) {
			missing = append(missing, c)
		}
	}
	var fresh []*syntax.Case // new and edited rows
	for i := range t.new.Cases {
		if c := &t.new.Cases[i]; now[c.Key] > 0 {
			now[c.Key]--
			fresh = append(fresh, c)
		}
	}
	compared := 0
	return slices.DeleteFunc(missing, func(c *syntax.Case) bool {
		best, most := -1, 0.6
		for i, f := range fresh {
			if compared++; compared > maxCompared {
				break
			}
			if s := multiset.Jaccard(c.All, f.All); s > most {
				best, most = i, s
			}
		}
		if best >= 0 {
			fresh = slices.Delete(fresh, best, best+1)
		}
		return best >= 0
	})
}

// rowMoved reports whether the content of a row was added to other tests: nearly all of
// it, or all of its values.
func (r *run) rowMoved(p *pair, c *syntax.Case) bool {
	tests := r.of(p).tests
	all := multiset.Containment(c.All, tests)
	if len(c.All) > 1 && all >= 0.9 {
		return true
	}
	values := len(c.Literals)
	return values > 0 && multiset.Containment(c.Literals, tests) == 1 && (values > 1 || all >= 0.6)
}

// namesRemoved reports whether a token names something that the change removed from
// production code.
func (r *run) namesRemoved(p *pair, b multiset.Hashes) bool {
	removed := r.of(p).removed
	return len(removed) > 0 && slices.ContainsFunc(b, func(h uint32) bool { return removed[h] != "" })
}

// unreadable reports a file that was read before and cannot be read after the change, so
// that nothing in it can be compared: any file with tests, and code in which the
// encoding, the size or conflict markers are the reason. Code that became a link or
// minified is only listed as not analysed.
func (r *run) unreadable(p *pair) {
	if p.old == nil || p.newWhy == "" {
		return
	}
	f := Finding{File: p.path, Subject: p.path, Confidence: 0.9, Evidence: p.newWhy}
	if n := len(p.old.Tests); n > 0 {
		f.Message = fmt.Sprintf("file with %s can no longer be analysed: %s", human.Count(n, "test"), p.newWhy)
		r.add(f, testsUnreadable)
		return
	}
	if p.lang != nil && p.class != fixture && !slices.Contains([]string{whyLink, whyOther, whyMinified}, p.newWhy) {
		f.Message = "code can no longer be analysed: " + p.newWhy
		r.add(f, codeUnreadable)
	}
}
