package syntax

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// skipper is a function of a test file that may skip the calling test.
type skipper struct {
	skip   Skipping
	at, to int
}

// hook is code that runs before the tests of a scope and skips them.
type hook struct {
	skipper
	scope int // the declaration around it; -1 for the file
}

// findHooks finds the functions of a test file that skip tests or run before them.
func (u *unit) findHooks() {
	u.skippers, u.hooks = make(map[string]skipper), nil
	if !u.inTests {
		return
	}
	for range 2 { // also those that call others
		for i := range u.decls {
			d := &u.decls[i]
			if d.kind != declFunction || u.tests[i] || d.name == "" || u.skippers[d.name].skip == Always || u.holdsTests(i) {
				continue
			}
			if s := u.skipIn(d); s.skip != Runs {
				if u.isHook(i) {
					u.hooks = append(u.hooks, hook{s, d.parent})
				}
				u.skippers[d.leaf()] = s
			}
		}
	}
	u.hookCalls()
}

// skipIn returns the widest way in which a function skips tests.
func (u *unit) skipIn(d *decl) skipper {
	var found skipper
	left := maxSkipCalls
	for j := max(d.body, d.at+1); j < d.end && left > 0; j++ {
		if !u.isWord(j) {
			continue
		}
		s, at, to := u.skipsBy(d, j)
		if s == Runs {
			if s = u.aborts(d, j); s == Runs {
				s = u.skipsHere(d, j)
			}
			at, to = j, j
		}
		if s == Runs {
			continue
		}
		left--
		if at == j {
			at, to = u.conditionBefore(d, j), u.statementEnd(j)
		}
		if s > found.skip {
			found = skipper{s, at, to}
		}
	}
	return found
}

// aborts returns how the exception at i skips a test.
func (u *unit) aborts(d *decl, i int) Skipping {
	from := i // including the package before the name
	for (u.at(from-1) == "." || u.at(from-1) == "::" || u.at(from-1) == "\\") && u.isWord(from-2) {
		from -= 2
	}
	switch u.at(i) {
	case "TestAbortedException", "AssumptionViolatedException", "SkipException", "SkippedTestError",
		"SkippedWithMessageException", "SkipTestException", "IncompleteTestError", "IgnoreException", "InconclusiveException":
		if u.at(from-1) != "throw" && u.at(from-2) != "throw" {
			return Runs
		}
	case "return", "Exit":
		return Runs
	case "abort": // JUnit
		if u.at(i+1) != "(" || u.at(i-2) != "Assumptions" && (u.at(i-1) == "." || !u.names("Assumptions")) {
			return Runs
		}
	default:
		return Runs
	}
	if u.conditional(d, i) {
		return Sometimes
	}
	return Always
}

// skipsBy returns how the function of the file called at i skips the test, and where.
func (u *unit) skipsBy(d *decl, i int) (s Skipping, at, to int) {
	found, ok := u.skippers[u.at(i)]
	if !ok || u.lang.skips[u.at(i)] || i >= found.at && i < found.to {
		return u.aborts(d, i), u.conditionBefore(d, i), u.statementEnd(i)
	}
	switch before := u.at(i - 1); before {
	case ".", "->", "::", "?.":
		if on := u.at(i - 2); !oneOf(on, "self", "this", "$this", "static", "super") && !u.lang.receivers {
			return Runs, 0, 0
		}
	case "def", "function", "func", "fun":
		return Runs, 0, 0
	}
	fixture := u.lang.shape == indents && i < d.body && i > d.at
	if u.at(i+1) != "(" && !fixture && !(u.lang.shape == ends && (u.tok[i].First || rubyBegins()[u.at(i-1)])) {
		return Runs, 0, 0
	}
	if found.skip == Always && u.conditional(d, i) {
		return Sometimes, u.conditionBefore(d, i), u.statementEnd(i)
	}
	return found.skip, found.at, found.to
}

// isHook reports whether a function runs before the tests of its scope.
func (u *unit) isHook(i int) bool {
	d := &u.decls[i]
	name := d.leaf()
	if hookNames()[name] {
		return true
	}
	if slices.ContainsFunc(d.annotations, func(a annotation) bool {
		return hookNotes()[a.name] || a.name == "fixture" &&
			anyOf(a.from, a.to, func(j int) bool { return u.at(j) == "autouse" && u.at(j+2) == "True" })
	}) {
		return true
	}
	return d.parent >= 0 && u.lang.typed && u.decls[d.parent].name == name // a constructor
}

var (
	hookNames = sync.OnceValue(wordSet("setUp setUpClass setUpModule setUpTestData asyncSetUp setup setup_method " +
		"setup_class setup_module setup_function SetUp SetupTest SetupSuite SetupSubTest BeforeTest " +
		"setUpBeforeClass beforeTest beforeSpec beforeEach beforeContainer beforeAny beforeInvocation TestMain " +
		"InitializeAsync before_setup before_all mount __construct __init__"))
	hookNotes = sync.OnceValue(wordSet("BeforeEach BeforeAll Before BeforeClass BeforeMethod BeforeTest " +
		"BeforeSuite SetUp OneTimeSetUp TestInitialize ClassInitialize Setup before beforeClass BeforeTestMethod"))
	hookCallNames = sync.OnceValue(wordSet("beforeEach beforeAll before setup suiteSetup setupAll beforeTest " +
		"beforeSpec beforeContainer beforeAny beforeEachTest prepend_before background around"))
)

// hookCalls finds calls that register code to run before tests, such as beforeEach(() => ...).
func (u *unit) hookCalls() {
	for i := range u.tok {
		if !u.isWord(i) || !hookCallNames()[u.at(i)] || u.at(i-1) == "def" || u.at(i-1) == "function" || u.at(i-1) == "fun" {
			continue
		}
		if before := u.at(i - 1); before == "." && u.at(i-2) != "test" && u.at(i-2) != "config" || before == "->" ||
			before == ":" {
			continue
		}
		if d, ok := u.hookBlock(i); ok {
			if s := u.skipIn(&d); s.skip != Runs {
				u.hooks = append(u.hooks, hook{s, u.around(i)})
			}
		}
	}
}

// hookBlock returns the code of the hook at i, as a declaration without a name.
func (u *unit) hookBlock(i int) (decl, bool) {
	d := decl{start: i, at: i, body: i + 1, end: i}
	switch {
	case u.lang.shape == ends:
		for j := i + 1; j < len(u.tok) && u.tok[j].Line == u.tok[i].Line; j++ {
			if s := u.at(j); (s == "do" || s == "{") && u.match[j] > int32(j) {
				d.body, d.end = j+1, int(u.match[j])+1
				return d, true
			}
		}
	case u.at(i+1) == "(":
		d.body, d.end = i+2, u.closer(i+1)
		return d, true
	case u.at(i+1) == "{" && u.lang.trailing:
		d.body, d.end = i+2, u.closer(i+1)
		return d, true
	}
	return d, false
}

// around returns the innermost declaration around a token; -1 for none.
func (u *unit) around(i int) int {
	best := -1
	for n := range u.decls {
		if d := &u.decls[n]; d.start > i {
			break
		} else if i < d.end {
			best = n
		}
	}
	return best
}

// within reports whether a declaration is another one or inside it; -1 is the file.
func (u *unit) within(i, scope int) bool {
	for i >= 0 && i != scope {
		i = u.decls[i].parent
	}
	return i == scope
}

// hookedSkips notes the hooks that skip a test.
func (u *unit) hookedSkips(i int, note onSkip) {
	for _, h := range u.hooks {
		if u.within(u.decls[i].parent, h.scope) {
			note(h.skip, h.at, h.to)
		}
	}
	if u.inTests && !u.lang.subtests {
		u.declaredSometimes(i, note)
	}
}

// declaredSometimes notes the condition under which a test is declared.
func (u *unit) declaredSometimes(i int, note onSkip) {
	d := &u.decls[i]
	around := decl{start: -1, at: -1}
	if d.parent >= 0 {
		around = u.decls[d.parent]
	}
	at := d.start
	if u.lang.shape == ends {
		if s := u.at(d.end); (s == "if" || s == "unless") && !u.tok[d.end].First {
			u.noteDeclared(d.end, u.lineEnd(d.end), note)
		} else if at := u.blockAround(d, around.body); at > 0 {
			u.noteDeclared(at, u.lineEnd(at), note)
		}
		return
	}
	if u.lang.shape == indents {
		n := u.headIndex(at)
		if u.tok[at].Col == 0 {
			return
		}
		for n--; n >= 0 && int(u.heads[n]) > around.at; n-- {
			head := int(u.heads[n])
			if u.tok[head].Col < u.tok[at].Col {
				if w := u.at(head); w == "if" || w == "elif" {
					u.noteDeclared(head, u.colon(head+1, len(u.tok)), note)
				}
				return
			}
		}
		return
	}
	for j, steps := at-1, 0; j > max(around.body, 0) && steps < maxSteps; j, steps = j-1, steps+1 {
		switch s := u.at(j); {
		case u.kindAt(j) != lex.Op:
		case (s == ")" || s == "}" || s == "]") && u.opener(j) > 0:
			j = u.opener(j)
		case s == "{":
			if u.at(j-1) == ")" && u.opener(j-1) > 0 && u.at(u.opener(j-1)-1) == "if" {
				u.noteDeclared(u.opener(j-1)-1, j, note)
			}
			return
		}
	}
}

// noteDeclared notes the condition [at, to) under which a test is declared.
func (u *unit) noteDeclared(at, to int, note onSkip) {
	n := len(u.skipPlaces)
	note(Sometimes, at, to)
	for i := n; i < len(u.skipPlaces); i++ {
		u.skipPlaces[i].declares = true
	}
}

// maxSteps limits the search for the block around a test.
const maxSteps = 2000
