package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/bag"
	"github.com/perdure/perdure/internal/detect/lex"
)

// readTests finds the tests of a file, with what they assert and whether they run.
func (u *unit) readTests(m *Model) {
	if !u.inTests && !slices.Contains(u.tests, true) {
		return
	}
	helpers := u.helpers()
	seen := make(map[string]int)
	fileSkip, skipLine := u.fileSkip()
	loops := u.loops()
	u.dead = u.deadCode()
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
		u.readSkips(t, i)
		if fileSkip > t.Skip {
			t.Skip, t.SkipLine, t.SkipText = fileSkip, u.line(skipLine), u.text(skipLine, u.lineEnd(skipLine))
		}
		if len(t.Asserts) == 0 && u.holdsTests(i) { // a suite: those inside of it have the names
			m.Suites = append(m.Suites, t)
			continue
		}
		m.Tests = append(m.Tests, t)
	}
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
}

// holdsTests tells whether tests stand inside of a declaration.
func (u *unit) holdsTests(i int) bool {
	for j := i + 1; j < len(u.decls) && u.decls[j].start < u.decls[i].end; j++ {
		if u.tests[j] {
			return true
		}
	}
	return false
}

// isTest tells whether a declaration is a test.
func (u *unit) isTest(i int) bool {
	d := &u.decls[i]
	if d.kind == declTest || d.test {
		return true
	}
	if d.kind != declFunction {
		return false
	}
	for _, a := range d.annotations {
		if u.lang.annotations[a.name] || u.lang.Name == "csharp" && (strings.HasSuffix(a.name, "Fact") || strings.HasSuffix(a.name, "Theory")) {
			return true
		}
	}
	parent := ""
	if d.parent >= 0 {
		parent = u.decls[d.parent].name
	}
	switch u.lang.Name {
	case "python":
		if !strings.HasPrefix(d.name, "test") || !u.inTests && !strings.Contains(parent, "Test") {
			return false
		}
		if d.parent >= 0 && u.at(u.decls[d.parent].at+1) == ":" && !strings.Contains(parent, "Test") {
			return false // runners collect a class by its base or its name
		}
		return d.parent < 0 || u.decls[d.parent].kind == DeclContainer
	case "ruby":
		return strings.HasPrefix(d.name, "test_") && d.parent >= 0 && (u.inTests || strings.Contains(parent, "Test"))
	case "php":
		return d.parent >= 0 && (strings.HasPrefix(d.name, "test") && len(d.name) > 4 && (u.inTests || strings.HasSuffix(parent, "Test")) || u.docTest(d))
	case "java":
		return u.inTests && strings.HasPrefix(d.name, "test") && len(d.name) > 4 && has(d.modifiers, "public") && has(d.modifiers, "void") && u.at(d.at+2) == ")"
	}
	return false
}

// docTest tells of @test in the comment before a method.
func (u *unit) docTest(d *decl) bool {
	line := u.line(d.start)
	for _, n := range u.notesBefore(line) {
		if last := int(n.Line) + strings.Count(n.S, "\n"); last < line && last >= line-2 && strings.HasPrefix(n.S, "/**") && strings.Contains(n.S, "@test") {
			return true
		}
	}
	return false
}

// spans are the tokens of a declaration without the tests inside of it.
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

// helpers are the functions of a file that assert and are no tests.
func (u *unit) helpers() set {
	all := make(set)
	for i := range u.decls {
		d := &u.decls[i]
		if u.tests[i] || d.kind != declFunction || d.name == "" || !u.inTests && !u.inTestCode(i) {
			continue
		}
		for j := d.body; j < d.end; j++ {
			if u.isWord(j) && u.asserts(j, nil) {
				all[d.name] = true
				if dot := strings.LastIndexByte(d.name, '.'); dot >= 0 {
					all[d.name[dot:]] = true // a method of Go
				}
				break
			}
		}
	}
	return all
}

// readBody notes what a test is made of and what it asserts. Its name may change,
// and does not count.
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
			u.tellsOnly(t, j, span[0])
			if mock := u.mockOf(j); mock != "" {
				t.Mocks = append(t.Mocks, mock)
			}
			if u.lang.handlers[u.at(j)] && u.droppedFailure(j, span[0]) || u.losesFailure(j, span[0]) {
				t.Caught++
			}
		}
		t.Asserts = append(t.Asserts, u.assertions(span[0], span[1], max(d.body, span[0]), helpers)...)
	}
	t.All = u.ofSpans(spans, name, appendBag, false)
	t.Telling = u.ofSpans(spans, name, appendTelling, true)
	t.Literals = u.ofSpans(spans, name, appendLiterals, true)
	t.Parts = u.ofSpans(spans, name, appendParts, false)
	t.Names = slices.Compact(u.ofSpans(spans, name, appendNames, true))
	for w := range strings.FieldsSeq(t.Leaf) { // of a title
		if len(w) >= minMember && len(w) < len(t.Leaf) && identifier.MatchString(w) {
			t.Members = append(t.Members, Hash(w))
		}
	}
	t.Members, t.Empty = bag.Join(t.Members, nil), u.empty(d)
	t.Silent = u.lang.Name == "go" && len(t.Asserts) == 0 && !u.uses(d, "t")
}

// ofSpans is a bag of all tokens of some spans but one; once leaves out what a span
// has again.
func (u *unit) ofSpans(spans [][2]int, but int, add func(bag.Bag, []lex.Token) bag.Bag, once bool) bag.Bag {
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

// uses tells whether a name stands in the body of a declaration.
func (u *unit) uses(d *decl, name string) bool {
	for j := d.body; j < d.end; j++ {
		if u.at(j) == name {
			return true
		}
	}
	return false
}

// empty tells of a declaration whose body does nothing.
func (u *unit) empty(d *decl) bool {
	for j := d.body; j < d.end; j++ {
		if s := u.at(j); u.kindAt(j) != lex.Op && s != "pass" && s != "end" {
			return false
		}
	}
	return d.body < d.end
}

// member tells whether the word at i names a part of something: x.name, name: value,
// f(name=value), NAME. Short and common words tell nothing.
func (u *unit) member(i int) bool {
	s := u.at(i)
	if len(s) < minMember || Everywhere(s) {
		return false
	}
	switch u.at(i - 1) {
	case ".", "->", "::", "?.":
		return true
	case "(", ",":
		if u.at(i+1) == "=" {
			return true
		}
	}
	return u.at(i+1) == ":" || u.at(i+1) == "=>" || s == strings.ToUpper(s)
}

// identifier is a word of a title that can only be a name of the code.
var identifier = regexp.MustCompile(`^\w*(?:[a-z][A-Z]|\w_)\w*$`)

// minMember is how many bytes a name has at least that tells something.
const minMember = 4

// mockOf is the name of what a call at i replaces; empty when it replaces nothing.
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

var mockCalls = sync.OnceValue(func() set { return words("mock patch spyOn createStub mockImplementation stub mockStatic spy doMock") })

// fileSkip tells whether all tests of a file are skipped, and where.
func (u *unit) fileSkip() (Skipping, int) {
	switch u.lang.Name {
	case "rust":
		return u.rustSkip()
	case "python":
	default:
		return Runs, 0
	}
	for _, head := range u.heads {
		i := int(head)
		if u.tok[i].Col != 0 {
			continue
		}
		if u.at(i) == "pytest" && u.at(i+2) == "importorskip" {
			return Sometimes, i
		}
		if u.at(i) == "raise" && (u.at(i+1) == "SkipTest" || u.at(i+3) == "SkipTest") {
			return Always, i
		}
		skip := u.at(i) == "pytest" && u.at(i+2) == "skip"
		if u.at(i) != "pytestmark" && !skip {
			continue
		}
		for j := i; j < u.lineEnd(i); j++ {
			switch s := u.at(j); {
			case s == "skip":
				return Always, i
			case s == "skipif" && u.constant(j+2):
				return Always, i
			case s == "skipif":
				return Sometimes, i
			}
		}
	}
	return Runs, 0
}

// readSkips notes whether a test, or what stands around it, is skipped, runs
// alone, or is expected to fail.
func (u *unit) readSkips(t *Test, i int) {
	note := func(s Skipping, at, to int) {
		if s > t.Skip {
			t.Skip, t.SkipLine, t.SkipText = s, u.line(at), u.text(at, to)
		}
	}
	for j := i; j >= 0; j = u.decls[j].parent {
		d := &u.decls[j]
		for _, a := range d.annotations {
			s, fails := u.annotationSkips(&a)
			if s == Always && u.whole.Under(a.from).Deep > u.whole.Under(d.at).Deep {
				s = Sometimes
			}
			note(s, a.from, a.to)
			t.Fails = t.Fails || fails && j == i
		}
		for n, call := range d.calls {
			switch {
			case u.lang.skipped[call], n > 0 && (call == "skip" || call == "todo" || call == "pending"), call == "pending":
				note(Always, d.at, min(d.at+4, len(u.tok)))
			case n > 0 && (call == "skipIf" || call == "runIf"):
				note(Sometimes, d.at, min(d.at+20, len(u.tok)))
			case u.lang.focused[call], n > 0 && call == "only":
				t.Focus = true
			case n > 0 && (call == "failing" || call == "fails"):
				t.Fails = true
			}
		}
	}
	for j := i; j >= 0; j = u.decls[j].parent {
		if u.tests[j] {
			u.readSkipCalls(j, note)
		}
	}
	if c := u.whole.Under(u.decls[i].at); c.Deep > 0 && t.Skip == Runs {
		t.Skip, t.SkipLine, t.SkipText = Sometimes, int(c.Line), strings.Clone(Clip(c.S))
	}
	u.otherSkips(t, i, note)
}

// readSkipCalls notes the calls in a test that skip it, and the tests inside.
func (u *unit) readSkipCalls(i int, note func(s Skipping, at, to int)) {
	left := maxSkipCalls
	for _, span := range u.spans(i) {
		for j := max(span[0], u.decls[i].at+1); j < span[1]; j++ {
			if !u.isWord(j) || left == 0 {
				continue
			}
			if s := u.skipsHere(&u.decls[i], j); s != Runs {
				left--
				note(s, u.conditionBefore(&u.decls[i], j), u.statementEnd(j))
			}
		}
	}
}

// conditionBefore is where the condition begins under which the call at i stands; i
// when there is none near.
func (u *unit) conditionBefore(d *decl, i int) int {
	for j := i; j > max(d.body, i-maxCondition); j-- {
		switch u.at(j) {
		case "if", "elif", "unless", "when", "case", "guard":
			return j
		}
	}
	return i
}

// maxCondition is how many tokens a condition may have that is shown with a skip.
const maxCondition = 40

// maxSkipCalls is how many calls of one test are looked at that may skip it.
const maxSkipCalls = 100

// annotationSkips tells what an annotation does to a test.
func (u *unit) annotationSkips(a *annotation) (s Skipping, fails bool) {
	open := a.from
	for open < a.to && u.at(open) != "(" {
		open++
	}
	for j := open; j < a.to; j++ {
		option := u.at(j+1) == "="
		if option && (u.at(j) == "Skip" && u.at(j+2) != "null" || u.at(j) == "enabled" && u.at(j+2) == "false" || u.at(j) == "Ignore" || u.at(j) == "IgnoreReason") {
			return Always, false
		}
	}
	switch {
	case a.name == "xfail" || a.name == "expectedFailure" || a.name == "should_panic":
		return Runs, true
	case u.lang.Name == "rust" && a.name == "cfg":
		return u.builtSometimes(open, a.to), false
	case u.lang.Name == "rust" && a.name == "cfg_attr":
		for j := open; j < a.to; j++ {
			if u.at(j) == "ignore" {
				return Sometimes, false
			}
		}
		return Runs, false
	case !u.lang.skips[a.name]:
		return Runs, false
	case conditionalSkips()[a.name] && !u.constant(open+1):
		return Sometimes, false
	}
	return Always, false
}

var conditionalSkips = sync.OnceValue(func() set {
	return words("skipif skipIf skipUnless DisabledOnOs DisabledIf EnabledIf EnabledOnOs DisabledIfEnvironmentVariable " +
		"EnabledIfEnvironmentVariable EnabledIfSystemProperty DisabledOnJre EnabledOnJre DisabledIfSystemProperty " +
		"RequiresPhp RequiresPhpExtension RequiresPhpunit RequiresFunction RequiresMethod RequiresSetting " +
		"RequiresOperatingSystem RequiresOperatingSystemFamily")
})

// constant tells whether an argument is a constant.
func (u *unit) constant(i int) bool {
	s := strings.ToLower(u.at(i))
	ends := u.at(i+1) == ")" || u.at(i+1) == "," || u.at(i+1) == ":" || u.at(i+1) == "{"
	return ends && (s == "true" || s == "false" || u.kindAt(i) == lex.Number)
}

// skipsHere tells whether the word at i skips the test it stands in.
func (u *unit) skipsHere(d *decl, i int) Skipping {
	s := u.at(i)
	option := u.at(i+1) == ":" && (u.at(i+2) == "true" || u.kindAt(i+2) == lex.Text)
	if option && (s == "skip" || s == "todo") && (u.at(i-1) == "{" || u.at(i-1) == ",") && u.lang.shape == braces && u.inHead(d, i) {
		return Always
	}
	if s == "enabled" && u.at(i+1) == "=" && u.at(i+2) == "false" && u.lang.Name == "kotlin" {
		return Always
	}
	before := u.at(i - 1)
	if s == "enabled" && u.at(i+1) == "=" && u.at(i+2) != "true" && u.lang.Name == "kotlin" && (before == "(" || before == ",") {
		return Sometimes
	}
	if s == "That" && before == "." && u.at(i-2) == "Assume" && u.lang.Name == "csharp" {
		return Sometimes
	}
	if !u.lang.skips[s] && !(u.lang.Name == "csharp" && u.at(i-2) == "Skip") {
		return Runs
	}
	call := u.at(i+1) == "("
	switch u.lang.Name {
	case "ruby":
		if !u.tok[i].First && !rubyBegins()[before] || u.at(i+1) == "=" || before == "." {
			return Runs
		}
	case "python":
		if s == "SkipTest" && u.at(i-1) != "raise" && u.at(i-3) != "raise" || s == "skipIf" || s == "skipif" || s == "skipUnless" {
			return Runs
		}
		if s == "importorskip" && call && before == "." {
			return Sometimes
		}
		if !call && s != "SkipTest" || before != "." && before != "raise" && s != "skipTest" && s != "skip" {
			return Runs
		}
	case "go":
		if on := u.at(i - 2); !call || before != "." || len(on) > 2 {
			return Runs
		}
	case "javascript", "typescript":
		if s == "skip" && call && u.tok[i].First && u.destructures(d, s) {
			break
		}
		if !call || before != "." || u.at(i-2) != "this" && u.at(i-2) != "t" && u.at(i-2) != "ctx" && u.at(i-2) != "context" && u.at(i-2) != "test" || u.at(i-2) == "test" && u.at(i+2) != ")" && u.at(i+2) != "true" {
			return Runs
		}
	case "csharp":
		if before != "." || u.at(i-2) != "Assert" && u.at(i-2) != "Skip" {
			return Runs
		}
		if (s == "SkipWhen" || s == "SkipUnless" || u.at(i-2) == "Skip") && !u.constant(i+2) {
			return Sometimes
		}
	case "rust":
		return Runs
	default:
		if !call {
			return Runs
		}
	}
	if strings.HasPrefix(s, "assume") || strings.HasPrefix(s, "assuming") {
		if u.at(i+2) == "false" && s == "assumeTrue" || u.at(i+2) == "true" && s == "assumeFalse" {
			return Always
		}
		return Sometimes
	}
	if u.conditional(d, i) {
		return Sometimes
	}
	return Always
}

// inHead tells whether i stands in the options of a test, before its function.
func (u *unit) inHead(d *decl, i int) bool {
	for j := d.at; j < i; j++ {
		if u.at(j) == "=>" || u.at(j) == "function" {
			return false
		}
	}
	return true
}

// conditional tells whether what stands at i happens only under a condition that
// is no constant.
func (u *unit) conditional(d *decl, i int) bool {
	switch u.lang.shape {
	case indents:
		for n := u.headIndex(i); n >= 0 && int(u.heads[n]) >= d.body; n-- {
			head := int(u.heads[n])
			if w := u.at(head); u.tok[head].Col < u.headCol(i) && (w == "if" || w == "elif" || w == "else" || w == "except" || w == "for") && u.tok[head].Col > u.tok[d.start].Col {
				return !u.constant(head + 1)
			}
		}
		return false
	case ends:
		line := u.tok[i].Line
		for j := i; j < len(u.tok) && u.tok[j].Line == line; j++ {
			if u.at(j) == "if" || u.at(j) == "unless" {
				return !u.constant(j + 1)
			}
		}
		for j := i; j > d.body; j-- {
			if w := u.at(j); (w == "if" || w == "unless" || w == "rescue" || w == "case") && u.tok[j].First && int(u.match[j]) > i {
				return true
			}
		}
		return false
	}
	for j := i - 1; j > d.at; j-- {
		s := u.at(j)
		switch {
		case u.kindAt(j) == lex.Op && (s == ")" || s == "}" || s == "]") && u.opener(j) > 0:
			if s == ")" && u.at(u.opener(j)-1) == "if" && u.at(j+1) != "{" && j+3 >= i {
				return !u.constant(u.opener(j) + 1)
			}
			j = u.opener(j)
		case u.kindAt(j) == lex.Op && s == "{":
			k := j - 1
			for k > d.at && u.at(k) != "{" && u.at(k) != ";" && u.at(k) != "}" {
				if w := u.at(k); w == "if" || w == "case" || w == "switch" || w == "catch" || w == "else" {
					return u.at(k) != "if" || !u.constant(k+1) && !u.constant(k+2)
				}
				if w := u.at(k); w == "=>" || w == "function" || w == "fun" || w == "fn" || w == "func" {
					break
				}
				k--
			}
		}
	}
	return false
}

// headCol is the column of the logical line that i stands in.
func (u *unit) headCol(i int) int32 {
	if n := u.headIndex(i); n >= 0 {
		return u.tok[u.heads[n]].Col
	}
	return 0
}

// headIndex is the logical line that i stands in; -1 before the first.
func (u *unit) headIndex(i int) int {
	n, found := slices.BinarySearch(u.heads, small(i))
	if found {
		return n
	}
	return n - 1
}
