package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

func csharp() Language {
	return Language{
		Name: "csharp", exts: []string{".cs"}, typed: true,
		rules:       lex.Rules{Line: []string{"//"}, Block: "/*", Char: true, Prefixes: "$@", Preprocessor: true, Raw: true},
		containers:  words("class interface enum record struct"),
		annotations: words("Test TestCase TestCaseSource Property UnityTest"),
		skips:       words("Ignore Explicit Inconclusive Skip SkipWhen SkipUnless"),
		asserts: words("Should ShouldBe ShouldThrow Verify VerifyAll Received DidNotReceive ShouldNotBeNull ShouldBeTrue " +
			"MustHaveHappened"),
		throws: words("throw"), handlers: words("catch"),
		testSuffixes: []string{"Test", "Tests", "Spec", "Specs", "Facts", "Fixture"}, testFolders: []string{"test", "tests"},
		marks: csharpMarks(), notes: csharpNotes(),
		declarations: declarations{block: (*unit).accessors, arrow: (*unit).arrowMember, names: words("of"),
			patterns: words("is switch with and or not"), explicit: true, brackets: true},
		testForms: testForms{collected: func(u *unit, i int) bool { return u.sharpCollected(&u.decls[i]) },
			isTest: func(_ *unit, d *decl) bool {
				return d.annotatedBy(func(s string) bool {
					return strings.HasSuffix(s, "Fact") || strings.HasSuffix(s, "Theory") || strings.HasSuffix(s, "TestMethod")
				})
			},
			braceLists: true, arrowMembers: true, skipsAt: (*unit).sharpSkips, restricts: (*unit).sharpOnly,
			annotated: func(_ *unit, a *annotation, _ int) (s Skipping, decided bool) {
				return Sometimes, sharpConditions().MatchString(a.name)
			}},
		functionForms: functionForms{replaces: (*unit).triesParse,
			public: func(_ *unit, d *decl) bool { return has(d.modifiers, "public") },
			asks: words("GetAssemblies FriendlyName GetEntryAssembly ProcessName StackTrace GetFrames " +
				"GetEnvironmentVariable GetEnvironmentVariables DeclaringType ProcessPath CommandLine GetCommandLineArgs " +
				"MainModule BaseDirectory GetCallingAssembly GetCurrentProcess")},
		assertionForms: assertionForms{isAssertion: (*unit).sharpAsserts, loses: (*unit).sharpLoses,
			isBare: func(u *unit, i, end int, alone bool) bool {
				return oneOf(u.at(i), "Should", "Received", "DidNotReceive") && u.at(i-1) == "." && !alone && u.at(end) == ";"
			}},
	}
}

func csharpMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false ) {", "if ( false &&"}},
		{ExitTrick, anywhere, 0.9, []string{"Environment . Exit ( 0 )"}},
		{ExitTrick, inTests, 0.7, []string{"Environment . FailFast ("}},
		{RunnerAsked, inCode, 0.85, []string{`"ASPNETCORE_ENVIRONMENT" ) == "Test*"`, `"DOTNET_ENVIRONMENT" ) == "Test*"`}},
		{RunnerAsked, inCode, 0.8, []string{`IsEnvironment ( "Test*" )`}},
		{RunnerAsked, inCode, 0.9, []string{`StartsWith ( "xunit*"`, `StartsWith ( "nunit.framework*"`,
			`Contains ( "xunit" )`, `== "nunit.framework*"`, `== "xunit*"`, `Contains ( "nunit" )`, `GetType ( "Xunit*"`,
			`GetType ( "NUnit*"`}},
		{RunnerAsked, inCode, 0.95, []string{`== "testhost*"`, `Contains ( "testhost" )`}},
		{ComplaintOff, anywhere, 0.6, []string{"SuppressMessage ("}},
		{CoverageExcluded, inCode, 0.7, []string{"ExcludeFromCodeCoverage"}},
		{ChecksOff, inCode, 0.85, []string{"DangerousAcceptAnyServerCertificateValidator"}},
		{ChecksOff, inCode, 0.8, []string{"ServerCertificateValidationCallback =",
			"ServerCertificateCustomValidationCallback ="}},
	}
}

func csharpNotes() []commentRule {
	return sharedNotes(
		comments(ComplaintOff, 0.6, " ", "pragma warning disable"),
		comments(ComplaintOff, 0.7, "", "nullable disable"),
		comments(ComplaintOff, 0.6, " ", "ReSharper disable"),
		comments(ComplaintOff, 0.6, "", "StyleCop.disable"),
		comments(ComplaintOff, 0.6, " ", "Stryker disable"),
		comments(CoverageExcluded, 0.6, "", "coverage:ignore"),
	)
}

// accessors reads the property of C# whose block opens at open, with a function for each accessor.
// It reports false, as the block may be that of a method, too.
func (u *unit) accessors(open int) bool {
	if !u.isWord(open - 1) {
		return false
	}
	end := min(u.closer(open), len(u.tok))
	for j := open + 1; j < end; j++ {
		if s := u.at(j); u.kindAt(j) == lex.Op && (s == "[" || s == "(") {
			j = u.closer(j) - 1
			continue
		}
		if !u.isWord(j) {
			break
		}
		if u.at(j+1) == ";" || !accessorWords()[u.at(j)] {
			if u.at(j+1) == ";" {
				j++
			}
			continue
		}
		to := u.closer(j + 1)
		if u.at(j+1) == "=>" {
			to = u.statementEnd(j + 2)
		} else if u.at(j+1) != "{" {
			break
		}
		u.decls = append(u.decls, decl{kind: declFunction, name: u.at(open-1) + " " + u.at(j), at: j, start: j, body: j + 1,
			end: to})
		j = to - 1
	}
	return false
}

var accessorWords = sync.OnceValue(wordSet("get set init add remove"))

// explicit reports whether the name at i is an explicit interface implementation of C#.
func (u *unit) explicit(i int) bool {
	for i--; u.lang.explicit && u.at(i) == "."; i-- {
		if i = u.beforeAngles(i - 1); !u.isWord(i) {
			return false
		}
		if u.at(i-1) != "." {
			return (u.isWord(i-1) && !notNames()[u.at(i-1)] || u.at(i-1) == ">" || u.at(i-1) == "]" || u.at(i-1) == "?") &&
				u.tok[i-1].Line == u.tok[i].Line
		}
	}
	return false
}

// beforeInitialiser returns the end of a C# constructor's parameters, before its initializer.
func (u *unit) beforeInitialiser(i int) int {
	if at := u.opener(i) - 1; (u.at(at) == "base" || u.at(at) == "this") && u.at(at-1) == ":" && u.at(at-2) == ")" &&
		u.opener(at-2) > 0 {
		return at - 2
	}
	return i
}

// sharpCollected reports whether a C# runner finds a method: it may have to be public.
func (u *unit) sharpCollected(d *decl) bool {
	for _, a := range d.annotations {
		if (a.name == "Fact" || a.name == "Theory") && d.parent >= 0 &&
			(has(u.decls[d.parent].modifiers, "internal") || has(u.decls[d.parent].modifiers, "private")) {
			return false
		}
		if oneOf(a.name, "Test", "TestCase", "TestMethod", "DataTestMethod", "TestCaseSource") &&
			(has(d.modifiers, "private") || has(d.modifiers, "protected") || has(d.modifiers, "internal")) {
			return false
		}
		if strings.HasSuffix(a.name, "TestMethod") && d.parent >= 0 && u.names("TestTools") {
			class := &u.decls[d.parent]
			return has(class.modifiers, "partial") ||
				class.annotatedBy(func(s string) bool { return strings.HasSuffix(s, "TestClass") })
		}
	}
	return true
}

// sharpConditions matches C# attributes that restrict a test to some machines.
var sharpConditions = lazyregexp.New(`^(?:Platform|PlatformSpecific|OSCondition|OSSkipCondition|` +
	`SkipOnPlatform|CICondition)$|(?i:(?:windows|win|mac|osx|macos|linux|unix)(?:only)?(?:fact|theory)$)|^(?:Manual|` +
	`Local|Nightly|DebugOnly|SkipOnCI|NotOnCI)(?:Fact|Theory)$`)

// sharpOnly reports whether the attribute with the name at i lists where a test runs.
func (u *unit) sharpOnly(i, to int) bool {
	if !sharpConditions().MatchString(u.at(i)) || strings.HasPrefix(u.at(i), "Skip") ||
		u.at(i) == "OSSkipCondition" || strings.HasPrefix(u.at(i), "Not") {
		return false
	}
	return !anyOf(i, to, func(j int) bool { return u.at(j) == "Exclude" })
}

// arrowMember reads the method with the => at i: int Sum(int a, int b) => a + b.
func (u *unit) arrowMember(i int) {
	p, end := u.beforeArrow(i)
	typed := u.isWord(p-1) && u.at(p-1) != "return" || u.at(p-1) == ">" || u.at(p-1) == "]" || u.at(p-1) == "?"
	if u.isWord(p) && !u.noName(p) && typed && u.at(p+1) == "(" {
		u.decls = append(u.decls, u.annotated(decl{kind: declFunction, name: u.at(p), at: p, start: p, body: i, end: end}))
	}
}

// sharpAsserts reports whether the word at i is an assertion.
func (u *unit) sharpAsserts(i int, _ set) (asserts, decided bool) {
	if strings.HasSuffix(u.at(i), "Assert") && u.at(i+1) == "." {
		return !u.lang.skips[u.at(i+2)], true
	}
	return true, strings.HasPrefix(u.at(i), "Should") && u.at(i-1) == "."
}

// sharpLoses reports whether the word at i makes failures of assertions disappear: a recorded
// exception, or an assertion that is not awaited.
func (u *unit) sharpLoses(i, _ int) bool {
	switch u.at(i) {
	case "ThrowsAsync", "ThrowsAnyAsync": // NUnit waits for it
		return u.at(i-2) == "Assert" && u.at(i-3) == "=" && u.at(i-4) == "_"
	case "Exception":
		return u.at(i-2) == "Record" && u.at(i+1) == "(" && u.discards(i-3) && u.assertsWithin(i+1, u.closer(i+1), nil)
	case "ThrowAsync", "NotThrowAsync", "ThrowExactlyAsync":
		return u.at(i-1) == "." && u.statementBegins(u.chainBegin(i))
	}
	return false
}

// sharpSkips returns how the word at i skips its test, if that is decided.
func (u *unit) sharpSkips(_ *decl, i int) (s Skipping, decided bool) {
	name, on := u.at(i), u.at(i-2)
	switch {
	case u.at(i-1) != ".":
		return Runs, true
	case name == "That" && on == "Assume":
		return Sometimes, true
	case on != "Skip" && (on != "Assert" || !u.lang.skips[name]):
		return Runs, true
	}
	return Sometimes, (name == "SkipWhen" || name == "SkipUnless" || on == "Skip") && !u.constant(i+2)
}

// triesParse returns the handler that is the TryParse at i whose result is ignored.
func (u *unit) triesParse(i int) *handler {
	if !strings.HasPrefix(u.at(i), "TryParse") || u.at(i+1) != "(" || !u.statementBegins(i) {
		return nil
	}
	first := i + 2
	for first < u.closer(i+1) && u.at(first) != "," {
		first++
	}
	guarded := append(u.once(appendTelling, u.tok[max(i-2, 0):i]), u.once(appendTelling, u.tok[i+2:first])...)
	return &handler{Line: u.line(i), S: u.text(i-2, u.closer(i+1)), Broad: true, Dropped: true,
		Guarded: multiset.Sum(guarded, nil)}
}
