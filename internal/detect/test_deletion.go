package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// testDeletion tells of baseline tests that are gone, and of rows of tables.
func (r *run) testDeletion() {
	gone := make(map[*pair][]*testPair)
	var order []*pair
	for i := range r.tests {
		t := &r.tests[i]
		switch {
		case t.how == "" && t.old.Table &&
			!slices.ContainsFunc(t.old.Cases, func(c syntax.Case) bool { return !r.rowMoved(t.from, &c) }):
		case t.how == "":
			if gone[t.from] == nil {
				order = append(order, t.from)
			}
			gone[t.from] = append(gone[t.from], t)
		case t.how == howVanished:
			r.explainedRemoval(t, "a test is gone together with a name of the code that it used")
		case t.how == howReplaced:
			r.explainedRemoval(t, "a test is gone, and another one of the same subject asserts as much")
		case t.how == howSame || t.how == howMoved || t.how == howRenamed:
			if t.new != nil {
				r.lostCases(t)
				r.fewerRounds(t)
				r.narrowedCases(t)
			}
		}
	}
	for _, p := range order {
		r.removedTests(p, gone[p])
	}
}

// removedTests tells of the tests that a file lost: of all of them in one finding
// when none is left, of each otherwise.
func (r *run) removedTests(p *pair, gone []*testPair) {
	if len(gone) > 1 && len(gone) == len(p.old.Tests) && (p.new == nil || len(p.new.Tests) == 0) {
		names := make([]string, 0, len(gone))
		for _, t := range gone {
			names = append(names, t.old.Name)
		}
		r.add(Finding{
			File: p.old.Path, Line: gone[0].old.Line, Gone: true, Subject: p.old.Path, Confidence: 0.95,
			Message:  fmt.Sprintf("all %d tests of the file are gone", len(gone)),
			Evidence: strings.Join(names[:min(len(names), 8)], "; "),
		}, testFileRemoved)
		return
	}
	for _, t := range gone {
		if t.old.Silent {
			r.explainedRemoval(t, "a test is gone that asserted nothing")
			continue
		}
		id := testRemoved
		if becameComment(p, t.old) {
			id = testCommented
		}
		r.add(Finding{File: p.old.Path, Line: t.old.Line, Gone: true, Subject: t.old.Name, Evidence: t.old.Name,
			Confidence: 0.95}, id)
	}
}

// becameComment tells whether the name of a test stands in a comment now, as it did
// not before.
func becameComment(p *pair, t *syntax.Test) bool {
	return p.new != nil && p.new.Notes != "" && strings.Contains(p.new.Notes, t.Leaf) &&
		!strings.Contains(p.old.Notes, t.Leaf)
}

// declaredIn tells whether comments have a name as the declaration of a test has it:
// quoted, or before parentheses.
func declaredIn(notes, name string) bool {
	for _, form := range []string{"'" + name + "'", `"` + name + `"`, "`" + name + "`", name + "(", name + " ("} {
		if strings.Contains(notes, form) {
			return true
		}
	}
	return false
}

// fewerRounds tells of a test that tries next to nothing of what it tried.
func (r *run) fewerRounds(t *testPair) {
	for i := range t.old.Rounds {
		was := &t.old.Rounds[i]
		for j := range t.new.Rounds {
			now := &t.new.Rounds[j]
			if was.Key == now.Key && was.N >= manyRounds && (now.N <= fewRounds || now.N*muchLess <= was.N) {
				r.add(Finding{File: t.to.new.Path, Line: now.Line, Subject: t.new.Name, Evidence: was.S + " became " + now.S,
					Confidence: 0.9, Message: fmt.Sprintf("what a test tries %d times it tries %d times now", was.N, now.N)},
					caseRemoved)
				return
			}
		}
	}
}

// narrowedCases tells of a table whose rows do not all come to the test any more.
func (r *run) narrowedCases(t *testPair) {
	if n := syntax.NarrowedSince(t.old, t.new); n != nil {
		r.add(Finding{File: t.to.new.Path, Line: n.Line, Subject: t.new.Name, Evidence: n.S, Confidence: 0.9,
			Message: "rows of a test's table are left out on their way"}, caseRemoved)
	}
}

// manyRounds are enough that fewRounds are next to nothing, and so is a muchLess-th.
const (
	manyRounds = 20
	fewRounds  = 2
	muchLess   = 50
)

// lostCases tells of rows that a test's table had, when it has fewer now and what
// they say is nowhere among what was added to tests.
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
	if len(t.new.Cases) == 0 && multiset.Containment(t.old.Telling, t.new.All) > 0.7 {
		return // the table is written in another way
	}
	lost := r.lostRows(t, now)
	if most <= 0 {
		lost = slices.DeleteFunc(lost, func(c *syntax.Case) bool { return len(c.All) < telling || r.likeAny(c, t.new.Cases) })
	}
	if len(lost) == 0 {
		return
	}
	f := Finding{File: t.from.old.Path, Line: lost[0].Line, Gone: true, Subject: t.old.Name, Evidence: lost[0].S,
		Confidence: 0.95}
	if len(lost) > 1 && len(lost) == len(t.old.Cases) { // another table, or none: the test was rewritten
		f.Confidence, f.Message = 0.6, "all cases of a test's table are gone"
		r.add(f, assertionLost)
		return
	}
	if !slices.ContainsFunc(lost, func(c *syntax.Case) bool { return !r.usesVanished(t, c.All) }) {
		f.Confidence, f.Message = 0.6, "cases of a test's table are gone together with a name of the code that they used"
		r.add(f, testExplained)
		return
	}
	if most <= 0 {
		f.Confidence, f.Message = 0.85, "a case of a test's table stands no more, and another one in its place"
		r.add(f, assertionLost)
		return
	}
	lost = lost[:min(len(lost), most)]
	if len(lost) > 1 {
		f.Message = fmt.Sprintf("%d cases of a test's table are gone", len(lost))
	}
	r.add(f, caseRemoved)
}

// telling is how many tokens a row has at least that is told from others.
const telling = 3

// likeAny tells whether one of the rows is much like a row: it may be that one with
// other values.
func (r *run) likeAny(c *syntax.Case, rows []syntax.Case) bool {
	for i := range rows[:min(len(rows), maxOthers)] {
		if multiset.Jaccard(c.All, rows[i].All) > unlike {
			return true
		}
	}
	return len(rows) > maxOthers
}

// unlike is how much of two rows is the same at most when one has nothing to do with
// the other.
const unlike = 0.25

// casesOff tells of rows that say now that they do not run, or fail, and did not.
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
				r.add(Finding{File: t.to.new.Path, Line: c.Line, Subject: t.new.Name, Evidence: c.S, Confidence: 0.9,
					Message: "a case of a test's table is skipped"}, skipAdded)
				break
			}
		}
	}
}

// lostRows are the rows that are gone: not there as they were (now counts the rows
// of today by their key), not edited, not moved to another test, and not about what
// is gone itself.
func (r *run) lostRows(t *testPair, now map[uint64]int) []*syntax.Case {
	more, gone := multiset.Difference(t.new.All, t.old.All), multiset.Difference(t.old.All, t.new.All)
	var missing []*syntax.Case
	for i := range t.old.Cases {
		c := &t.old.Cases[i]
		if now[c.Key]--; now[c.Key] >= 0 {
			continue
		}
		kept := len(c.Literals) > 0 && multiset.Overlap(c.Literals, gone) == 0 // its values stand as often as before
		if !kept && multiset.Containment(c.All, more) < 0.8 && !r.rowMoved(t.from, c) && !r.namesRemoved(t.from, c.All) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var fresh []*syntax.Case // what was edited
	for i := range t.new.Cases {
		if c := &t.new.Cases[i]; now[c.Key] > 0 {
			now[c.Key]--
			fresh = append(fresh, c)
		}
	}
	compared := 0
	seen := make(map[uint64]int)
	for _, cases := range [][]syntax.Case{t.old.Cases, t.new.Cases} {
		for i := range cases {
			seen[cases[i].First]++
		}
	}
	all := slices.Clone(fresh)
	sameInput := func(c *syntax.Case) bool {
		return c.First != 0 && seen[c.First] == 2 &&
			slices.ContainsFunc(all, func(f *syntax.Case) bool { return c.First == f.First })
	}
	missing = slices.DeleteFunc(missing, func(c *syntax.Case) bool {
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
	if len(missing) == len(t.old.Cases) { // another table
		return missing
	}
	return slices.DeleteFunc(missing, sameInput) // with another result
}

// rowMoved tells whether what a row says stands in what was added to tests: nearly
// all of it, or all of its values.
func (r *run) rowMoved(p *pair, c *syntax.Case) bool {
	tests := r.of(p).tests
	all := multiset.Containment(c.All, tests)
	if len(c.All) > 1 && all >= 0.9 {
		return true
	}
	values := len(c.Literals)
	return values > 0 && multiset.Containment(c.Literals, tests) == 1 && (values > 1 || all >= 0.6)
}

// namesRemoved tells whether tokens name something that the change removed from
// production code.
func (r *run) namesRemoved(p *pair, b multiset.Hashes) bool {
	if len(r.of(p).removed) == 0 {
		return false
	}
	for _, h := range b {
		if _, ok := r.of(p).removed[h]; ok {
			return true
		}
	}
	return false
}

// unreadable tells of a file whose tests cannot be seen any more. Conflict markers
// are told only: both sides are still there.
func (r *run) unreadable(p *pair) {
	if p.old == nil || len(p.old.Tests) == 0 || p.newWhy == "" || p.newWhy == whyConflict {
		return
	}
	r.add(Finding{
		File: p.path, Subject: p.path, Confidence: 0.9, Evidence: p.newWhy,
		Message: fmt.Sprintf("the file had %s and cannot be analysed any more: %s", counted(len(p.old.Tests), "test"),
			p.newWhy),
	}, testsUnreadable)
}
