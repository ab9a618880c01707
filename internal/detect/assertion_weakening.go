package detect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// assertionWeakening compares what matched tests assert.
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
		if t.new.Maybe > t.old.Maybe && t.old.BodyHash != t.new.BodyHash {
			r.onlyCaught(t)
		}
		if t.new.Caught > t.old.Caught {
			r.add(Finding{File: t.to.new.Path, Line: t.new.Line, Subject: t.new.Name, Evidence: t.new.Name, Confidence: 0.9},
				assertionCaught)
		}
	}
	for _, p := range r.pairs {
		if p.new == nil {
			continue
		}
		r.helpers(p)
		for _, t := range p.new.Tests {
			if !used[t] {
				r.trivial(p, t, nil, 0.7)
			}
		}
	}
}

// helpers compares what functions assert that tests call.
func (r *run) helpers(p *pair) {
	if p.old == nil {
		return
	}
	now := make(map[string]*syntax.Test)
	several := make(map[string]bool) // nobody knows which is which
	for _, t := range slices.Concat(p.new.Tests, p.new.Helpers) {
		several[t.Name] = several[t.Name] || now[t.Name] != nil
		now[t.Name] = t
	}
	for _, was := range p.old.Helpers {
		switch t := now[was.Name]; {
		case several[was.Name] || len(was.Asserts) == 0:
		case t != nil:
			r.compareAsserts(&testPair{from: p, old: was, to: p, new: t, how: howSame})
		default:
			r.hollowHelper(p, was)
		}
	}
}

// hollowHelper tells of a function that asserted for tests, and from which that was
// only taken away.
func (r *run) hollowHelper(p *pair, was *syntax.Test) {
	if len(was.Asserts) == 0 { // only tests inside of it assert
		return
	}
	before := multiset.Sum(was.All, multiset.Hashes{syntax.Hash(was.Leaf)})
	for _, f := range p.new.Funcs {
		if f.Name != was.Name || !f.Test || len(multiset.Difference(f.All, before)) > 0 {
			continue
		}
		r.add(Finding{
			File: p.new.Path, Line: f.Line, Subject: f.Name, Evidence: was.Asserts[0].S, Confidence: 0.95,
			Message: fmt.Sprintf("the function had %d assertions and has none", len(was.Asserts)),
		}, assertionsGone)
		return
	}
}

// compareAsserts compares the assertions of a test as it was and as it is.
func (r *run) compareAsserts(t *testPair) {
	if t.old.BodyHash == t.new.BodyHash {
		return
	}
	if t.new.Skip != syntax.Always || t.old.Skip == syntax.Always { // what is skipped is told of by that
		r.trivial(t.to, t.new, t.old, 0.95)
	}
	if len(t.old.Asserts) == 0 {
		return
	}
	r.conditioned(t)
	lost, gained := differ(t.old.Asserts, t.new.Asserts)
	if len(lost) == 0 {
		return
	}
	if len(t.new.Asserts) == 0 && t.new.Skip != syntax.Always {
		if multiset.Containment(t.old.Literals, r.of(t.from).tests) >= 0.9 && len(t.old.Literals) > 0 && r.callsNew(t) {
			return // they stand in a function that is called now
		}
		if len(t.new.Cases) > 0 && multiset.Containment(t.old.Literals, t.new.Literals) >= 0.9 &&
			(len(t.new.Cases) > len(t.old.Cases) || r.handsCases(t)) {
			return
		}
		r.add(Finding{
			File: t.to.new.Path, Line: t.new.Line, Subject: t.new.Name, Evidence: lost[0].S, Confidence: 0.95,
			Message: fmt.Sprintf("the test had %s and has none", counted(len(t.old.Asserts), "assertion")),
		}, assertionsGone)
		return
	}
	r.pairAsserts(t, lost, gained)
}

// conditioned tells of an assertion that stood free and stands under a condition now.
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

// assertsFreely tells of an assertion that says something and stands under no condition.
func assertsFreely(a *syntax.Assertion) bool { return a.Under == nil && !saysNothing(a) }

// underNow tells of an assertion under a condition, unless that is one of the machine,
// was there before, or the test has more cases now, which may differ; more is set when
// it asserts something else besides.
func (r *run) underNow(t *testPair, a *syntax.Assertion, more bool) {
	was := func(o syntax.Assertion) bool { return o.Under != nil && o.Under.S == a.Under.S }
	// who calls it says which case it is; what only had to work
	if slices.Contains(t.to.new.Helpers, t.new) || strings.Contains(a.S, "err != nil") {
		return
	}
	if t.new.Skip != t.old.Skip || len(t.new.Cases) > len(t.old.Cases) || slices.ContainsFunc(t.old.Asserts, was) ||
		r.explains(t.to, t.new, a.Under) {
		return
	}
	f := Finding{File: t.to.new.Path, Line: a.Line, Subject: t.new.Name, Evidence: a.Under.S + ": " + a.S,
		Confidence: 0.85, Message: "an assertion only runs under a condition now, and nothing fails where that does not hold"}
	if more {
		f.Confidence = 0.6
	}
	r.add(f, assertionCaught)
}

// handsCases tells whether a test gives its cases to something that it did not use,
// and does not only print them.
func (r *run) handsCases(t *testPair) bool {
	return t.new.Told <= t.old.Told && slices.ContainsFunc(t.new.Names, func(h uint32) bool { return !t.old.Names.Has(h) })
}

// callsNew tells whether a test calls something it did not.
func (r *run) callsNew(t *testPair) bool {
	for _, h := range t.new.Names {
		if !t.old.Names.Has(h) && r.of(t.from).tests.Has(h) {
			return true
		}
	}
	return false
}

// differ is what each of two lists of assertions has more than the other.
func differ(old, now []syntax.Assertion) (lost, gained []*syntax.Assertion) {
	count := make(map[uint64]int)
	for i := range now {
		count[now[i].Key]++
	}
	for i := range old {
		if count[old[i].Key]--; count[old[i].Key] < 0 {
			lost = append(lost, &old[i])
		}
	}
	clear(count)
	for i := range old {
		count[old[i].Key]++
	}
	for i := range now {
		if count[now[i].Key]--; count[now[i].Key] < 0 {
			gained = append(gained, &now[i])
		}
	}
	return lost, gained
}

// pairAsserts finds for each lost assertion the one that took its place: the
// gained one that shares most of its telling tokens. One whose content is
// somewhere in the test, or in what was added to tests, was rewritten.
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
		if now := gained[best]; was.Under == nil && now.Under != nil {
			r.underNow(t, now, len(gained) > 1 && slices.ContainsFunc(gained, assertsFreely))
		}
		r.compareOne(t, was, gained[best])
	}
	more := multiset.Difference(t.new.All, t.old.All)
	gone := multiset.Difference(t.old.All, t.new.All)
	tests := r.of(t.from).tests
	split := len(gone) >= leastSplit && multiset.Containment(gone, tests) >= 0.8
	empty := hollow(t, lost, gained)
	now := newlyAsserted(t, gained, took)
	for i, g := range gained {
		if !saysNothing(g) {
			continue
		}
		more = multiset.Difference(more, g.Words)
		if took[i] == nil && g.Strength != syntax.Trivial {
			r.add(Finding{File: t.to.new.Path, Line: g.Line, Subject: t.new.Name, Evidence: g.S, Confidence: 0.9},
				assertionTrivial)
		}
	}
	sent := t.new.Sent - t.old.Sent
	for _, was := range missing {
		if len(was.Call) > 0 && sent > 0 { // where it may end the test
			sent--
			continue
		}
		if split && multiset.Containment(was.Words, tests) >= 0.5 {
			continue // with what stood around it
		}
		if !r.missingAssert(t, was, more, now) {
			continue
		}
		f := Finding{File: t.from.old.Path, Line: was.Line, Gone: true, Subject: t.old.Name, Evidence: was.S, Confidence: 0.6}
		switch {
		case empty && forgets(t, was):
			f.Confidence, f.Message = 0.85, "the test asserts less, and nothing of what it did"
		case was.Under == nil && len(gained) == len(t.new.Asserts) && len(gained) > 0 &&
			!slices.ContainsFunc(gained,
				func(g *syntax.Assertion) bool { return g.Under == nil || r.explains(t.to, t.new, g.Under) }):
			f.Confidence, f.Message = 0.85, "what the test asserts now only runs under a condition"
		case len(gained) == 0 && !was.Weak() && !expects(t.new):
			f.Confidence, f.Message = 0.85, "what is left of the test's assertions says nothing of what is expected"
		}
		r.lostAssert(t, f, more, now)
	}
}

// likeness is how much of two assertions is the same; of one that says nothing, how
// much of it is of the other one.
func likeness(was, now *syntax.Assertion) float64 {
	if (now.Bare || now.Self) && !was.Bare && !was.Self && len(now.Words) > 0 {
		return multiset.Containment(now.Words, was.Words)
	}
	return (multiset.Jaccard(was.Words, now.Words) + 0.5*multiset.Jaccard(was.Subject(), now.Subject())) / 1.5
}

// saysNothing tells of an assertion that holds whatever the code does.
func saysNothing(a *syntax.Assertion) bool {
	return a.Strength == syntax.Trivial || a.Bare || a.Self || a.Echo
}

// newlyAsserted counts gained assertions that say something, and something else than
// a part of the one whose place they took.
func newlyAsserted(t *testPair, gained, took []*syntax.Assertion) int {
	n := 0
	for i, g := range gained {
		if !saysNothing(g) && (took[i] == nil || !partOf(t, g, took[i])) {
			n++
		}
	}
	return n
}

// partOf tells whether an assertion has only what another one had, and the rest of
// that one is gone from the test.
func partOf(t *testPair, now, was *syntax.Assertion) bool {
	rest := multiset.Difference(was.Words, now.Words)
	if now.Strength > was.Strength || len(rest) == 0 || multiset.Containment(rest, t.new.All) == 1 {
		return false
	}
	had := codeWords(was.S)
	return !slices.ContainsFunc(codeWords(now.S), func(w string) bool { return !slices.Contains(had, w) })
}

// codeWords are the names and numbers in a piece of code.
func codeWords(code string) []string {
	return strings.FieldsFunc(code, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// hollow tells of a test all of whose assertions were replaced by others that only
// ask whether something is there.
func hollow(t *testPair, lost, gained []*syntax.Assertion) bool {
	if len(lost) < len(t.old.Asserts) || len(gained) < len(t.new.Asserts) || len(gained) == 0 {
		return false
	}
	return !slices.ContainsFunc(gained, saysWhat) && slices.ContainsFunc(lost, saysWhat)
}

// saysWhat tells of an assertion that says what is expected, and not only that something
// is there.
func saysWhat(a *syntax.Assertion) bool { return !a.Kind && !a.Weak() || a.Expects() }

// expects tells whether any assertion of a test says what is expected.
func expects(t *syntax.Test) bool {
	return slices.ContainsFunc(t.Asserts, func(a syntax.Assertion) bool { return saysWhat(&a) })
}

// forgets tells whether a test does not name any more what one of its assertions
// was about.
func forgets(t *testPair, was *syntax.Assertion) bool {
	return slices.ContainsFunc(was.Subject(), func(h uint32) bool { return t.old.Names.Has(h) && !t.new.Names.Has(h) })
}

// leastSplit is how many tokens a test has to lose to another one to be taken for
// split.
const leastSplit = 12

// maxApart is how far apart in their lists an assertion and the one that took its
// place may stand.
const maxApart = 100

// compareOne compares an assertion with the one that took its place.
func (r *run) compareOne(t *testPair, was, now *syntax.Assertion) {
	f := Finding{File: t.to.new.Path, Line: now.Line, Subject: t.new.Name, Evidence: was.S + " became " + now.S,
		Confidence: 0.7}
	switch {
	case now.Strength == syntax.Trivial: // told by itself
	case now.Bare && !was.Bare:
		f.Confidence, f.Message = 0.95, "nothing is said any more of what is expected"
		r.add(f, assertionTrivial)
	case now.Helper && !was.Helper && strings.Contains(was.S, now.S):
		f.Confidence, f.Message = 0.95, "only what was asserted of is left of an assertion"
		r.add(f, assertionTrivial)
	case now.Self && !was.Self:
		f.Confidence, f.Message = 0.95, "what is tested is compared with itself"
		r.add(f, assertionTrivial)
		if len(was.Literals) > 0 {
			r.add(f, expectedComputed)
		}
	case now.Echo && !was.Echo && !was.Self:
		f.Confidence, f.Message = 0.9, "what is expected is computed by what is tested"
		r.add(f, assertionTrivial)
	case r.cutShort(t, was, now):
		f.Confidence, f.Message = 0.85, "a part of what was asserted is not asserted any more"
		r.add(f, assertionLost)
	case now.Strength < was.Strength:
		f.Message = fmt.Sprintf("%s became %s, which accepts more", was.Name, now.Name)
		r.add(f, assertionWeaker)
	case multiset.Containment(was.Literals, now.Literals) == 1 || multiset.Containment(was.Subject(), now.Subject()) < 1:
	case now.Strength == was.Strength && multiset.Containment(now.Literals, was.Literals) < 1:
		f.Confidence = 0.5
		r.add(f, expectedChanged)
	case multiset.Containment(now.Literals, was.Literals) == 1:
		r.add(f, expectedComputed)
	}
}

// cutShort tells whether an assertion is another one without some links of its chain,
// or without what was asked of an error, and that is nowhere else now.
func (r *run) cutShort(t *testPair, was, now *syntax.Assertion) bool {
	if !fewerLinks(was, now) && !lessOfError(was, now) {
		return false
	}
	rest := multiset.Difference(was.Words, now.Words)
	if len(rest) == 0 || r.namesRemoved(t.from, rest) {
		return false
	}
	var others multiset.Hashes
	_, gained := differ(t.old.Asserts, t.new.Asserts)
	for _, g := range gained {
		if g.Key != now.Key {
			others = multiset.Sum(others, g.Words)
		}
	}
	more := multiset.Difference(t.new.All, t.old.All)
	if said := multiset.Difference(was.Literals, now.Literals); len(said) > 0 &&
		multiset.Containment(said, others) >= 0.5 {
		return false // by itself now
	}
	return multiset.Containment(rest, others) < 0.5 && multiset.Containment(rest, more) < 0.5 &&
		multiset.Containment(rest, r.of(t.from).tests) < 0.9
}

// fewerLinks tells whether an assertion is nothing but a part of another one's chain,
// and what is gone said more than that something is there.
func fewerLinks(was, now *syntax.Assertion) bool {
	if len(now.Links) == 0 || len(now.Links) >= len(was.Links) {
		return false
	}
	n, slight, exact := 0, true, false
	for _, link := range was.Links {
		if n < len(now.Links) && now.Links[n].Key == link.Key {
			exact = exact || n > 0 && !link.Slight
			n++
			continue
		}
		slight = slight && link.Slight
	}
	if n < len(now.Links) || slight && exact {
		return false
	}
	had := codeWords(was.S)
	return !slices.ContainsFunc(codeWords(now.S), func(w string) bool { return !slices.Contains(had, w) })
}

// lessOfError tells whether an assertion that something fails asks for less of how.
func lessOfError(was, now *syntax.Assertion) bool {
	name := strings.ToLower(was.Name)
	if was.Name != now.Name || !strings.Contains(name, "raise") && !strings.Contains(name, "throw") &&
		!strings.Contains(name, "exception") {
		return false
	}
	return len(now.Words) < len(was.Words) && multiset.Containment(now.Words, was.Words) == 1 &&
		multiset.Containment(was.Literals, now.Literals) < 1
}

// missingAssert tells whether an assertion that nothing took the place of is lost:
// it was about what is still there, and is nowhere else.
func (r *run) missingAssert(t *testPair, was *syntax.Assertion, more multiset.Hashes, gained int) bool {
	if was.Strength == syntax.Trivial || len(was.Words) == 0 && gained > 0 {
		return false
	}
	if mock, _, ok := strings.Cut(was.S, "->expects("); ok && !t.new.All.Has(syntax.Hash(mock)) {
		return false // there is no such mock any more
	}
	if was.Next != 0 && slices.ContainsFunc(t.new.Asserts, func(a syntax.Assertion) bool { return a.Key == was.Next }) {
		return false // what stands after it holds no less
	}
	if r.namesRemoved(t.from, was.Words) || multiset.Containment(was.Call, t.new.All) < 1 {
		return false // it was about what is gone
	}
	if len(was.Words) > 0 && multiset.Containment(was.Words, more) >= 0.8 || len(was.Literals) > 0 &&
		multiset.Containment(was.Literals, more) == 1 {
		return false // written in another way, in this test
	}
	// Or moved into another one, or a function.
	return len(was.Literals) == 0 && (len(was.Words) < 2 || !r.callsNew(t)) ||
		multiset.Containment(was.Words, r.of(t.from).tests) < 0.9
}

// lostAssert tells of a lost assertion, as surely as f is or the rest of the test
// makes it.
func (r *run) lostAssert(t *testPair, f Finding, more multiset.Hashes, gained int) {
	fewer := len(t.new.Asserts) < len(t.old.Asserts)
	switch {
	case f.Confidence >= ActConfidence:
	case gained == 0 && t.new.Told > t.old.Told:
		f.Confidence, f.Message = 0.9, "the test tells what it asserted, and does not assert it any more"
	case voids(t, f.Evidence):
		f.Confidence, f.Message = 0.9, "what the test asserted something of is given to nobody"
	case !fewer && gained > 0:
		// As many as before, about other things: told, not judged.
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

// nothingNew tells whether a test says nothing that it did not say before.
func nothingNew(t *testPair) bool {
	had := multiset.Sum(t.old.Names, t.old.Literals)
	for _, all := range []multiset.Hashes{t.new.Names, t.new.Literals} {
		if slices.ContainsFunc(all, func(h uint32) bool { return !had.Has(h) && h != syntax.Hash("_") }) {
			return false
		}
	}
	return true
}

// voids tells whether a test gives to nobody what an assertion of it was about.
func voids(t *testPair, asserted string) bool {
	return len(t.new.Voided) > len(t.old.Voided) && slices.ContainsFunc(t.new.Voided, func(name string) bool {
		return !slices.Contains(t.old.Voided, name) && slices.Contains(codeWords(asserted), name)
	})
}

// onlyCaught tells of a test whose assertions moved into a handler that only runs
// when something fails: without a failure nothing is asserted.
func (r *run) onlyCaught(t *testPair) {
	f := Finding{File: t.to.new.Path, Line: t.new.Line, Subject: t.new.Name, Evidence: t.new.Name, Confidence: 0.7,
		Message: "assertions only run when something fails, and nothing says that it has to"}
	lost, _ := differ(t.old.Asserts, t.new.Asserts)
	if slices.ContainsFunc(lost, (*syntax.Assertion).Expects) && len(t.new.Asserts) <= len(t.old.Asserts) {
		f.Confidence = 0.85
	}
	r.add(f, assertionCaught)
}

// trivial tells of assertions that cannot fail; old is nil for a new test.
func (r *run) trivial(p *pair, t, old *syntax.Test, confidence float64) {
	had := 0
	if old != nil {
		for i := range old.Asserts {
			if old.Asserts[i].Strength == syntax.Trivial {
				had++
			}
		}
	}
	for i := range t.Asserts {
		a := &t.Asserts[i]
		if a.Strength != syntax.Trivial {
			continue
		}
		if had--; had >= 0 {
			continue
		}
		f := Finding{File: p.new.Path, Line: a.Line, Subject: t.Name, Evidence: a.S, Confidence: confidence}
		if a.Marker || old != nil && r.endsForMachine(p, t, a.Under) {
			f.Confidence = min(confidence, 0.6)
		}
		r.add(f, assertionTrivial)
	}
}

// endsForMachine tells whether a test that passes at once does so under a condition of
// the machine.
func (r *run) endsForMachine(p *pair, t *syntax.Test, when *syntax.When) bool {
	if when == nil {
		return false
	}
	w := *when
	w.RunsWhen = !w.RunsWhen
	return r.explains(p, t, &w)
}

// mocked tells of a test that replaces what it calls by a mock it did not have.
func (r *run) mocked(t *testPair) {
	had := make(map[string]bool)
	for _, m := range t.old.Mocks {
		had[m] = true
	}
	for _, m := range t.new.Mocks {
		if had[m] || len(m) < 3 || !t.old.Names.Has(syntax.Hash(m)) {
			continue
		}
		r.add(Finding{File: t.to.new.Path, Line: t.new.Line, Subject: t.new.Name, Evidence: m, Confidence: 0.7,
			Message: fmt.Sprintf("the test calls %q, and replaces it by a mock now", m)}, subjectMocked)
	}
}
