package syntax

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// readTests finds the tests of a file with their assertions and skips.
func (u *unit) readTests(m *Model) {
	if !u.inTests && !slices.Contains(u.tests, true) {
		return
	}
	helpers := u.helpers()
	seen := make(map[string]int)
	fileSkip, skipLine := Runs, 0
	if u.lang.skipsFile != nil {
		fileSkip, skipLine = u.lang.skipsFile(u)
	}
	loops := u.loops()
	u.dead = u.deadCode()
	u.findHooks()
	for i := range u.decls {
		if !u.tests[i] {
			if helpers[u.decls[i].name] && u.decls[i].kind == declFunction {
				m.Helpers = append(m.Helpers, u.helper(i, helpers))
			}
			continue
		}
		d := &u.decls[i]
		t := &Test{Name: u.fullName(i), Leaf: d.name, Line: u.line(d.at)}
		if seen[t.Name]++; seen[t.Name] > 1 {
			t.Name = fmt.Sprintf("%s #%d", t.Name, seen[t.Name])
		}
		t.Cases = u.casesOf(d)
		u.readBody(t, i, helpers)
		u.readLoops(t, d, loops, helpers)
		u.tableCases(t, d)
		t.Cases = eachOnce(t.Cases)
		u.readSkips(t, i)
		t.Abstract = u.abstractIn(i)
		u.noteSkip(t, fileSkip, skipLine, u.lineEnd(skipLine))
		if len(t.Asserts) == 0 && u.holdsTests(i) { // a suite: the tests inside have the names
			m.Suites = append(m.Suites, t)
			continue
		}
		m.Tests = append(m.Tests, t)
	}
	u.readWhens()
}

// helper reads a function that asserts for tests.
func (u *unit) helper(i int, helpers set) *Test {
	d := &u.decls[i]
	t := &Test{Name: u.fullName(i), Leaf: d.name, Line: u.line(d.at)}
	u.readBody(t, i, helpers)
	return t
}

// findTests notes which declarations are tests.
func (u *unit) findTests() {
	u.tests = u.tests[:0]
	for i := range u.decls {
		u.tests = append(u.tests, u.isTest(i))
	}
	for i := range u.decls {
		u.tests[i] = u.tests[i] && u.collected(i)
	}
}

// holdsTests reports whether a declaration contains tests.
func (u *unit) holdsTests(i int) bool {
	for j := i + 1; j < len(u.decls) && u.decls[j].start < u.decls[i].end; j++ {
		if u.tests[j] {
			return true
		}
	}
	return false
}

// isTest reports whether a declaration is a test.
func (u *unit) isTest(i int) bool {
	d := &u.decls[i]
	if d.kind == declTest || d.test {
		return true
	}
	if d.kind != declFunction {
		return false
	}
	return d.annotatedBy(func(s string) bool { return u.lang.annotations[s] }) ||
		u.lang.isTest != nil && u.lang.isTest(u, d)
}

// parentName returns the name of the declaration around another one; empty for none.
func (u *unit) parentName(d *decl) string {
	if d.parent < 0 {
		return ""
	}
	return u.decls[d.parent].name
}

// spans returns the tokens of a declaration without the tests inside it.
func (u *unit) spans(i int) [][2]int {
	d := &u.decls[i]
	from := d.start
	var all [][2]int
	for j := i + 1; j < len(u.decls) && u.decls[j].start < d.end; j++ {
		if in := &u.decls[j]; u.tests[j] && in.start >= from {
			all = append(all, [2]int{from, in.start})
			from = in.end
		}
	}
	if from < d.end {
		all = append(all, [2]int{from, d.end})
	}
	return all
}

// helpers returns the functions of a file that assert and are not tests.
func (u *unit) helpers() set {
	all := make(set)
	for i := range u.decls {
		d := &u.decls[i]
		if u.tests[i] || d.kind != declFunction || d.name == "" || !u.inTests && !u.inTestCode(i) {
			continue
		}
		if u.assertsWithin(d.body, d.end, nil) {
			all[d.name] = true
			if dot := strings.LastIndexByte(d.name, '.'); dot >= 0 {
				all[d.name[dot:]] = true // a method of Go
			}
		}
	}
	return all
}

// readBody notes the tokens and assertions of a test. Its name does not count, as it may change.
func (u *unit) readBody(t *Test, i int, helpers set) {
	d := &u.decls[i]
	name := d.at
	if d.kind == declTest && u.kindAt(d.body-1) == lex.Text {
		name = d.body - 1
	}
	t.BodyHash = firstHash
	spans := u.spans(i)
	for _, span := range spans {
		for j := span[0]; j < span[1]; j++ {
			if j != name {
				t.BodyHash = mixHash(t.BodyHash, u.tok[j].Hash)
			}
			if !u.isWord(j) {
				continue
			}
			if j != name && u.member(j) {
				t.Members = append(t.Members, u.tok[j].Hash)
			}
			if u.lang.ErrorValues && u.at(j) == "if" && u.sendsError(j) {
				t.Sent++
			}
			if mock := u.mockOf(j); mock != "" {
				t.Mocks = append(t.Mocks, mock)
			}
			if u.lang.handlers[u.at(j)] && u.droppedFailure(j, span[0]) || u.losesFailure(j, span[0]) {
				t.Caught++
			}
		}
		t.Asserts = append(t.Asserts, u.assertions(span[0], span[1], max(d.body, span[0]), helpers)...)
	}
	u.markUnder(t, spans)
	t.All = u.ofSpans(spans, name, appendBag, false)
	t.Telling = u.ofSpans(spans, name, appendTelling, true)
	t.Literals = u.ofSpans(spans, name, appendLiterals, true)
	if len(u.lang.failing) > 0 {
		t.Said = u.said(spans)
	}
	t.Parts = u.ofSpans(spans, name, appendParts, false)
	t.Names = slices.Compact(u.ofSpans(spans, name, appendNames, true))
	for w := range strings.FieldsSeq(t.Leaf) { // of a title
		if len(w) >= minMember && len(w) < len(t.Leaf) && identifier().MatchString(w) {
			t.Members = append(t.Members, Hash(w))
		}
	}
	t.Members, t.Empty = multiset.Sum(t.Members, nil), u.empty(d)
	t.Silent = u.lang.handle != "" && len(t.Asserts) == 0 && !u.uses(d, u.lang.handle) &&
		!strings.HasPrefix(t.Leaf, "Example")
}

// ofSpans returns the multiset of the tokens of some spans but one; once removes repetitions within
// a span.
func (u *unit) ofSpans(spans [][2]int, but int, add func(multiset.Hashes, []lex.Token) multiset.Hashes,
	once bool) multiset.Hashes {
	all := u.scratch[:0]
	for _, span := range spans {
		from := len(all)
		if but >= span[0] && but < span[1] {
			all = add(add(all, u.tok[span[0]:but]), u.tok[but+1:span[1]])
		} else {
			all = add(all, u.tok[span[0]:span[1]])
		}
		if once {
			slices.Sort(all[from:])
			all = all[:from+len(slices.Compact(all[from:]))]
		}
	}
	u.scratch = all
	return u.sorted()
}

// uses reports whether a name is in the body of a declaration.
func (u *unit) uses(d *decl, name string) bool {
	return anyOf(d.body, d.end, func(j int) bool { return u.at(j) == name })
}

// empty reports whether the body of a declaration has no statements.
func (u *unit) empty(d *decl) bool {
	return d.body < d.end && !anyOf(d.body, d.end, func(j int) bool {
		return u.kindAt(j) != lex.Op && u.at(j) != "pass" && u.at(j) != "end"
	})
}

// member reports whether the word at i names a member: x.name, name: value, f(name=value), NAME.
// Short and common words do not count.
func (u *unit) member(i int) bool {
	s := u.at(i)
	if len(s) < minMember || Everywhere(s) {
		return false
	}
	before, next := u.at(i-1), u.at(i+1)
	return oneOf(before, ".", "->", "::", "?.") || (before == "(" || before == ",") && next == "=" ||
		next == ":" || next == "=>" || s == strings.ToUpper(s)
}

// identifier matches a word of a title that can only be a name in the code.
var identifier = lazyregexp.New(`^\w*(?:[a-z][A-Z]|\w_)\w*$`)

// minMember is the minimum length of a distinctive name in bytes.
const minMember = 4

// mockOf returns the name that a call at i replaces by a mock; empty for none.
func (u *unit) mockOf(i int) string {
	if !mockCalls()[u.at(i)] || u.at(i+1) != "(" {
		return ""
	}
	for j := i + 2; j < u.closer(i+1) && j < i+8; j++ {
		if u.kindAt(j) == lex.Text {
			s := lex.Unquote(u.at(j))
			return strings.Clone(s[strings.LastIndexAny(s, "./")+1:])
		}
		if u.isWord(j) && u.at(j+1) != "." {
			return strings.Clone(u.at(j))
		}
	}
	return ""
}

var mockCalls = sync.OnceValue(wordSet("mock patch spyOn createStub mockImplementation stub mockStatic spy doMock"))

// collected reports whether the runner finds the test at i, by the declarations around it.
func (u *unit) collected(i int) bool {
	if u.lang.collected != nil && !u.lang.collected(u, i) {
		return false
	}
	d := &u.decls[i]
	return u.lang.inherits == nil || d.kind != declFunction || d.parent < 0 || !u.inTests ||
		u.lang.inherits(u, &u.decls[d.parent])
}

// shadowed reports whether a later declaration of the same scope replaces the function at i.
func (u *unit) shadowed(i int) bool {
	d := &u.decls[i]
	if d.kind != declFunction {
		return false
	}
	if u.lastOf()[placeOf(u, i)] > i {
		return d.parent >= 0 || u.lang.shape != indents || u.tok[d.start].Col == 0
	}
	return slices.ContainsFunc(u.offHeads(), func(h int) bool { // del test_a, test_a = None
		return h >= d.end && d.parent < 0 && u.tok[h].Col == 0 &&
			(u.at(h) == "del" && u.at(h+1) == d.name || u.at(h) == d.name && u.at(h+1) == "=")
	})
}

// place is the scope and name of a function.
type place struct {
	parent int
	col    int32
	name   string
}

func placeOf(u *unit, i int) place {
	d := &u.decls[i]
	return place{d.parent, u.tok[d.start].Col, d.name}
}

// lastOf returns the last function of each name and place.
func (u *unit) lastOf() map[place]int {
	if u.last == nil {
		u.last = make(map[place]int)
		for i := range u.decls {
			if u.decls[i].kind == declFunction {
				u.last[placeOf(u, i)] = i
			}
		}
	}
	return u.last
}

// names reports whether a word occurs near the top of the file, as in an import.
func (u *unit) names(s string) bool {
	return slices.ContainsFunc(u.tok[:min(len(u.tok), 400)], func(t lex.Token) bool { return t.S == s })
}

// abstractIn returns the abstract class around a test, whose subclasses run it; empty for none.
func (u *unit) abstractIn(i int) string {
	for j := u.decls[i].parent; j >= 0; j = u.decls[j].parent {
		if d := &u.decls[j]; d.kind == DeclContainer && has(d.modifiers, "abstract") {
			return d.name
		}
	}
	return ""
}
