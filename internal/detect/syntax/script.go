package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

func javascript() Language {
	return Language{
		Name: "javascript", exts: []string{".js", ".jsx", ".mjs", ".cjs"}, typed: true, lines: true,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Regex: true, Dollar: true,
			Quotes: []lex.Quote{doubleQuote(), singleQuote(), {Open: "`", Close: "`", Escape: '\\', Lines: true, Code: "${"}}},
		functions: words("function"), containers: words("class namespace interface enum"),
		suites:  words("describe context suite xdescribe fdescribe xcontext fcontext describeIf"),
		tests:   words("it test specify xit xtest fit xspecify ftest tap bench"),
		skipped: words("xdescribe xcontext xit xtest xspecify"), focused: words("fdescribe fcontext fit ftest"),
		skips:   words("skip todo skipIf runIf pending"),
		asserts: words("expect assert expectTypeOf assertType should sinon"),
		throws:  words("throw reject"), handlers: words("catch"),
		testSuffixes: []string{".test", ".spec", "_test", "-test", ".e2e", ".cy", "-spec", "_spec"},
		testPrefixes: []string{"test-", "test_"},
		testFolders:  []string{"__tests__", "test", "tests", "spec", "specs", "__mocks__", "e2e", "cypress"},
		marks:        scriptMarks(), notes: scriptNotes(),
		declarations: declarations{arrow: (*unit).arrowFunction},
		testForms: testForms{strictPrefixes: []string{"test-"}, skipsAt: (*unit).scriptSkips, readSkips: (*unit).options,
			strictSuffixes: []string{".test", ".spec", "_test", "-test", "_spec", "-spec", ".e2e", ".cy"}},
		functionForms: functionForms{public: (*unit).scriptPublic, readOffers: (*unit).handedOn,
			catches: (*unit).promiseCatch,
			asks:    words("argv argv0 execArgv stack env mainModule main cache parent title captureStackTrace")},
		assertionForms: assertionForms{ofTypes: words("expectTypeOf assertType"), isAssertion: (*unit).scriptAsserts,
			isBare: func(u *unit, i, end int, alone bool) bool {
				return (u.at(i) == "expect" && !alone && u.at(i-1) != "." || u.at(i) == "should" && alone) && u.chainEnds(end)
			},
			loses: func(u *unit, i, from int) bool {
				return u.at(i) == "expect" && u.unawaited(i) ||
					u.at(i) == "then" && u.at(i-1) == "." && u.at(i+1) == "(" && u.floats(i, from)
			}},
	}
}

func typescript() Language {
	l := javascript()
	l.Name, l.Family, l.exts = "typescript", "javascript", []string{".ts", ".tsx", ".mts", ".cts"}
	l.marks = typeScriptMarks()
	return l
}

func scriptMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false ) {", "if ( false &&"}},
		{RunnerAsked, inCode, 0.9, []string{"process . env . JEST_WORKER_ID", "process . env . VITEST",
			"process . env . VITEST_WORKER_ID", "typeof jest", `execArgv . includes ( "--test" )`, "globalThis . jest",
			"global . jest", "globalThis . describe", "global . describe", "globalThis . it ", "global . it ",
			"globalThis . expect", "globalThis . vi ", "typeof it ", "typeof expect", "typeof describe", "typeof beforeEach",
			"typeof afterEach"}},
		{RunnerAsked, inCode, 0.85, []string{`process . env . NODE_ENV === "test"`, `process . env . NODE_ENV == "test"`,
			`process . env . NODE_ENV !== "test"`, `process . env [ "NODE_ENV" ] === "test"`,
			`process . env [ "NODE_ENV" ] == "test"`, `process . env [ "NODE_ENV" ] !== "test"`,
			`"test" === process . env . NODE_ENV`, `process . env . npm_lifecycle_event === "test"`,
			`process . env . npm_lifecycle_event !== "test"`, "typeof suite", "globalThis . test "}},
		{RunnerAsked, inCode, 0.9, []string{"globalThis . beforeEach", "meta . vitest", "typeof vi",
			"process . env . NODE_TEST_CONTEXT", `process . env [ "JEST_WORKER_ID" ]`, `process . env [ "VITEST" ]`,
			`process . env [ "VITEST_WORKER_ID" ]`, `process . env [ "NODE_TEST_CONTEXT" ]`}},
		{RunnerAsked, inCode, 0.85, []string{`meta . env . MODE === "test"`, `meta . env ?. MODE === "test"`}},
		{ExitTrick, anywhere, 0.9, []string{"process . exit ( 0 )", "process . exit ( )"}},
		{ExitTrick, inTests, 0.9, []string{"process . exitCode = 0"}},
		{ExitTrick, anywhere, 0.9, []string{"process . reallyExit ("}},
		{HookForged, inTests, 0.85, []string{"assert [ * ] =", "chai . expect ="}},
		{HookForged, inTests, 0.9, []string{"assert . equal =", "assert . strictEqual =", "assert . deepEqual =",
			"assert . throws =", "assert . ok ="}},
		{HookForged, anywhere, 0.85, []string{"globalThis . assert =", "global . expect =", "global . it =",
			"global . test ="}},
		{HookForged, inTests, 0.7, []string{"AssertionError ="}},
		{HookForged, inTests, 0.6, []string{"expect = "}},
		{HookForged, anywhere, 0.9, []string{"globalThis . expect ="}},
		{ChecksOff, inCode, 0.85, []string{"rejectUnauthorized : false"}},
		{ChecksOff, inCode, 0.9, []string{`NODE_TLS_REJECT_UNAUTHORIZED = "0"`}},
	}
}

func typeScriptMarks() []markRule {
	return append(scriptMarks(),
		markRule{LooseType, inCode, 0.6, []string{": any", "as any", "as unknown as"}},
		markRule{RunnerAsked, inCode, 0.9, []string{"typeof ( globalThis as any ) . expect",
			"typeof ( globalThis as any ) . describe", "typeof ( globalThis as any ) . jest"}},
	)
}

func scriptNotes() []commentRule {
	return sharedNotes(
		comments(CoverageExcluded, 0.6, "", "istanbul ignore", "c8 ignore", "v8 ignore", "node:coverage"),
		comments(ComplaintOff, 0.9, "", "@ts-nocheck"),
		comments(ComplaintOff, 0.7, "", "@ts-ignore"),
		comments(ComplaintOff, 0.6, "", "@ts-expect-error"),
		comments(ComplaintOff, 0.6, " ", "eslint-disable"),
		[]commentRule{{Pattern: ComplaintOff, S: "eslint ", Confidence: 0.6, Named: " ", Off: true}},
		comments(ComplaintOff, 0.6, " ", "biome-ignore", "deno-lint-ignore", "oxlint-disable"),
		comments(ComplaintOff, 0.6, ":", "tslint:disable"),
		comments(ComplaintOff, 0.6, "[", "$FlowFixMe", "$FlowIgnore", "$FlowExpectedError"),
		comments(ComplaintOff, 0.85, "", "@noflow"),
		comments(ComplaintOff, 0.6, "", "jshint ignore"),
		comments(ComplaintOff, 0.6, " ", "jscs:disable", "standard-disable", "Stryker disable"),
	)
}

// arrowFunction reads name = (parameters) => body.
func (u *unit) arrowFunction(i int) {
	p, end := u.beforeArrow(i)
	if name := u.assigned(p); name != "" {
		u.decls = append(u.decls, u.annotated(decl{kind: declFunction, name: name, at: p, start: p, body: i + 1, end: end}))
	}
}

// beforeArrow returns the index before the parameters of the => at i, and the end of its body.
func (u *unit) beforeArrow(i int) (before, end int) {
	p := u.beforeType(i - 1)
	if u.at(p) == ")" {
		p = u.opener(u.beforeInitialiser(p)) - 1
	} else if u.isWord(p) {
		p--
	}
	if u.at(i+1) == "{" {
		return p, u.closer(i + 1)
	}
	return p, u.statementEnd(i + 1)
}

// beforeType skips the result type: (a): T<U> =>.
func (u *unit) beforeType(i int) int {
	for j := i; j > 0 && j > i-30 && u.at(j) != ")" && u.at(j) != ";" && u.at(j) != "=" && u.at(j) != ","; j-- {
		if u.at(j) == ":" && u.at(j-1) == ")" {
			return j - 1
		}
	}
	return i
}

// assigned returns the name that the expression after i is assigned to; empty for none.
func (u *unit) assigned(i int) string {
	for i >= 0 && (u.at(i) == "async" || u.at(i) == "static") {
		i--
	}
	if u.at(i) != "=" && u.at(i) != ":" || !u.isWord(i-1) {
		return ""
	}
	return u.at(i - 1)
}

// exportedLater reports whether a JavaScript name is exported apart from its declaration.
func (u *unit) exportedLater(d *decl) bool {
	if n := d.start - 1; n >= 0 && u.tok[n].Line == u.tok[d.at].Line && oneOf(u.at(n), "export", "default", "=") {
		for j := n; j >= 0 && j > n-6; j-- {
			if w := u.at(j); w == "export" || w == "exports" {
				return true
			}
		}
	}
	if u.exports == nil {
		u.findExports()
	}
	return u.exports[d.name]
}

// findExports notes the names that are exported apart from their declaration.
func (u *unit) findExports() {
	u.exports = make(set)
	for i := range u.tok {
		t := &u.tok[i]
		if t.Kind != lex.Word || t.S != "export" && t.S != "exports" || u.at(i+1) != "{" &&
			!(u.at(i+1) == "=" && u.at(i+2) == "{") {
			if t.Kind == lex.Word && t.S == "exports" || t.S == "export" && u.at(i+1) == "default" {
				u.exports[u.at(i+2)] = true
			}
			continue
		}
		open := i + 1
		if u.at(open) == "=" {
			open++
		}
		for j := open; j < u.closer(open); j++ {
			if u.isWord(j) {
				u.exports[u.at(j)] = true
			}
		}
	}
}

// handedOn reads export { a, b as c }, with or without a source, and module.exports = { a, b }.
func (u *unit) handedOn(m *Model) {
	own := make(set)
	for i := range u.decls {
		own[u.decls[i].name] = true
	}
	for i := range u.tok {
		if !u.isWord(i) || u.at(i) != "export" && u.at(i) != "exports" {
			continue
		}
		open := i + 1
		for s, next := u.at(open), u.at(open+1); s == "=" || s == "declare" || s == "type" &&
			(next == "{" || next == "*") || s == "const" && next == "enum"; s, next = u.at(open), u.at(open+1) {
			open++
		}
		switch s := u.at(open); {
		case s == "{":
			u.offer(m, open+1, u.closer(open)-1)
		case u.at(i) == "export" && exportable()[s] && u.isWord(open+1):
			m.Offers = append(m.Offers, u.at(open+1))
		case s == "." && u.at(open+2) == "=":
			m.Offers = append(m.Offers, u.at(open+1))
		case s == "*":
			m.Offers = append(m.Offers, "*")
		}
	}
	m.Offers = slices.DeleteFunc(m.Offers, func(s string) bool { return own[s] })
}

// exportable are words between export and a name.
var exportable = sync.OnceValue(wordSet("const let var type interface enum namespace"))

var avaAsserts = sync.OnceValue(wordSet("is not deepEqual like true false truthy falsy throws throwsAsync regex " +
	"snapshot equal strictEqual same ok notOk equals notThrows pass fail strictSame rejects resolves match " +
	"notMatch has hasStrict error ifError notSame strictNotSame notEqual not resolveMatch doesNotThrow " +
	"deepStrictEqual notStrictEqual type"))

// unawaited reports whether expect(...).rejects or .resolves is a statement without await.
func (u *unit) unawaited(i int) bool {
	end := u.closer(i + 1)
	if u.at(i+1) != "(" || u.at(end) != "." || u.at(end+1) != "rejects" && u.at(end+1) != "resolves" {
		return false
	}
	return u.at(i-1) == "void" || u.tok[i].First && (u.at(i-1) == ";" || u.at(i-1) == "{" || u.at(i-1) == "}")
}

// floats reports whether the then at i asserts in a promise that is not awaited.
func (u *unit) floats(i, from int) bool {
	begin := u.chainBegin(i)
	if u.countsAsserts(from, i) || !u.statementBegins(begin) || u.at(begin) == "await" || u.at(begin) == "return" ||
		!u.assertsWithin(i+1, u.closer(i+1), nil) {
		return false
	}
	return !anyOf(i, u.statementEnd(i), func(j int) bool {
		s := u.at(j)
		return oneOf(s, "done", "resolve", "finish", "end", "next", "cb", "callback")
	})
}

// countsAsserts reports whether a test declares its number of assertions.
func (u *unit) countsAsserts(from, to int) bool {
	return anyOf(from, to, func(j int) bool {
		return u.at(j+1) != ":" &&
			oneOf(u.at(j), "plan", "assertions", "hasAssertions", "expectAssertions", "done", "assertionCount")
	})
}

// chainEnds reports whether no matcher is called in the chain at j.
func (u *unit) chainEnds(j int) bool {
	for u.at(j) == "." && u.isWord(j+1) {
		s := u.at(j + 1)
		_, known := strengthOf(plain(s))
		matcher := known && len(s) > 2 && strings.HasPrefix(s, "to") && s[2] >= 'A' && s[2] <= 'Z'
		if !matcher && !chainLinks()[s] || u.at(j+2) == "(" {
			return false
		}
		j += 2
	}
	return u.endsStatement(j)
}

// chainLinks are words of assertion libraries that do not assert by themselves.
var chainLinks = sync.OnceValue(wordSet("not resolves rejects to be been is that which and has have with at of " +
	"same but does still also deep nested own ordered any all itself"))

// options reads the options between a test's title and function, such as { only: true }.
func (u *unit) options(t *Test, d *decl, note onSkip) {
	if d.kind != declTest && d.kind != declSuite || u.at(d.body) != "," {
		return
	}
	open := d.body + 1
	if u.isWord(open) && u.at(open+1) == "," { // by name
		open = u.valueOf(open)
	}
	if u.at(open) != "{" {
		return
	}
	end := u.closer(open) - 1
	for j := open + 1; j < end; j++ {
		if u.opens(j) {
			j = u.closer(j) - 1
			continue
		}
		if before := u.at(j - 1); before != "{" && before != "," {
			continue
		}
		short := u.at(j+1) == "," || u.at(j+1) == "}" // { skip }
		switch u.at(j) {
		case "only":
			t.Focus = t.Focus || u.at(j+1) == ":" && u.at(j+2) == "true"
		case "skip", "todo":
			value := j + 2
			if short {
				value = j
			}
			if short || u.at(j+1) == ":" {
				u.option(value, j, min(u.commaAfter(j, end)+1, end), note)
			}
		}
	}
}

// option notes a skip, in [at, to), by the value at i or that of the variable there.
func (u *unit) option(i, at, to int, note onSkip) {
	if u.isWord(i) && (u.at(i+1) == "," || u.at(i+1) == "}") {
		if given := u.valueOf(i); given >= 0 {
			i = given
		}
	}
	ends := u.at(i+1) == "," || u.at(i+1) == "}" || u.endsStatement(i+1)
	switch value := u.at(i); {
	case ends && (value == "false" || value == "undefined" || value == "null"):
	case ends && (value == "true" || u.kindAt(i) == lex.Text):
		note(Always, at, to)
	case u.at(at) == "skip":
		note(Sometimes, at, to)
	}
}

// destructures reports whether a test's function destructures its argument into a name.
func (u *unit) destructures(d *decl, name string) bool {
	for j := d.body; j < min(d.end, d.body+20) && u.at(j) != "=>"; j++ {
		if u.at(j) == name && (u.at(j-1) == "{" || u.at(j-1) == ",") && (u.at(j+1) == "}" || u.at(j+1) == ",") {
			return true
		}
	}
	return false
}

// aliased is the meaning of an alias: a call or a decorator that skips, or may skip.
type aliased struct {
	word   string
	always bool
}

// skipsAs reports whether the tokens name a test or suite that may be skipped.
func (u *unit) skipsAs(from, to int) (aliased, bool) {
	a := aliased{always: true}
	skips := false
	for j := from; j < to; j++ {
		s := u.at(j)
		switch {
		case s == "=>" || s == "function" || s == "{":
			return a, false
		case s == "?" || s == "&&" || s == "||":
			a.always = false
		case u.isWord(j) && (u.lang.tests[s] || u.lang.suites[s]) && u.at(j+1) != "(" && u.at(j-1) != "'":
			if before := u.at(j - 1); before == "." && !slices.Contains([]string{"vitest", "t", "test", "jest", "mocha"},
				u.at(j-2)) {
				continue
			}
			skips = skips || u.lang.skipped[s] || u.at(j+1) == "." && (u.at(j+2) == "skip" || u.at(j+2) == "todo")
			if a.word == "" || !u.lang.skipped[s] {
				a.word = s
			}
		}
	}
	return a, skips && a.word != ""
}

// calledBack returns the call that takes the arrow function at i whose first parameter is name.
func (u *unit) calledBack(i int, name string) uint32 {
	open := i - 1
	if u.at(open) != ")" || u.opener(open) <= 0 {
		return 0
	}
	open = u.opener(open)
	if u.at(open+1) != name {
		return 0
	}
	for j := open - 1; j > max(0, open-40); j-- {
		switch u.at(j) {
		case ")", "]", "}":
			if j = u.opener(j); j < 0 {
				return 0
			}
		case "(":
			if u.isWord(j - 1) {
				return Hash(u.at(j - 1))
			}
			return 0
		case ";", "{":
			return 0
		}
	}
	return 0
}

// scriptAsserts reports whether the word at i is an assertion of Chai, Sinon or Ava.
func (u *unit) scriptAsserts(i int, _ set) (asserts, decided bool) {
	s, next, before, on := u.at(i), u.at(i+1), u.at(i-1), u.at(i-2)
	switch {
	case s == "should":
		return before == "." || next == ".", true
	case (s == "assert" || s == "sinon") && next == ".":
		return u.at(i+2) == "assert" || s == "assert", true
	}
	return next == "(", before == "." && avaAsserts()[s] &&
		(len(on) <= 3 && strings.HasSuffix(on, "t") || on == "Assert" || u.plans(i-2))
}

// plans reports whether the variable at i is made from the handle of a test: plan = tspl(t).
func (u *unit) plans(i int) bool {
	from := u.valueOf(i)
	return from >= 0 && u.at(from+1) == "(" && u.at(from+2) == "t"
}

// scriptSkips returns how the word at i skips its test, if that is decided.
func (u *unit) scriptSkips(d *decl, i int) (s Skipping, decided bool) {
	name, on := u.at(i), u.at(i-2)
	switch {
	case !u.lang.skips[name] || u.at(i+1) != "(":
		return Runs, true
	case u.tok[i].First && (name == "skip" && u.destructures(d, name) || name == "pending" && u.valueOf(i) < 0):
		return Runs, false
	}
	return Runs, u.at(i-1) != "." || !oneOf(on, "this", "t", "ctx", "context", "test") ||
		on == "test" && u.at(i+2) != ")" && u.at(i+2) != "true"
}

// scriptPublic reports whether other modules may use a declaration.
func (u *unit) scriptPublic(d *decl) bool {
	if d.parent >= 0 { // a member of a class
		return !strings.HasPrefix(d.name, "_") && !strings.HasPrefix(d.name, "#") && !has(d.modifiers, "private") &&
			!has(d.modifiers, "protected")
	}
	return has(d.modifiers, "export") || u.exportedLater(d)
}

// promiseCatch reads the .catch(() => {}) at i.
func (u *unit) promiseCatch(h *handler, i int) {
	end := u.closer(i + 1)
	h.S, h.Body = u.text(i, min(end, i+14)), u.mixed(1, i+1, end)
	for k := i + 2; k < min(end, i+9); k++ {
		if u.at(k) == "=>" {
			h.Dropped = u.at(k+1) == "{" && u.dropped(k+2, u.closer(k+1)-1) || oneOf(u.at(k+1), "null", "undefined")
		}
	}
}
