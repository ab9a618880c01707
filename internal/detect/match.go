package detect

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// A baseline test that is missing in its file is searched in the whole change, in this
// order; the first match wins:
//
// 1. moved: a test of the same name in another file, with a similar body;
// 2. renamed: the added test with the most similar body, in the same file from similarity
// 0.5, elsewhere from 0.7, and from 0.35 if the last part of the name is the same. A test
// that was renamed and weakened is compared with its new form by the assertion detectors;
// 3. repeated: a test of the same file with the same body is still there;
// 4. merged or split: three quarters of its literals, and as many of its distinctive
// tokens, appear in what was added to tests (new tests, additions to known tests, tables
// and functions of test files), which has assertions;
// 5. split: a suite with its name now holds tests with half of its literals;
// 6. obsolete: it is empty, or names a function or type that the change removed from
// production code and that appears nowhere else in the change;
// 7. vanished: it uses a field, option or constant that production code declared and that no
// changed file has. This is weaker evidence, because the name may have been changed, so
// it only warns;
// 8. replaced: an added test of the same file has the same subject and asserts as much,
// and production code changed, too, or the added test has a table. It may expect something
// else, so it only warns, and does not count as the same test in test results.
//
// The remaining tests were removed. Similarity is the Jaccard similarity of token
// multisets: it ignores the order of statements, layout, comments and quotes. Bodies are
// compared by hash first, and the best pairs are taken greedily, so that the work grows
// with the removed and added tests and not with the files.

// testPair is a baseline test and its new version.
type testPair struct {
	from *pair
	old  *syntax.Test
	to   *pair // nil if the test was removed
	new  *syntax.Test
	how  string
}

// Ways in which a baseline test was found.
const (
	howSame     = "same"
	howMoved    = "moved"
	howRenamed  = "renamed"
	howMerged   = "merged"
	howObsolete = "obsolete"
	howVanished = "vanished"
	howReplaced = "replaced"
)

// material is what the change as a whole added and removed.
type material struct {
	tests   multiset.Hashes // tokens added to test code
	whole   multiset.Hashes // all tokens of new and changed test code
	code    multiset.Hashes // tokens added to production code
	asserts int             // assertions added
	claims  map[uint64]bool // keys of the assertions of added tests
	guards  map[uint64]bool // added to production code
	gained  []*syntax.Guard // the same
	defined map[string]bool // names that production code declares now
	called  map[uint32]bool // names that tests, and the functions of test files, use
	removed map[uint32]string
	// vanished are names that lost tests used and production code no longer has.
	vanished map[uint32]bool
	changed  bool // production code was changed
	// fresh are the functions that are new in their file, by the last part of their name;
	// all of them under "".
	fresh map[string][]*syntax.Function
	// freshByHash are the same functions by the hash of that name.
	freshByHash map[uint32][]*syntax.Function
}

// candidate is a test of the new versions that matches no baseline test.
type candidate struct {
	pair *pair
	test *syntax.Test
	used bool
}

// pairRenames joins a deleted and an added file that share most names of tests and
// functions. A caller that follows renames has joined them already.
func (r *run) pairRenames() {
	var gone, added []*pair
	for _, p := range r.pairs {
		switch {
		case p.lang == nil:
		case p.old != nil && p.new == nil && p.newWhy == "":
			gone = append(gone, p)
		case p.new != nil && p.old == nil && p.oldWhy == "":
			added = append(added, p)
		}
	}
	if len(gone)*len(added) > 250_000 {
		r.notAnalysed("", "renamed files were not searched: too many files were deleted and added")
		return
	}
	taken := make(map[*pair]bool)
	for _, g := range gone {
		names := namesOf(g.old)
		var best *pair
		most := 0.5
		for _, a := range added {
			if taken[a] || a.lang != g.lang {
				continue
			}
			s := multiset.Jaccard(names, namesOf(a.new))
			// With other suites around them.
			if tests := leavesOf(g.old); len(tests) > 1 && multiset.Containment(tests, leavesOf(a.new)) == 1 {
				s = max(s, 0.6)
			}
			if s > most && len(names) > 0 {
				best, most = a, s
			}
		}
		if best == nil {
			continue
		}
		taken[best], taken[g] = true, true
		best.old, best.change.Old = g.old, g.change.Old
		best.contents.old, best.contents.kept = g.contents.old, g.contents.kept && best.contents.kept
	}
	r.pairs = slices.DeleteFunc(r.pairs, func(p *pair) bool { return taken[p] && p.new == nil })
}

func namesOf(m *syntax.Model) multiset.Hashes {
	b := slices.Clone(leavesOf(m))
	for _, f := range m.Funcs {
		if f.Name == syntax.Script {
			continue
		}
		b = append(b, syntax.Hash(f.Name))
	}
	slices.Sort(b)
	return b
}

// leavesOf returns the names of tests without their suites, which may have been renamed.
func leavesOf(m *syntax.Model) multiset.Hashes {
	var b multiset.Hashes
	for _, t := range m.Tests {
		b = append(b, syntax.Hash(t.Leaf))
	}
	slices.Sort(b)
	return b
}

// matchTests finds the new version of each baseline test.
func (r *run) matchTests() {
	r.collect()
	var left []int
	var free []*candidate
	for _, p := range r.pairs {
		left, free = r.matchSame(p, left, free)
	}
	r.matchMoved(left, free)
	left = slices.DeleteFunc(left, func(n int) bool { // it became a comment
		t := &r.tests[n]
		return t.how == "" && becameComment(t.from, t.old) && declaredIn(t.from.new.Notes, t.old.Leaf)
	})
	r.matchRenamed(left, free)
	r.matchRepeated(left)
	r.matchMerged(left, free)
	r.matchTabled(left)
	for _, n := range left {
		r.matchObsolete(&r.tests[n])
	}
	r.matchVanished(left)
	r.matchReplaced(left, free)
	for _, c := range free {
		if !c.used {
			r.report.Added = append(r.report.Added, TestName{c.pair.new.Path, c.test.Name})
		}
	}
	for i := range r.tests {
		if t := &r.tests[i]; t.how != howSame && t.how != howReplaced && t.how != "" {
			m := Moved{From: TestName{t.from.old.Path, t.old.Name}, How: t.how}
			if t.new != nil {
				m.To = TestName{t.to.new.Path, t.new.Name}
			}
			r.report.Moved = append(r.report.Moved, m)
		}
	}
}

// matchSame matches tests by name within a file.
func (r *run) matchSame(p *pair, left []int, free []*candidate) ([]int, []*candidate) {
	byName := testsByName(p.after().Tests)
	if p.newWhy == "" {
		for _, t := range p.before().Tests {
			found := testPair{from: p, old: t}
			if now := byName[t.Name]; now != nil {
				found.to, found.new, found.how = p, now, howSame
				delete(byName, t.Name)
			} else {
				left = append(left, len(r.tests))
			}
			r.tests = append(r.tests, found)
		}
	}
	for _, t := range p.after().Tests {
		if byName[t.Name] == t {
			free = append(free, &candidate{pair: p, test: t})
		}
	}
	return left, free
}

func (t *testPair) take(c *candidate, how string) {
	t.to, t.new, t.how = c.pair, c.test, how
	c.used = true
}

// matchMoved finds tests of the same name in other files.
func (r *run) matchMoved(left []int, free []*candidate) {
	byName := make(map[string][]*candidate)
	for _, c := range free {
		byName[c.test.Name] = append(byName[c.test.Name], c)
	}
	for _, n := range left {
		t := &r.tests[n]
		var best *candidate
		most := 0.3
		for _, c := range byName[t.old.Name] {
			if s := multiset.Jaccard(t.old.All, c.test.All); !c.used && s > most {
				best, most = c, s
			}
		}
		if best != nil {
			t.take(best, howMoved)
		}
	}
}

// scored is a possible match.
type scored struct {
	n     int
	c     *candidate
	score float64
}

// maxCompared bounds the number of bodies compared to find renamed tests.
const maxCompared = 200_000

// matchRenamed finds tests with a similar body, the most similar ones first.
func (r *run) matchRenamed(left []int, free []*candidate) {
	byHash := make(map[uint64][]*candidate)
	for _, c := range free {
		byHash[c.test.BodyHash] = append(byHash[c.test.BodyHash], c)
	}
	for _, n := range left {
		t := &r.tests[n]
		for _, c := range byHash[t.old.BodyHash] {
			if t.how == "" && !c.used {
				t.take(c, howRenamed)
			}
		}
	}
	var all []scored
	compared := 0
	for _, n := range left {
		t := &r.tests[n]
		for _, c := range free {
			if t.how != "" || c.used || compared >= maxCompared {
				continue
			}
			compared++
			if s, ok := r.renamed(t, c); ok {
				all = append(all, scored{n, c, s})
			}
		}
	}
	if compared >= maxCompared {
		r.notAnalysed("", "renamed tests were searched only among some of the tests: too many were removed and added")
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, s := range all {
		if t := &r.tests[s.n]; t.how == "" && !s.c.used {
			t.take(s.c, howRenamed)
		}
	}
}

// renamed returns the similarity of two tests, and whether one may be the other under a
// new name.
func (r *run) renamed(t *testPair, c *candidate) (float64, bool) {
	if len(t.old.All) > 4*len(c.test.All)+8 || len(c.test.All) > 4*len(t.old.All)+8 {
		return 0, false
	}
	s := multiset.Jaccard(t.old.All, c.test.All)
	least := 0.7
	switch {
	case t.old.Leaf == c.test.Leaf:
		least = 0.35
	case t.from == c.pair && extends(r.wordsOf(t.old.Leaf), r.wordsOf(c.test.Leaf)):
		least = 0.2
	case t.from == c.pair:
		least = 0.5
	}
	if s < least {
		return 0, false
	}
	// A test with other expected values is another test, unless most of it is the same.
	if s < 0.8 && least > 0.4 && multiset.Containment(t.old.Literals, c.test.Literals) < 0.5 {
		return 0, false
	}
	if s < 0.8 && least == 0.5 && !assertsAlike(t.old, c.test) {
		return 0, false
	}
	if r.ofSomethingNew(t, c) {
		return 0, false
	}
	if t.old.Leaf == c.test.Leaf {
		s++
	}
	return s, true
}

// assertsAlike reports whether two tests have assertions about the same subject, or one
// of them has none.
func assertsAlike(was, now *syntax.Test) bool {
	for i := range was.Asserts {
		for j := range now.Asserts {
			if was.Asserts[i].Key == now.Asserts[j].Key || likeness(&was.Asserts[i], &now.Asserts[j]) > 0.34 {
				return true
			}
		}
	}
	return len(was.Asserts) == 0 || len(now.Asserts) == 0
}

// collect collects what the change added and removed, by groups of languages, because
// numbers and short names occur in all of them.
func (r *run) collect() {
	r.change = make(map[string]*material)
	for _, p := range r.pairs {
		r.of(p).collectCalled(p.new)
		r.of(p).collectFresh(p)
	}
	for _, p := range r.pairs {
		c := r.of(p)
		c.changed = c.changed || p.class == production && p.lang != nil
		c.collectTests(p)
		c.collectCode(p)
	}
	for _, c := range r.change {
		slices.Sort(c.tests)
		slices.Sort(c.whole)
		slices.Sort(c.code)
		for leaf := range c.fresh { // added again under its name: it moved
			delete(c.removed, syntax.Hash(leaf))
		}
	}
}

// of returns the material of the group of languages that a file belongs to.
func (r *run) of(p *pair) *material {
	group := ""
	if p.lang != nil {
		group = p.lang.Family
	}
	if r.change[group] == nil {
		r.change[group] = &material{
			removed: make(map[uint32]string), guards: make(map[uint64]bool), called: make(map[uint32]bool),
			defined: make(map[string]bool), claims: make(map[uint64]bool),
			fresh: make(map[string][]*syntax.Function), freshByHash: make(map[uint32][]*syntax.Function),
		}
	}
	return r.change[group]
}

// collectFresh collects the functions of production code that the baseline version of
// their file did not have.
func (c *material) collectFresh(p *pair) {
	known := functionsByName(p.before())
	for _, f := range p.after().Funcs {
		if known[f.Name] == nil && !f.Test {
			c.fresh[f.Leaf] = append(c.fresh[f.Leaf], f)
			c.fresh[""] = append(c.fresh[""], f)
			h := syntax.Hash(f.Leaf)
			c.freshByHash[h] = append(c.freshByHash[h], f)
			if around, _, ok := strings.Cut(f.Name, syntax.NameSeparator+f.Leaf); ok && makers()[f.Leaf] {
				h = syntax.Hash(around[strings.LastIndexByte(around, ' ')+1:])
				c.freshByHash[h] = append(c.freshByHash[h], f)
			}
		}
	}
}

// makers are the names of functions that construct a value of their type.
var makers = sync.OnceValue(wordSet("__construct constructor __init__ __post_init__ initialize init new"))

func (c *material) collectTests(p *pair) {
	old := testsByName(p.before().Tests)
	for _, t := range p.after().Tests {
		was := old[t.Name]
		switch {
		case was == nil:
			c.tests = append(append(c.tests, t.All...), t.Parts...)
			c.asserts += len(t.Asserts)
			for i := range t.Asserts {
				c.claims[t.Asserts[i].Key] = true
			}
		case was.BodyHash != t.BodyHash:
			c.tests = append(append(c.tests, multiset.Difference(t.All, was.All)...), multiset.Difference(t.Parts, was.Parts)...)
			c.asserts += max(0, len(t.Asserts)-len(was.Asserts)) + len(t.Cases)
		default:
			continue
		}
		c.whole = append(append(c.whole, t.All...), t.Parts...)
	}
	for _, s := range p.after().Suites {
		c.whole = append(c.whole, s.All...)
	}
	c.collectRest(p)
}

// collectCalled collects the names that tests use.
func (c *material) collectCalled(m *syntax.Model) {
	if m == nil {
		return
	}
	for _, t := range slices.Concat(m.Tests, m.Suites) {
		for _, h := range t.Names {
			c.called[h] = true
		}
	}
	for _, f := range m.Funcs {
		if f.Test && setups()[f.Leaf] {
			c.called[syntax.Hash(f.Leaf)] = true
		}
		if f.Test && c.called[syntax.Hash(f.Leaf)] {
			for _, h := range f.Calls {
				c.called[h] = true
			}
		}
	}
}

// setups are the names of functions that the test runner calls before tests.
var setups = sync.OnceValue(wordSet("setUp setUpClass setUpModule setUpTestData asyncSetUp setup setup_method " +
	"setup_class setup_module before beforeAll beforeEach SetUp SetupTest SetupSuite TestMain let subject"))

// wordSet returns a function that builds the set of the words of a text, for sync.OnceValue.
func wordSet(text string) func() map[string]bool {
	return func() map[string]bool {
		all := make(map[string]bool)
		for w := range strings.FieldsSeq(text) {
			all[w] = true
		}
		return all
	}
}

// collectRest adds the functions and tables of test files. A function that nothing uses
// does not count: it may be a test that the test runner no longer finds.
func (c *material) collectRest(p *pair) {
	was := functionsByName(p.before())
	for _, f := range p.after().Funcs {
		if !f.Test || f.Kind == syntax.DeclContainer || !c.called[syntax.Hash(f.Leaf)] {
			continue
		}
		o := cmp.Or(was[f.Name], &syntax.Function{})
		if o.BodyHash != f.BodyHash {
			c.whole = append(c.whole, f.All...)
		}
		c.tests = append(c.tests, multiset.Difference(f.All, o.All)...)
	}
	if p.class == testCode {
		more := multiset.Difference(p.after().Rest, p.before().Rest)
		c.tests, c.whole = append(c.tests, more...), append(c.whole, more...)
	}
}

// collectCode collects the symbols that production code lost and the tokens that it
// gained.
func (c *material) collectCode(p *pair) {
	was, now := functionsByName(p.before()), functionsByName(p.after())
	for _, f := range p.before().Funcs {
		if !f.Test && now[f.Name] == nil && len(f.Leaf) > 2 && p.newWhy == "" {
			c.removed[syntax.Hash(f.Leaf)] = f.Leaf
		}
	}
	for _, f := range p.after().Funcs {
		if !f.Test {
			c.defined[f.Leaf] = true
		}
		if f.Test || f.Kind == syntax.DeclContainer {
			continue
		}
		o := cmp.Or(was[f.Name], &syntax.Function{})
		c.collectGuards(o, f)
		if o.BodyHash != f.BodyHash {
			c.code = append(c.code, multiset.Difference(f.All, o.All)...)
		}
	}
}

// functionsByName indexes the functions of a version.
func functionsByName(m *syntax.Model) map[string]*syntax.Function {
	all := make(map[string]*syntax.Function, len(m.Funcs))
	for _, f := range m.Funcs {
		all[f.Name] = f
	}
	return all
}

// testsByName indexes tests.
func testsByName(tests []*syntax.Test) map[string]*syntax.Test {
	all := make(map[string]*syntax.Test, len(tests))
	for _, t := range tests {
		all[t.Name] = t
	}
	return all
}

// collectGuards collects the guards that a function gained.
func (c *material) collectGuards(was, now *syntax.Function) {
	known := make(map[uint64]bool)
	for i := range was.Guards {
		known[was.Guards[i].Key] = true
	}
	for i := range now.Guards {
		if g := &now.Guards[i]; !known[g.Key] && !g.Failure {
			c.guards[g.Key], c.gained = true, append(c.gained, g)
		}
	}
}
