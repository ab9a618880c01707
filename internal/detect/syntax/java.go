package syntax

import (
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

func java() Language {
	return Language{
		Name: "java", exts: []string{".java"}, typed: true,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Char: true, Dollar: true,
			Quotes: []lex.Quote{threeQuotes(), doubleQuote()}},
		containers: words("class interface enum record"),
		annotations: words("Test ParameterizedTest RepeatedTest TestFactory TestTemplate Property Theory QuarkusTest " +
			"ArchTest Example"),
		skips: words("Disabled Ignore DisabledOnOs DisabledIf EnabledIf EnabledOnOs DisabledIfEnvironmentVariable " +
			"EnabledIfEnvironmentVariable EnabledIfSystemProperty DisabledOnJre EnabledOnJre DisabledIfSystemProperty " +
			"assumeTrue assumeFalse assumingThat assumeThat SkipException"),
		asserts: words("fail assertThat verify verifyNoInteractions verifyNoMoreInteractions then andExpect expectStatus " +
			"expectBody expectNext verifyComplete"),
		throws: words("throw"), handlers: words("catch"),
		testSuffixes: []string{"Test", "Tests", "IT", "TestCase", "Spec"}, testPrefixes: []string{"Test"},
		testFolders: []string{"test", "tests", "androidtest", "integrationtest"},
		marks:       javaMarks(), notes: javaNotes(),
		declarations: declarations{block: (*unit).compact,
			names: words("of with match lock in using when declare fixed")},
		testForms: testForms{isTest: (*unit).javaTest, collected: (*unit).javaCollected, over: ":",
			strictPrefixes: []string{"Test", "IT"},
			strictSuffixes: []string{"Test", "Tests", "TestCase", "IT", "ITCase", "Spec"}},
		functionForms: functionForms{
			public: func(_ *unit, d *decl) bool { return has(d.modifiers, "public") },
			asks: words("getStackTrace stackTrace StackWalker getProperty getenv getClassName className forName loadClass " +
				"ProcessHandle getInputArguments getContextClassLoader getAllStackTraces getThreadGroup")},
		assertionForms: assertionForms{isBare: (*unit).bareCall},
	}
}

func javaMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false ) {", "if ( false &&"}},
		{ExitTrick, anywhere, 0.9, []string{"System . exit ( 0 )"}},
		{ExitTrick, anywhere, 0.85, []string{"getRuntime ( ) . halt ("}},
		{RunnerAsked, inCode, 0.95, []string{`getProperty ( "surefire.test.class.path" )`, `forName ( "org.junit.*"`,
			`forName ( "org.testng.*"`, `getProperty ( "org.gradle.test.worker" )`}},
		{RunnerAsked, inCode, 0.9, []string{`startsWith ( "org.junit*"`, `contains ( "junit" )`,
			`contains ( "org.junit*"`}},
		{ChecksOff, inCode, 0.85, []string{"NoopHostnameVerifier . INSTANCE", "hostnameVerifier { _ , _ -> true }",
			"ALLOW_ALL_HOSTNAME_VERIFIER", "TrustAllStrategy"}},
		{ComplaintOff, anywhere, 0.6, []string{"@ SuppressWarnings", "@ SuppressFBWarnings"}},
		{CoverageExcluded, anywhere, 0.7, []string{"@ ExcludeFromJacocoGeneratedReport"}},
		{CoverageExcluded, inCode, 0.7, []string{"@ Generated"}},
		{CoverageExcluded, anywhere, 0.7, []string{"@ ExcludeFromGeneratedCoverage"}},
	}
}

func javaNotes() []commentRule {
	return sharedNotes(
		comments(ComplaintOff, 0.6, "", "NOPMD"),
		comments(ComplaintOff, 0.7, ":", "CHECKSTYLE:OFF", "CHECKSTYLE.OFF"),
		comments(ComplaintOff, 0.6, ":", "CHECKSTYLE:SUPPRESS"),
		comments(ComplaintOff, 0.7, ":", "CSOFF"),
		comments(ComplaintOff, 0.7, "", "@checkstyle:off"),
		comments(ComplaintOff, 0.6, " ", "noinspection", "ktlint-disable", "detekt:disable"),
	)
}

// compact reads the compact constructor of a Java record whose block opens at open.
func (u *unit) compact(open int) bool {
	name := open - 1
	if !u.isWord(name) || u.noName(name) || !u.tok[name].First && u.at(name-1) != "public" {
		return false
	}
	for i := name - 1; i > 0; i-- {
		if u.at(i) == "record" && u.isWord(i) {
			if u.at(i+1) != u.at(name) {
				return false
			}
			u.decls = append(u.decls, u.annotated(decl{kind: declFunction, name: u.at(name), at: name, start: name, body: open,
				end: u.closer(open)}))
			return true
		}
	}
	return false
}

// jupiter reports whether a file uses JUnit 5 or later.
func (u *unit) jupiter() bool { return u.names("jupiter") }

// nested reports whether JUnit runs the tests of a nested class.
func (u *unit) nested(i int) bool {
	if i < 0 || u.decls[i].parent < 0 || u.decls[u.decls[i].parent].kind != DeclContainer || !u.jupiter() {
		return true
	}
	d := &u.decls[i]
	if d.annotatedBy(func(s string) bool { return s == "Nested" }) {
		return u.nested(d.parent)
	}
	return u.at(d.at-1) != "class"
}

// javaTest reports whether a method is a test of JUnit 3.
func (u *unit) javaTest(d *decl) bool {
	return u.inTests && strings.HasPrefix(d.name, "test") && len(d.name) > 4 && has(d.modifiers, "public") &&
		has(d.modifiers, "void") && u.at(d.at+2) == ")"
}

// javaCollected reports whether the runner finds the test at i.
func (u *unit) javaCollected(i int) bool {
	d := &u.decls[i]
	return d.kind != declFunction || !has(d.modifiers, "private") &&
		!(has(d.modifiers, "static") && u.jupiter()) && u.nested(d.parent)
}
