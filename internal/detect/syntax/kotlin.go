package syntax

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

func kotlin() Language {
	l := java()
	l.Name, l.Family, l.exts, l.typed, l.lines = "kotlin", "java", []string{".kt", ".kts"}, false, true
	l.rules.Nested = true
	l.rules.Quotes = []lex.Quote{{Open: `"""`, Close: `"""`, Lines: true, Code: "${"},
		{Open: `"`, Close: `"`, Escape: '\\', Code: "${"}, {Open: "`", Close: "`", Name: true}}
	l.functions, l.containers = words("fun"), words("class interface object")
	l.tests = words("test should it expect xtest xit xshould xexpect withData xwithData withTests withContexts " +
		"scenario xscenario then Then xthen xThen")
	l.suites = words("describe context given feature When Given `when` And and xdescribe xcontext xgiven xGiven xWhen " +
		"xwhen xAnd xand xfeature")
	l.skipped = words("xtest xit xshould xexpect xdescribe xcontext xwithData xscenario xthen xThen xgiven xGiven " +
		"xWhen xwhen xAnd xand xfeature")
	l.asserts = l.asserts.and("shouldBe shouldNotBe shouldThrow shouldContain shouldHaveSize shouldBeEqual coVerify " +
		"expectThat shouldBeNull shouldBeTrue")
	l.skips = l.skips.and("Ignored")
	l.throws = l.throws.and("error")
	l.testFolders = append(l.testFolders, "commontest", "jvmtest")
	l.marks = append(l.marks, kotlinMarks()...)
	l.declarations = declarations{declare: (*unit).declareKotlin, afterTitle: (*unit).kotestBlock, InitBlocks: true}
	l.isTest, l.over, l.namedArguments = nil, "", true
	l.skipsFile, l.skipsAt, l.readSkips = (*unit).specSkip, (*unit).kotlinSkips, (*unit).kotestSkips
	l.functionForms = functionForms{asks: l.asks, replaces: (*unit).replacedFailure, lastValue: true,
		public: func(_ *unit, d *decl) bool {
			return !has(d.modifiers, "private") && !has(d.modifiers, "internal") && !has(d.modifiers, "protected")
		}}
	l.assertionForms = assertionForms{
		isAssertion: func(u *unit, i int, _ set) (asserts, decided bool) { return true, u.infix(i) },
		isBare:      (*unit).bareCall, loses: (*unit).caughtByCall,
		infix: true, trailing: true,
	}
	return l
}

// declareKotlin finds the declarations of Kotlin.
func (u *unit) declareKotlin() {
	u.declareBraces()
	titled := u.titledSpecs()
	for i := range u.tok {
		switch t := &u.tok[i]; {
		case titled && t.Kind == lex.Text && t.First:
			u.declareTitled(i)
		case t.S == "init" && t.Kind == lex.Word && u.at(i+1) == "{":
			u.decls = append(u.decls, decl{kind: declFunction, name: "init", at: i, start: i, body: i + 1,
				end: u.closer(i + 1), modifiers: []string{"private"}})
		}
	}
}

func kotlinMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"|| true ) {", "&& false ) {", "if ( false &&"}},
		{ExitTrick, anywhere, 0.9, []string{"exitProcess ( 0 )"}},
		{RunnerAsked, inCode, 0.95, []string{`forName ( "io.kotest.*"`, `forName ( "org.junit.*"`,
			`getProperty ( "org.gradle.test.worker" )`}},
		{RunnerAsked, inCode, 0.9, []string{`startsWith ( "org.junit*"`, `startsWith ( "io.kotest*"`,
			`contains ( "junit" )`}},
		{RunnerAsked, inCode, 0.85, []string{`"junit" in`}},
		{ComplaintOff, anywhere, 0.6, []string{"@ Suppress ("}},
		{ComplaintOff, anywhere, 0.85, []string{"@ file : Suppress"}},
		{CoverageExcluded, anywhere, 0.7, []string{"@ ExcludeFromCoverage", "@ CoverageIgnore"}},
	}
}

// receiver skips the receiver type of a Kotlin extension at i.
func (u *unit) receiver(i int) int {
	for j := i; u.isWord(j); {
		j++
		if u.at(j) == "<" {
			j = u.angles(j)
		}
		if u.at(j) == "?" {
			j++
		}
		if u.at(j) != "." && u.at(j) != "?." {
			break
		}
		j++
		i = j
	}
	return i
}

// specSkip returns the skip of the only class of a Kotest file: @Ignored class A.
func (u *unit) specSkip() (Skipping, int) {
	class := -1
	for i := range u.tok {
		if u.at(i) == "class" && u.tok[i].Col == 0 {
			if class >= 0 {
				return Runs, 0
			}
			class = i
		}
	}
	for i := class - 1; i > max(0, class-30) && u.at(i) != "import" && u.at(i) != "package"; i-- {
		if s, ok := strings.CutPrefix(u.at(i), "@"); (ok || u.at(i-1) == "@") && oneOf(s, "Ignored", "Ignore", "Disabled") {
			return Always, i
		}
	}
	return Runs, 0
}

// infix reports whether the word at i is a matcher of Kotlin, as in x shouldBe y.
func (u *unit) infix(i int) bool {
	if !u.lang.infix || !strings.HasPrefix(u.at(i), "should") || u.tok[i].First {
		return false
	}
	before := u.at(i - 1)
	return u.kindAt(i-1) != lex.Op || before == ")" || before == "]" || before == "}"
}

// caughtByCall reports whether the runCatching at i drops failures of assertions: nothing uses its result.
func (u *unit) caughtByCall(i, _ int) bool {
	return u.at(i) == "runCatching" && u.at(i+1) == "{" && u.statementBegins(i) && u.at(u.closer(i+1)) != "." &&
		u.assertsWithin(i+1, u.closer(i+1), nil)
}

// replacedFailure returns the handler that is the runCatching at i, if another value replaces the error.
func (u *unit) replacedFailure(i int) *handler {
	if u.at(i) != "runCatching" || u.at(i+1) != "{" {
		return nil
	}
	end := u.closer(i + 1)
	next := u.at(end + 1)
	if u.at(end) == "." && !oneOf(next, "getOrDefault", "getOrNull", "getOrElse") || u.at(end) != "." &&
		!u.statementBegins(i) || next == "getOrElse" && u.fails(end+2, u.closer(end+2)) {
		return nil
	}
	return &handler{Line: u.line(i), S: u.text(i, min(end+2, len(u.tok))), Broad: true, Dropped: true,
		Guarded: u.once(appendTelling, u.tok[i+1:end])}
}

// dataCall reads the rows of a Kotest table whose parenthesis opens at open, and its test.
func (u *unit) dataCall(d *decl, open int) {
	list := open
	if o := u.listAt(open+1, u.closer(open)); o >= 0 && rowMakers()[u.at(o-1)] {
		list = o
	}
	d.cases = u.elements(list)
	d.kind, d.name = declTest, "withData"
	d.body, d.end = open, u.closer(open)
	if u.at(d.end) == "{" {
		d.body, d.end = d.end, u.closer(d.end)
		u.decls = append(u.decls, *d)
	}
}

// titledSpecs reports whether the file may have Kotest tests of the form "adds" { ... }.
func (u *unit) titledSpecs() bool {
	return u.inTests &&
		slices.ContainsFunc([]string{"kotest", "kotlintest", "StringSpec", "FreeSpec", "WordSpec"}, u.names)
}

// declareTitled reads the test or group whose title is at i: "a" {}, "a".config(...) {}, "a" - {},
// "a" should {}.
func (u *unit) declareTitled(i int) {
	d := decl{kind: declTest, name: strings.Clone(lex.Unquote(u.at(i))), start: i, at: i, body: i + 1, end: i + 1,
		calls: []string{""}}
	u.passConfig(&d)
	switch u.at(d.end) {
	case "-", "should", "Should", "When", "`when`", "shouldNot":
		d.kind = declSuite
		d.end++
	}
	if u.at(d.end) != "{" || u.tok[d.end].First {
		return
	}
	d.end = u.closer(d.end)
	u.decls = append(u.decls, d)
}

// kotestBlock skips the rest of a Kotest call after its title, and reports whether it may be a
// test, as other libraries use the same words.
func (u *unit) kotestBlock(d *decl) bool {
	u.passConfig(d)
	block := u.at(d.end) == "{"
	switch u.at(d.at) {
	case "then", "and", "And", "scenario", "`when`", "expect":
		if !block || u.kindAt(d.body-1) != lex.Text {
			return false
		}
	}
	if block {
		d.end = u.closer(d.end)
	}
	return true
}

// passConfig skips .config(...).
func (u *unit) passConfig(d *decl) {
	if u.at(d.end) == "." && u.at(d.end+1) == "config" && u.at(d.end+2) == "(" {
		d.end = u.closer(d.end + 2)
	}
}

// kotestSkips notes the skips in the title and the options of a test or group: "!adds",
// .config(enabled = false), .config(enabledIf = { System.getenv("CI") == null }).
func (u *unit) kotestSkips(t *Test, d *decl, note onSkip) {
	if d.kind != declTest && d.kind != declSuite {
		return
	}
	if strings.HasPrefix(d.name, "!") {
		note(Always, d.at, min(d.at+4, len(u.tok)))
	}
	t.Focus = t.Focus || d.kind == declTest && strings.HasPrefix(d.name, "f:")
	for j := d.body; j < d.end && u.at(j) != "{"; j++ {
		if u.at(j) != "config" || u.at(j-1) != "." || u.at(j+1) != "(" {
			continue
		}
		end := u.closer(j+1) - 1
		for k := j + 2; k < end; k++ {
			if u.at(k+1) == "=" && (u.at(k) == "enabled" || strings.HasPrefix(u.at(k), "enabledIf") ||
				strings.HasPrefix(u.at(k), "enabledOr")) {
				u.kotestOption(k, min(u.commaAfter(k, end)+1, end), note)
			}
		}
		return
	}
}

// kotestOption notes the option at i that enables or disables tests.
func (u *unit) kotestOption(i, end int, note onSkip) {
	value := i + 2
	if u.at(value) == "{" {
		value++
	}
	switch {
	case u.at(value) == "true" && u.constant(value) || u.at(value) == "true" && u.at(value+1) == "}":
	case u.at(value) == "false" && (u.constant(value) || u.at(value+1) == "}"), u.at(value) == "Enabled" &&
		u.at(value+2) == "disabled" && u.at(i+2) == "{":
		note(Always, i, end)
	default:
		note(Sometimes, i, end)
	}
}

// kotlinSkips returns how the word at i skips its test, if that is decided.
func (u *unit) kotlinSkips(_ *decl, i int) (s Skipping, decided bool) {
	if u.at(i) == "enabled" && u.at(i+1) == "=" {
		switch {
		case u.at(i+2) == "false":
			return Always, true
		case u.at(i+2) != "true" && oneOf(u.at(i-1), "(", ","):
			return Sometimes, true
		}
	}
	return Runs, !u.lang.skips[u.at(i)] || u.at(i+1) != "("
}
