package syntax

import (
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

func python() Language {
	long := lex.Quote{Open: "'''", Close: "'''", Escape: '\\', Lines: true}
	return Language{
		Name: "python", exts: []string{".py", ".pyi"}, shape: indents, lines: true,
		rules: lex.Rules{Line: []string{"#"}, Prefixes: "rRbBfFuU",
			Quotes: []lex.Quote{threeQuotes(), long, doubleQuote(), singleQuote()}},
		functions: words("def"), containers: words("class"),
		skips: words("skip skipif skipIf skipUnless skipTest importorskip SkipTest xfail expectedFailure"),
		asserts: words("assert raises warns assert_called assert_that approx fail assert_allclose check_call " +
			"deprecated_call expect"),
		throws: words("raise"), handlers: words("except"),
		testSuffixes: []string{"_test", "_tests"}, testPrefixes: []string{"test_", "tests_"},
		testFolders: []string{"test", "tests", "testing"},
		marks:       pythonMarks(), notes: pythonNotes(),
		declarations: declarations{declare: (*unit).declareIndented},
		testForms: testForms{isTest: (*unit).pythonTest, strictPrefixes: []string{"test_"}, strictSuffixes: []string{"_test"},
			collected:  func(u *unit, i int) bool { return !u.shadowed(i) },
			braceLists: true, namedArguments: true, skipsFile: (*unit).pythonSkip, skipsAt: (*unit).pythonSkips},
		functionForms: functionForms{
			public:     func(_ *unit, d *decl) bool { return !strings.HasPrefix(d.name, "_") },
			readOffers: (*unit).offersOfPackage, readStatement: (*unit).readAssert, replaces: (*unit).suppressed,
			asks: words("modules argv orig_argv stack _getframe co_filename co_name environ getenv extract_stack " +
				"format_stack currentframe __main__"),
		},
		assertionForms: assertionForms{
			isAssertion: func(u *unit, i int, _ set) (asserts, decided bool) {
				return u.tok[i].First || u.at(i-1) == ":", u.at(i) == "assert"
			},
			isBare: (*unit).bareCall, loses: (*unit).suppresses, assertWord: true,
		},
	}
}

func pythonMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"and False :", "if False and"}},
		{RunnerAsked, inCode, 0.95, []string{`"pytest" in sys . modules`, `"unittest" in sys . modules`,
			`"pytest" not in sys . modules`, `sys . modules . get ( "pytest" )`, `"PYTEST_CURRENT_TEST" in`,
			`"PYTEST_CURRENT_TEST" not in`, `getenv ( "PYTEST_CURRENT_TEST"`, `get ( "PYTEST_CURRENT_TEST"`,
			`environ [ "PYTEST_CURRENT_TEST" ]`, `"PYTEST_VERSION" in`}},
		{RunnerAsked, inCode, 0.9, []string{`hasattr ( sys , "_called_from_test" )`, `"test_" in * . filename`,
			`"pytest" in * . filename`}},
		{ExitTrick, inTests, 0.95, []string{"os . _exit ("}},
		{ExitTrick, inCode, 0.9, []string{"os . _exit ( 0 )"}},
		{ExitTrick, anywhere, 0.9, []string{"sys . exit ( 0 )", "sys . exit ( )", "raise SystemExit ( 0 )",
			"raise SystemExit ( )"}},
		{ExitTrick, inTests, 0.85, []string{"main ( exit = False )", "pytest . exit (", "atexit . register ("}},
		{ExitTrick, inTests, 0.6, []string{"exit ( 0 )"}},
		{ExitTrick, anywhere, 0.7, []string{"sys . excepthook ="}},
		{HookForged, anywhere, 0.85, []string{"def pytest_runtest_makereport ("}},
		{HookForged, anywhere, 0.8, []string{"def pytest_runtest_logreport (", "def pytest_report_teststatus ("}},
		{HookForged, anywhere, 0.85, []string{"def pytest_pyfunc_call ("}},
		{HookForged, anywhere, 0.7, []string{"def pytest_runtest_call ("}},
		{HookForged, anywhere, 0.6, []string{"def pytest_collection_modifyitems ("}},
		{HookForged, inTests, 0.85, []string{". outcome =", "__test__ = False"}},
		{HookForged, anywhere, 0.95, []string{"session . exitstatus ="}},
		{HookForged, anywhere, 0.9, []string{"TestCase . assertEqual =", "TestCase . assertTrue =",
			"TestCase . assertRaises =", "TestCase . assertIn =", "TestCase . fail =", "builtins . AssertionError ="}},
		{HookForged, anywhere, 0.85, []string{"TestCase . failureException ="}},
		{HookForged, inTests, 0.7, []string{"class AssertionError"}},
		{HookForged, inTests, 0.8, []string{"collect_ignore =", "collect_ignore_glob ="}},
		{"skip-conditional", inTests, 0.7, []string{"marks = pytest . mark . skip", "marks = pytest . mark . xfail",
			"marks = [ pytest . mark . skip"}},
		{ChecksOff, inCode, 0.85, []string{"verify = False", `"verify_signature" : False`, "@ csrf_exempt",
			"ssl . CERT_NONE", "_create_unverified_context"}},
		{ErrorSwallowed, inCode, 0.85, []string{"suppress ( Exception )"}},
		{ErrorSwallowed, inCode, 0.9, []string{"suppress ( BaseException )"}},
		{LooseType, inCode, 0.6, []string{": Any", "-> Any"}},
	}
}

func pythonNotes() []commentRule {
	return sharedNotes(
		comments(CoverageExcluded, 0.6, "", "pragma: no cover", "pragma: no branch", "pragma:no cover", "pragma: nocover"),
		comments(ComplaintOff, 0.9, "", "mypy: ignore-errors"),
		comments(ComplaintOff, 0.85, "=", "mypy: disable-error-code"),
		comments(ComplaintOff, 0.85, "", "mypy: allow-"),
		comments(ComplaintOff, 0.85, ":", "ruff: noqa", "flake8: noqa"),
		comments(ComplaintOff, 0.9, "", "pylint: skip-file", "pylint: disable-all"),
		comments(ComplaintOff, 0.6, ":", "noqa"),
		comments(ComplaintOff, 0.6, "[", "type: ignore", "type:ignore"),
		comments(ComplaintOff, 0.6, "=:", "pylint: disable", "pylint:disable"),
		comments(ComplaintOff, 0.6, "[", "pyright: ignore", "basedpyright: ignore"),
		comments(ComplaintOff, 0.85, "", "pyright: basic", "pyright: off"),
		[]commentRule{{Pattern: ComplaintOff, S: "pyright: report", Confidence: 0.6, Named: " ", Off: true}},
		comments(ComplaintOff, 0.6, " :", "nosec"),
		comments(ComplaintOff, 0.6, "[", "ty: ignore", "pyre-ignore", "pyre-fixme"),
		comments(ComplaintOff, 0.6, "=", "pytype: disable"),
		comments(ComplaintOff, 0.85, "", "pytype: skip-file"),
		comments(ComplaintOff, 0.6, "[", "pyrefly: ignore"),
		comments(ComplaintOff, 0.6, " ", "codespell:ignore"),
		comments(ComplaintOff, 0.6, ":", "pycodestyle: noqa"),
	)
}

// declareIndented finds the declarations of Python.
func (u *unit) declareIndented() {
	var open []int // declarations that have not ended
	finish := func(col int32, at int) {
		for len(open) > 0 && u.tok[u.decls[open[len(open)-1]].start].Col >= col {
			u.decls[open[len(open)-1]].end = at
			open = open[:len(open)-1]
		}
	}
	decorators := -1
	for n, head := range u.heads {
		i := int(head)
		stop := len(u.tok)
		if n+1 < len(u.heads) {
			stop = int(u.heads[n+1])
		}
		if u.at(i) != "@" || decorators < 0 {
			finish(u.tok[i].Col, i)
		}
		if u.at(i) == "@" {
			if decorators < 0 {
				decorators = i
			}
			continue
		}
		at := i
		if u.at(at) == "async" {
			at++
		}
		if (u.at(at) == "def" || u.at(at) == "class") && u.isWord(at+1) {
			d := decl{kind: declFunction, name: u.at(at + 1), at: at + 1, start: i, body: u.colon(at+1, stop), end: len(u.tok)}
			if u.at(at) == "class" {
				d.kind = DeclContainer
			}
			if decorators >= 0 {
				d.start = decorators
				u.decorate(&d, i)
			}
			u.decls = append(u.decls, d)
			open = append(open, len(u.decls)-1)
		}
		decorators = -1
	}
}

// colon returns the index after the colon that ends a header.
func (u *unit) colon(i, stop int) int {
	return min(u.find(i, stop, ":")+1, stop)
}

// decorate notes the Python decorators before i.
func (u *unit) decorate(d *decl, before int) {
	for i := d.start; i < before; i++ {
		if u.at(i) != "@" || !u.tok[i].First {
			continue
		}
		from := i
		name := ""
		for i++; i < before && (u.isWord(i) || u.at(i) == "."); i++ {
			if u.isWord(i) {
				name = u.at(i)
			}
		}
		if i < before && u.at(i) == "(" {
			i = u.closer(i)
		}
		d.annotations = append(d.annotations, annotation{name, from, min(i, before)})
		i--
	}
}

// headCol returns the column of the logical line of i.
func (u *unit) headCol(i int) int32 {
	if n := u.headIndex(i); n >= 0 {
		return u.tok[u.heads[n]].Col
	}
	return 0
}

// headIndex returns the index of the logical line of i; -1 before the first.
func (u *unit) headIndex(i int) int {
	n, found := slices.BinarySearch(u.heads, small(i))
	if found {
		return n
	}
	return n - 1
}

// isHead reports whether a Python statement begins at i.
func (u *unit) isHead(i int) bool {
	_, found := slices.BinarySearch(u.heads, small(i))
	return found
}

// indentedEnd returns the end of the block of the Python statement at i.
func (u *unit) indentedEnd(i, colon, end int) int {
	if colon < len(u.tok) && !u.tok[colon].First {
		return min(u.lineEnd(colon), end)
	}
	col := u.headCol(i)
	for j := colon; j < end; j++ {
		if j > colon+maxBlock {
			return j
		}
		if u.tok[j].First && u.tok[j].Col <= col && u.at(j) != ")" && u.at(j) != "]" && u.at(j) != "}" {
			return j
		}
	}
	return end
}

// indentedLoop reads the Python loop or comprehension at i.
func (u *unit) indentedLoop(i int) (loop, bool) {
	in := i + 1
	for in < min(i+12, len(u.tok)) && u.at(in) != "in" {
		in++
	}
	if u.at(in) != "in" {
		return loop{}, false
	}
	if !u.tok[i].First {
		n := u.headIndex(i)
		if n < 0 || u.at(int(u.heads[n])) != "assert" {
			return loop{}, false
		}
		head := int(u.heads[n])
		end := u.lineEnd(head)
		to := min(u.find(in+1, end, ")", "]", "}", "if"), end)
		return loop{at: i, list: u.listOver(in+1, to), body: [2]int{head, end}, head: [2]int{in + 1, to}}, true
	}
	from := u.colon(i, len(u.tok))
	to := from
	for to < len(u.tok) && (!u.tok[to].First || u.tok[to].Col > u.tok[i].Col) {
		to++
	}
	return loop{at: i, list: u.listOver(in+1, from-1), body: [2]int{from, to}, head: [2]int{in + 1, from - 1}}, true
}

// noteAlias returns the decorator that a name of a Python file is an alias of: slow =
// pytest.mark.skip(...).
func (u *unit) noteAlias(name string) (annotation, bool) {
	for _, head := range u.heads {
		i := int(head)
		if u.at(i) != name || u.at(i+1) != "=" {
			continue
		}
		for j := i + 2; j < u.lineEnd(i); j++ {
			if u.lang.skips[u.at(j)] {
				return annotation{u.at(j), j, u.lineEnd(i)}, true
			}
			if u.at(j) == "(" {
				break
			}
		}
	}
	return annotation{}, false
}

// offHeads returns the statements of Python that exclude or skip tests.
func (u *unit) offHeads() []int {
	if u.offAt == nil {
		u.offAt = []int{}
		for _, head := range u.heads {
			h := int(head)
			if s := u.at(h); s == "__test__" || s == "pytestmark" || s == "del" || u.at(h+2) == "__test__" ||
				u.at(h+1) == "=" && u.at(h+2) == "None" {
				u.offAt = append(u.offAt, h)
			}
		}
	}
	return u.offAt
}

// offersOfPackage reads __all__ and the imports of a Python package file.
func (u *unit) offersOfPackage(m *Model) {
	for _, head := range u.heads {
		switch i := int(head); {
		case u.at(i) == "__all__":
			for j := i + 1; j < u.lineEnd(i) && j < len(u.tok); j++ {
				if u.kindAt(j) == lex.Text {
					m.Offers = append(m.Offers, lex.Unquote(u.at(j)))
				}
			}
		case u.at(i) == "from" && path.Base(u.path) == "__init__.py" && u.tok[i].Col == 0:
			u.imported(m, i)
		}
	}
	m.Offers = slices.DeleteFunc(m.Offers, func(s string) bool { return strings.HasPrefix(s, "_") })
}

// imported reads the import of Python at i: from a import b, or (b, c).
func (u *unit) imported(m *Model, i int) {
	if s := u.at(i + 1); s == "__future__" || s == "typing" {
		return
	}
	end := u.lineEnd(i)
	at := i + 1
	for at < end && u.at(at) != "import" {
		at++
	}
	if u.at(at+1) == "(" {
		at, end = at+1, end-1
	}
	u.offer(m, at+1, end)
}

// readAssert notes the assertion in Python production code at i, other than a type hint.
func (u *unit) readAssert(f *Function, i int, _ *decl) bool {
	if u.at(i) != "assert" || !u.tok[i].First || u.inTests {
		return false
	}
	end := u.statementEnd(i)
	if comma := u.commaAfter(i+1, end); u.at(comma) == "," { // before the message
		end = comma
	}
	from, end := u.unwrapped(i+1, end)
	to := from
	for ; to < end && u.at(to) != ";"; to++ {
		switch s := u.at(to); {
		case s == "None" || s == "isinstance" || s == "callable" || s == "issubclass":
			return true
		case u.kindAt(to) == lex.Op && (s == "(" || s == "["):
			for k := to; k < u.closer(to); k++ {
				if u.at(k) == "isinstance" {
					return true
				}
			}
			to = u.closer(to) - 1
		}
	}
	if to-from < 3 {
		return true
	}
	g := Guard{Line: u.line(i), Key: mixAll(0, u.tok[from:to]), Words: u.once(appendTelling, u.tok[from:to]),
		S: u.text(i, to), Throws: true}
	g.Names, g.Whole = u.once(appendAsked, u.tok[i+1:min(to+1, len(u.tok))]), u.bagOf(
		u.tok[i:min(u.statementEnd(i), len(u.tok))])
	f.Guards = append(f.Guards, g)
	return true
}

// suppressed returns the handler that is the contextlib.suppress at i.
func (u *unit) suppressed(i int) *handler {
	if u.at(i) != "suppress" || u.at(i+1) != "(" || u.inTests {
		return nil
	}
	colon := u.closer(i+1) + 1
	guarded := u.once(appendTelling,
		u.tok[min(colon, len(u.tok)):max(min(colon, len(u.tok)), u.indentedEnd(i, colon, len(u.tok)))])
	return &handler{Line: u.line(i), S: u.text(i, u.closer(i+1)), Dropped: true, Expected: u.expectsAbsence(i),
		Guarded: guarded}
}

// suppresses reports whether the word at i, as in contextlib.suppress(AssertionError), suppresses
// failures of assertions.
func (u *unit) suppresses(i, _ int) bool {
	return u.at(i) == "suppress" && u.at(i+1) == "(" &&
		(u.at(i+2) == "AssertionError" || strings.HasSuffix(u.at(i+2), "Exception")) &&
		u.assertsWithin(u.closer(i+1)+1, u.indentedEnd(i, u.closer(i+1)+1, len(u.tok)), nil)
}

// pythonTest reports whether a function is a test by its name and class.
func (u *unit) pythonTest(d *decl) bool {
	parent := u.parentName(d)
	if !strings.HasPrefix(d.name, "test") || !u.inTests && !strings.Contains(parent, "Test") {
		return false
	}
	if d.parent >= 0 && u.at(u.decls[d.parent].at+1) == ":" && !strings.Contains(parent, "Test") {
		return false // runners collect a class by its base or its name
	}
	return (d.parent < 0 || u.decls[d.parent].kind == DeclContainer) &&
		!d.annotatedBy(func(s string) bool { return s == "fixture" })
}

// pythonSkips returns how the word at i skips its test, if that is decided.
func (u *unit) pythonSkips(_ *decl, i int) (s Skipping, decided bool) {
	name, before, call := u.at(i), u.at(i-1), u.at(i+1) == "("
	switch {
	case !u.lang.skips[name], name == "SkipTest" && before != "raise" && u.at(i-3) != "raise",
		oneOf(name, "skipIf", "skipif", "skipUnless"):
		return Runs, true
	case name == "importorskip" && call && before == ".":
		return Sometimes, true
	}
	return Runs, !call && name != "SkipTest" || !oneOf(before, ".", "raise") && name != "skipTest" && name != "skip"
}

// pythonSkip returns how all tests of a module are skipped, and where.
func (u *unit) pythonSkip() (Skipping, int) {
	under := -1 // the condition at the margin around the line
	for _, head := range u.heads {
		i := int(head)
		leaves := u.at(i) == "pytest" && u.at(i+2) == "skip" ||
			u.at(i) == "raise" && (u.at(i+1) == "SkipTest" || u.at(i+3) == "SkipTest")
		if u.tok[i].Col != 0 {
			switch w := u.at(under); {
			case leaves && w == "except": // what was tried is missing
				return Sometimes, i
			case leaves && (w == "if" || w == "elif"):
				return Sometimes, under
			}
			continue
		}
		under = i
		switch {
		case leaves:
			return Always, i
		case u.at(i) == "pytest" && u.at(i+2) == "importorskip":
			return Sometimes, i
		case u.at(i) != "pytestmark":
			continue
		}
		for j := i; j < u.lineEnd(i); j++ {
			switch s := u.at(j); {
			case s == "skip", s == "skipif" && u.constant(j+2):
				return Always, i
			case s == "skipif":
				return Sometimes, i
			}
		}
	}
	return Runs, 0
}
