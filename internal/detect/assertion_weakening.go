package detect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// assertionWeakening compares the assertions of matched tests.
func (r *run) assertionWeakening() {
	used := make(map[*syntax.Test]bool)
	for i := range r.tests {
		t := &r.tests[i]
		if t.new == nil {
			continue
		}
		used[t.new] = true
		if t.how != howMerged {
			r.compareAsserts(t)
		}
		r.mocked(t)
		if t.new.Caught > t.old.Caught {
			r.add(t.to.inNew(t.new.Line, t.new.Name, t.new.Name, 0.9, ""), assertionCaught)
		}
	}
	for _, p := range r.pairs {
		r.helpers(p)
		for _, t := range p.after().Tests {
			if !used[t] {
				r.trivial(p, t, nil, 0.7)
			}
		}
	}
}

// helpers compares the assertions of functions of test files that tests may call.
func (r *run) helpers(p *pair) {
	now, several := make(map[string]*syntax.Test), make(map[string]bool)
	for _, f := range p.after().Funcs {
		if f.Test && len(p.before().Helpers) > 0 { // it may assert nothing any more
			several[f.Name] = several[f.Name] || now[f.Name] != nil
			now[f.Name] = &syntax.Test{Name: f.Name, Leaf: f.Leaf, Line: f.Line, All: f.All, Names: f.Calls}
		}
	}
	for _, t := range slices.Concat(p.after().Tests, p.after().Helpers) {
		now[t.Name] = t
	}
	for _, was := range p.before().Helpers {
		if t := now[was.Name]; t != nil && !several[was.Name] {
			r.compareAsserts(&testPair{from: p, old: was, to: p, new: t, how: howSame})
		}
	}
}

// compareAsserts compares the assertions of the old and the new version of a test.
func (r *run) compareAsserts(t *testPair) {
	if t.old.BodyHash == t.new.BodyHash {
		return
	}
	if t.new.Skip != syntax.Always || t.old.Skip == syntax.Always { // reported as a skip
		r.trivial(t.to, t.new, t.old, 0.95)
	}
	if len(t.old.Asserts) == 0 {
		return
	}
	r.conditioned(t)
	lost, gained := differ(t.old.Asserts, t.new.Asserts)
	lost, gained = withoutSame(lost, t.new.Asserts), withoutSame(gained, t.old.Asserts)
	if len(lost) == 0 {
		return
	}
	if len(t.new.Asserts) == 0 && t.new.Skip != syntax.Always {
		if multiset.Containment(t.old.Literals, r.of(t.from).tests) >= 0.9 && len(t.old.Literals) > 0 && r.callsNew(t) {
			return // moved to a function that the test now calls
		}
		r.add(t.to.inNew(t.new.Line, t.new.Name, lost[0].S, 0.95,
			"test lost all of its "+human.Count(len(t.old.Asserts), "assertion")), assertionsGone)
		return
	}
	r.pairAsserts(t, lost, gained)
}

// conditioned reports an assertion that ran unconditionally and now runs under a
// condition.
func (r *run) conditioned(t *testPair) {
	free := make(map[uint64]int)
	for i := range t.old.Asserts {
		if t.old.Asserts[i].Under == nil {
			free[t.old.Asserts[i].Key]++
		}
	}
	for i := range t.new.Asserts {
		if t.new.Asserts[i].Under == nil {
			free[t.new.Asserts[i].Key]--
		}
	}
	for i := range t.new.Asserts {
		if a := &t.new.Asserts[i]; a.Under != nil && free[a.Key] > 0 && a.Strength != syntax.Trivial {
			_, gained := differ(t.old.Asserts, t.new.Asserts)
			r.underNow(t, a, slices.ContainsFunc(gained, assertsFreely))
			return
		}
	}
}

// assertsFreely reports whether an assertion is meaningful and unconditional.
func assertsFreely(a *syntax.Assertion) bool { return a.Under == nil && !saysNothing(a) }

// underNow reports an assertion that now runs under a condition. It is not reported if
// the condition depends on the platform, existed before, or the test has more cases now,
// which may differ. more is set when the test gained another unconditional assertion.
func (r *run) underNow(t *testPair, a *syntax.Assertion, more bool) {
	was := func(o syntax.Assertion) bool { return o.Under != nil && o.Under.S == a.Under.S }
	// in a helper the caller decides on the case; an error check only had to pass, and what always fails, not to run
	if slices.Contains(t.to.new.Helpers, t.new) || strings.Contains(a.S, "err != nil") || alwaysFails().MatchString(a.S) {
		return
	}
	if t.new.Skip != t.old.Skip || len(t.new.Cases) > len(t.old.Cases) || slices.ContainsFunc(t.old.Asserts, was) ||
		r.explains(t.to, t.new, a.Under) {
		return
	}
	f := t.to.inNew(a.Line, t.new.Name, a.Under.S+": "+a.S, 0.85,
		"assertion now runs only under a condition")
	if more {
		f.Confidence = 0.6
	}
	r.add(f, assertionCaught)
}

// alwaysFails matches an assertion that fails wherever it is reached.
var alwaysFails = lazyregexp.New(`^(?:\w+\.)?(?i:fail|unreachable|panic)!?\(`)

// callsNew reports whether a test calls something that it did not call before.
func (r *run) callsNew(t *testPair) bool {
	tests := r.of(t.from).tests
	return slices.ContainsFunc(t.new.Names, func(h uint32) bool { return !t.old.Names.Has(h) && tests.Has(h) })
}

// differ returns what each of two lists of assertions has more than the other.
func differ(old, now []syntax.Assertion) (lost, gained []*syntax.Assertion) {
	return more(old, now), more(now, old)
}

// more returns the assertions of a that b has less often.
func more(a, b []syntax.Assertion) []*syntax.Assertion {
	var all []*syntax.Assertion
	count := make(map[uint64]int)
	for i := range b {
		count[b[i].Key]++
	}
	for i := range a {
		if count[a[i].Key]--; count[a[i].Key] < 0 {
			all = append(all, &a[i])
		}
	}
	return all
}

// equality matches an assertion that two expressions without commas are equal, or not, in one of
// the forms of JUnit and its kind.
var equality = lazyregexp.New(`(?i)\bassert(?:\.?(true|false)\((?:[^,()]*,)?\s*([^,()]+)\.equals\(([^,()]+)\)\)|` +
	`\.?(not|are|arenot)?equals?\(\s*([^,()]+),\s*([^,()]+)\))`)

// claim returns what an assertion of equality says, in one form; empty for others.
func claim(a *syntax.Assertion) string {
	m := equality().FindStringSubmatch(a.S)
	if m == nil {
		return ""
	}
	holds := strings.EqualFold(m[1], "true") || m[1] == "" && !strings.Contains(strings.ToLower(m[4]), "not")
	both := []string{strings.TrimSpace(m[2] + m[5]), strings.TrimSpace(m[3] + m[6])}
	slices.Sort(both)
	return fmt.Sprint(holds, both)
}

// withoutSame leaves out the assertions of a list that others say in another form.
func withoutSame(list []*syntax.Assertion, others []syntax.Assertion) []*syntax.Assertion {
	said := make(map[string]bool, len(others))
	for i := range others {
		said[claim(&others[i])] = true
	}
	return slices.DeleteFunc(list, func(a *syntax.Assertion) bool {
		c := claim(a)
		return c != "" && said[c]
	})
}

// pairAsserts finds the replacement of each lost assertion: the gained one that shares
// most of its distinctive tokens. An assertion whose content appears elsewhere in the
// test, or in code added to tests, counts as rewritten.
func (r *run) pairAsserts(t *testPair, lost, gained []*syntax.Assertion) {
	took := make([]*syntax.Assertion, len(gained))
	var missing []*syntax.Assertion
	for n, was := range lost {
		best, most := -1, 0.34
		for i := max(0, n-maxApart); i < min(len(gained), n+maxApart); i++ {
			if took[i] != nil {
				continue
			}
			if s := likeness(was, gained[i]); s > most {
				best, most = i, s
			}
		}
		if best < 0 {
			missing = append(missing, was)
			continue
		}
		took[best] = was
		r.compareOne(t, was, gained[best])
	}
	more := multiset.Difference(t.new.All, t.old.All)
	gone := multiset.Difference(t.old.All, t.new.All)
	tests := r.of(t.from).tests
	split := len(gone) >= leastSplit && multiset.Containment(gone, tests) >= 0.8
	empty := hollow(t, lost, gained)
	now := newlyAsserted(t, gained, took)
	for _, g := range gained {
		switch {
		case saysNothing(g):
			more = multiset.Difference(more, g.Words)
		case g.Under == nil: // it has the values, perhaps in another form
			more = multiset.Sum(more, g.Literals)
		}
	}
	sent := t.new.Sent - t.old.Sent
	for _, was := range missing {
		if len(was.Call) > 0 && sent > 0 { // it is checked where the error may end the test
			sent--
			continue
		}
		if split && multiset.Containment(was.Words, tests) >= 0.5 {
			continue // moved with the code around it
		}
		if !r.missingAssert(t, was, more, now) {
			continue
		}
		f := t.from.inOld(was.Line, t.old.Name, was.S, 0.6, "")
		switch {
		case empty && forgets(t, was):
			f.Confidence, f.Message = 0.85, "assertion removed, and the remaining ones check less"
		case was.Under == nil && len(gained) == len(t.new.Asserts) && len(gained) > 0 &&
			!slices.ContainsFunc(gained,
				func(g *syntax.Assertion) bool { return g.Under == nil || r.explains(t.to, t.new, g.Under) }):
			f.Confidence, f.Message = 0.85, "assertion removed, and the remaining ones run only under a condition"
		case len(gained) == 0 && !was.Weak() && !expects(t.new):
			f.Confidence, f.Message = 0.85, "assertion removed, and the remaining ones have no expected value"
		}
		r.lostAssert(t, f, more, now, was.Helper)
	}
}

// likeness returns the similarity of two assertions; for a new one that checks nothing,
// the share of it that comes from the old one.
func likeness(was, now *syntax.Assertion) float64 {
	if (now.Bare || now.Self) && !was.Bare && !was.Self && len(now.Words) > 0 {
		return multiset.Containment(now.Words, was.Words)
	}
	return (multiset.Jaccard(compared(was), compared(now)) + 0.5*multiset.Jaccard(was.Subject(), now.Subject())) / 1.5
}

// compared returns the distinctive tokens of an assertion without its matcher, which may
// have another name: toBeCalled, toHaveBeenCalled.
func compared(a *syntax.Assertion) multiset.Hashes {
	return multiset.Difference(a.Words, multiset.Hashes{syntax.Hash(a.Name)})
}

// saysNothing reports whether an assertion holds whatever the code does.
func saysNothing(a *syntax.Assertion) bool {
	return a.Strength == syntax.Trivial || a.Bare || a.Self || a.Echo
}

// newlyAsserted counts the gained assertions that check something and are not just a part
// of the assertion that they replaced.
func newlyAsserted(t *testPair, gained, took []*syntax.Assertion) int {
	n := 0
	for i, g := range gained {
		if !saysNothing(g) && (took[i] == nil || !partOf(t, g, took[i])) {
			n++
		}
	}
	return n
}

// partOf reports whether an assertion contains only a part of another one whose rest was
// removed from the test.
func partOf(t *testPair, now, was *syntax.Assertion) bool {
	rest := multiset.Difference(was.Words, now.Words)
	if now.Strength > was.Strength || len(rest) == 0 || multiset.Containment(rest, t.new.All) == 1 {
		return false
	}
	return onlyWordsOf(now, was)
}

// onlyWordsOf reports whether all names and numbers of an assertion are in another one.
func onlyWordsOf(now, was *syntax.Assertion) bool {
	had := codeWords(was.S)
	return !slices.ContainsFunc(codeWords(now.S), func(w string) bool { return !slices.Contains(had, w) })
}

// codeWords returns the names and numbers in a code fragment.
func codeWords(code string) []string {
	return strings.FieldsFunc(code, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// hollow reports whether all assertions of a test were replaced by ones that only check
// for presence.
func hollow(t *testPair, lost, gained []*syntax.Assertion) bool {
	if len(lost) < len(t.old.Asserts) || len(gained) < len(t.new.Asserts) || len(gained) == 0 {
		return false
	}
	return !slices.ContainsFunc(gained, saysWhat) && slices.ContainsFunc(lost, saysWhat)
}

// saysWhat reports whether an assertion checks an expected value, not just presence.
func saysWhat(a *syntax.Assertion) bool { return !a.Kind && !a.Weak() || a.Expects() }

// expects reports whether any assertion of a test checks an expected value.
func expects(t *syntax.Test) bool {
	return slices.ContainsFunc(t.Asserts, func(a syntax.Assertion) bool { return saysWhat(&a) })
}

// forgets reports whether a test no longer names the subject of one of its assertions.
func forgets(t *testPair, was *syntax.Assertion) bool {
	return slices.ContainsFunc(was.Subject(), func(h uint32) bool { return t.old.Names.Has(h) && !t.new.Names.Has(h) })
}

// leastSplit is the minimum number of tokens that moved to other tests for a test to
// count as split.
const leastSplit = 12

// maxApart is the maximum distance in the lists of an assertion and its replacement.
const maxApart = 100

// compareOne compares an assertion with its replacement.
func (r *run) compareOne(t *testPair, was, now *syntax.Assertion) {
	report := func(id string, confidence float64, message string) {
		r.add(t.to.inNew(now.Line, t.new.Name, was.S+" became "+now.S, confidence, message), id)
	}
	switch {
	case now.Strength == syntax.Trivial: // reported by trivial
	case now.Bare && !was.Bare:
		report(assertionTrivial, 0.95, "expected value removed from an assertion")
	case now.Helper && !was.Helper && strings.Contains(was.S, now.S):
		report(assertionTrivial, 0.95, "assertion replaced by the value that it checked")
	case now.Self && !was.Self:
		report(assertionTrivial, 0.95, "value compared with itself")
		if len(was.Literals) > 0 {
			report(expectedComputed, 0.95, "value compared with itself")
		}
	case now.Echo && !was.Echo && !was.Self:
		report(assertionTrivial, 0.9, "expected value computed by the code under test")

	case now.Strength < was.Strength:
		report(assertionWeaker, 0.7, fmt.Sprintf("%s became %s, which accepts more", was.Name, now.Name))
	case multiset.Containment(was.Literals, now.Literals) == 1 || multiset.Containment(was.Subject(), now.Subject()) < 1:
	case now.Strength == was.Strength && multiset.Containment(now.Literals, was.Literals) < 1:
		report(expectedChanged, 0.5, "")
	case multiset.Containment(now.Literals, was.Literals) == 1:
		report(expectedComputed, 0.7, "")
	}
}

// missingAssert reports whether an assertion without a replacement is lost: its subject
// still exists, and it appears nowhere else.
func (r *run) missingAssert(t *testPair, was *syntax.Assertion, more multiset.Hashes, gained int) bool {
	if was.Strength == syntax.Trivial || len(was.Words) == 0 && gained > 0 {
		return false
	}
	if was.Next != 0 && slices.ContainsFunc(t.new.Asserts, func(a syntax.Assertion) bool { return a.Key == was.Next }) {
		return false // the next assertion implies this one
	}
	if r.namesRemoved(t.from, was.Words) || multiset.Containment(was.Call, t.new.All) < 1 {
		return false // its subject was removed
	}
	if len(was.Words) > 0 && multiset.Containment(was.Words, more) >= 0.8 || len(was.Literals) > 0 &&
		multiset.Containment(was.Literals, more) == 1 {
		return false // rewritten in this test
	}
	if len(was.Words) > 2 && r.of(t.from).claims[was.Key] {
		return false // moved to an added test
	}
	// Or moved to another test or function.
	return len(was.Literals) == 0 && len(was.Words) < 2 ||
		multiset.Containment(was.Words, r.of(t.from).tests) < 0.9
}

// lostAssert reports a lost assertion with the confidence of f, or one that follows from
// the rest of the test.
func (r *run) lostAssert(t *testPair, f Finding, more multiset.Hashes, gained int, helper bool) {
	fewer := len(t.new.Asserts) < len(t.old.Asserts)
	switch {
	case helper:
		f.Confidence = 0.7
	case f.Confidence >= ActConfidence:

	case !fewer && gained > 0:
		// As many as before, about other subjects: only listed.
		f.Confidence = 0.5
	case fewer && gained == 0 && (len(more) <= len(t.new.All)/50 || nothingNew(t)):
		f.Confidence = 0.95
		r.add(f, assertionRemoved)
		return
	case fewer && gained == 0 && multiset.Jaccard(t.old.All, t.new.All) > 0.6:
		f.Confidence = 0.85
	}
	r.add(f, assertionLost)
}

// nothingNew reports whether a test has no name or literal that it did not have before.
func nothingNew(t *testPair) bool {
	had := multiset.Sum(t.old.Names, t.old.Literals)
	for _, all := range []multiset.Hashes{t.new.Names, t.new.Literals} {
		if slices.ContainsFunc(all, func(h uint32) bool { return !had.Has(h) && h != syntax.Hash("_") }) {
			return false
		}
	}
	return true
}

// trivial reports assertions that cannot fail; old is nil for a new test.
func (r *run) trivial(p *pair, t, old *syntax.Test, confidence float64) {
	had := 0
	if old != nil {
		had = old.Strengths()[syntax.Trivial]
	}
	for i := range t.Asserts {
		a := &t.Asserts[i]
		if a.Strength != syntax.Trivial {
			continue
		}
		if had--; had >= 0 || old != nil && len(withoutSame([]*syntax.Assertion{a}, old.Asserts)) == 0 {
			continue
		}
		f := p.inNew(a.Line, t.Name, a.S, confidence, "")
		if a.Marker || old != nil && r.endsForMachine(p, t, a.Under) {
			f.Confidence = min(confidence, 0.6)
		}
		r.add(f, assertionTrivial)
	}
}

// endsForMachine reports whether a test that passes at once does so under a condition of
// the platform.
func (r *run) endsForMachine(p *pair, t *syntax.Test, when *syntax.When) bool {
	if when == nil {
		return false
	}
	w := *when
	w.RunsWhen = !w.RunsWhen
	return r.explains(p, t, &w)
}

// mocked reports a test that newly replaces what it calls by a mock.
func (r *run) mocked(t *testPair) {
	for _, m := range t.new.Mocks {
		if slices.Contains(t.old.Mocks, m) || len(m) < 3 || !t.old.Names.Has(syntax.Hash(m)) {
			continue
		}
		r.add(t.to.inNew(t.new.Line, t.new.Name, m, 0.7,
			fmt.Sprintf("%q, which the test calls, replaced by a mock", m)), subjectMocked)
	}
}
