// Package marktable says which tokens and comments tell something in each language:
// that code asks for the test runner, that a test ends the process, that a tool is
// silenced. Package source finds them.
package marktable

import "slices"

// Patterns that marks tell of. The catalogue says what they count for.
const (
	CoverageExcluded = "coverage-excluded"
	RunnerAsked      = "test-runner-asked"
	ChecksOff        = "checks-off"
	ExitTrick        = "exit-trick"
	HookForged       = "runner-hook-forged"
	ExitIgnored      = "exit-ignored"
	ErrorSwallowed   = "error-swallowed"
	ComplaintOff     = "complaint-silenced"
	LooseType        = "type-loosened"
	FlagOff          = "flag-off"
	OpenEnds         = "open-ends"
	GuardVoid        = "guard-removed" // its condition never holds, or always
)

// Where says in what code a mark counts.
type Where uint8

// The places.
const (
	Anywhere Where = iota
	InCode
	InTests
)

// Rule is a sequence of tokens with blanks between them. A word in quotes is a
// string, or the beginning of one when it ends in a star; * is any token.
type Rule struct {
	Pattern    string
	Tokens     string
	Where      Where
	Confidence float64
}

// Note is a piece of a comment.
type Note struct {
	Pattern, S string
	Confidence float64
	// Named are the characters after which the comment names the rules that it
	// silences; empty when it cannot name one. A blank stands for itself.
	Named string
	// Off is set when it counts only with a 0 or an off after the name of a rule.
	Off bool
}

// The tables of marks. A confidence of 0.6 warns in standard mode; what is about
// a line that the baseline had is raised to certainty in marks of findings.

func sharedNotes(more ...Note) []Note {
	return slices.Concat(more, []Note{
		{Pattern: CoverageExcluded, S: "LCOV_EXCL", Confidence: 0.6}, {Pattern: ComplaintOff, S: "NOSONAR", Confidence: 0.6},
		{Pattern: ComplaintOff, S: "nosemgrep", Confidence: 0.6, Named: ":"},
		{Pattern: ComplaintOff, S: "codeql[", Confidence: 0.6, Named: "["},
		{Pattern: ComplaintOff, S: "lgtm[", Confidence: 0.6, Named: "["},
		{Pattern: ComplaintOff, S: "DevSkim: ignore", Confidence: 0.6, Named: " "},
	})
}

// ForGo are the rules of Go.
func ForGo() []Rule {
	return []Rule{
		{GuardVoid, "&& false {", InCode, 0.85}, {GuardVoid, "if false &&", InCode, 0.85},
		{RunnerAsked, "testing . Testing ( )", InCode, 0.9},
		{RunnerAsked, `flag . Lookup ( "test.v" )`, InCode, 0.9},
		{RunnerAsked, `HasSuffix ( os . Args [ 0 ] , ".test" )`, InCode, 0.9},
		{RunnerAsked, `HasSuffix ( os . Args [ 0 ] , "_test" )`, InCode, 0.9},
		{ExitTrick, "os . Exit ( 0 )", Anywhere, 0.9},
		{ChecksOff, "InsecureSkipVerify : true", InCode, 0.85},
		{ErrorSwallowed, "_ = err", InCode, 0.85},
	}
}

// GoNotes are the rules for comments of Go.
func GoNotes() []Note {
	return sharedNotes(
		Note{Pattern: ComplaintOff, S: "nolint", Confidence: 0.6, Named: ":"},
		Note{Pattern: ComplaintOff, S: "nosec", Confidence: 0.6, Named: " :"},
		Note{Pattern: ComplaintOff, S: "lint:ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "lint:file-ignore", Confidence: 0.85, Named: " "},
		Note{Pattern: ComplaintOff, S: "revive:disable", Confidence: 0.6, Named: ":"},
		Note{Pattern: CoverageExcluded, S: "coverage:ignore", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "coverage-ignore", Confidence: 0.6},
	)
}

// ForScript are the rules of JavaScript.
func ForScript() []Rule {
	return []Rule{
		{GuardVoid, "&& false ) {", InCode, 0.85}, {GuardVoid, "if ( false &&", InCode, 0.85},
		{RunnerAsked, "process . env . JEST_WORKER_ID", InCode, 0.9},
		{RunnerAsked, "process . env . VITEST", InCode, 0.9},
		{RunnerAsked, "process . env . VITEST_WORKER_ID", InCode, 0.9},
		{RunnerAsked, `process . env . NODE_ENV === "test"`, InCode, 0.85},
		{RunnerAsked, `process . env . NODE_ENV == "test"`, InCode, 0.85},
		{RunnerAsked, `process . env . NODE_ENV !== "test"`, InCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] === "test"`, InCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] == "test"`, InCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] !== "test"`, InCode, 0.85},
		{RunnerAsked, `"test" === process . env . NODE_ENV`, InCode, 0.85},
		{RunnerAsked, `process . env . npm_lifecycle_event === "test"`, InCode, 0.85},
		{RunnerAsked, `process . env . npm_lifecycle_event !== "test"`, InCode, 0.85},
		{RunnerAsked, "typeof jest", InCode, 0.9}, {RunnerAsked, `execArgv . includes ( "--test" )`, InCode, 0.9},
		{RunnerAsked, "globalThis . jest", InCode, 0.9}, {RunnerAsked, "global . jest", InCode, 0.9},
		{RunnerAsked, "globalThis . describe", InCode, 0.9}, {RunnerAsked, "global . describe", InCode, 0.9},
		{RunnerAsked, "globalThis . it ", InCode, 0.9}, {RunnerAsked, "global . it ", InCode, 0.9},
		{RunnerAsked, "globalThis . expect", InCode, 0.9}, {RunnerAsked, "globalThis . vi ", InCode, 0.9},
		{RunnerAsked, "typeof it ", InCode, 0.9}, {RunnerAsked, "typeof expect", InCode, 0.9},
		{RunnerAsked, "typeof describe", InCode, 0.9}, {RunnerAsked, "typeof beforeEach", InCode, 0.9},
		{RunnerAsked, "typeof afterEach", InCode, 0.9}, {RunnerAsked, "typeof suite", InCode, 0.85},
		{RunnerAsked, "globalThis . test ", InCode, 0.85}, {RunnerAsked, "globalThis . beforeEach", InCode, 0.9},
		{RunnerAsked, "meta . vitest", InCode, 0.9}, {RunnerAsked, "typeof vi", InCode, 0.9},
		{RunnerAsked, "process . env . NODE_TEST_CONTEXT", InCode, 0.9},
		{RunnerAsked, `process . env [ "JEST_WORKER_ID" ]`, InCode, 0.9},
		{RunnerAsked, `process . env [ "VITEST" ]`, InCode, 0.9},
		{RunnerAsked, `process . env [ "VITEST_WORKER_ID" ]`, InCode, 0.9},
		{RunnerAsked, `process . env [ "NODE_TEST_CONTEXT" ]`, InCode, 0.9},
		{RunnerAsked, `meta . env . MODE === "test"`, InCode, 0.85},
		{RunnerAsked, `meta . env ?. MODE === "test"`, InCode, 0.85},
		{ExitTrick, "process . exit ( 0 )", Anywhere, 0.9}, {ExitTrick, "process . exit ( )", Anywhere, 0.9},
		{ExitTrick, "process . exitCode = 0", InTests, 0.9}, {ExitTrick, "process . reallyExit (", Anywhere, 0.9},
		{HookForged, "assert [ * ] =", InTests, 0.85}, {HookForged, "assert . equal =", InTests, 0.9},
		{HookForged, "assert . strictEqual =", InTests, 0.9},
		{HookForged, "assert . deepEqual =", InTests, 0.9}, {HookForged, "assert . throws =", InTests, 0.9},
		{HookForged, "assert . ok =", InTests, 0.9},
		{HookForged, "globalThis . assert =", Anywhere, 0.85}, {HookForged, "chai . expect =", InTests, 0.85},
		{HookForged, "AssertionError =", InTests, 0.7},
		{HookForged, "expect = ", InTests, 0.6}, {HookForged, "globalThis . expect =", Anywhere, 0.9},
		{HookForged, "global . expect =", Anywhere, 0.85},
		{HookForged, "global . it =", Anywhere, 0.85}, {HookForged, "global . test =", Anywhere, 0.85},
		{ChecksOff, "rejectUnauthorized : false", InCode, 0.85},
		{ChecksOff, `NODE_TLS_REJECT_UNAUTHORIZED = "0"`, InCode, 0.9},
	}
}

// ScriptNotes are the rules for comments of JavaScript.
func ScriptNotes() []Note {
	return sharedNotes(
		Note{Pattern: CoverageExcluded, S: "istanbul ignore", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "c8 ignore", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "v8 ignore", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "node:coverage", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "@ts-nocheck", Confidence: 0.9},
		Note{Pattern: ComplaintOff, S: "@ts-ignore", Confidence: 0.7},
		Note{Pattern: ComplaintOff, S: "@ts-expect-error", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "eslint-disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "eslint ", Confidence: 0.6, Named: " ", Off: true},
		Note{Pattern: ComplaintOff, S: "biome-ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "deno-lint-ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "oxlint-disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "tslint:disable", Confidence: 0.6, Named: ":"},
		Note{Pattern: ComplaintOff, S: "$FlowFixMe", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "$FlowIgnore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "$FlowExpectedError", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "@noflow", Confidence: 0.85},
		Note{Pattern: ComplaintOff, S: "jshint ignore", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "jscs:disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "standard-disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "Stryker disable", Confidence: 0.6, Named: " "},
	)
}

// ForPython are the rules of Python.
func ForPython() []Rule {
	return []Rule{
		{GuardVoid, "and False :", InCode, 0.85}, {GuardVoid, "if False and", InCode, 0.85},
		{RunnerAsked, `"pytest" in sys . modules`, InCode, 0.95}, {RunnerAsked, `"unittest" in sys . modules`, InCode, 0.95},
		{RunnerAsked, `"pytest" not in sys . modules`, InCode, 0.95},
		{RunnerAsked, `sys . modules . get ( "pytest" )`, InCode, 0.95},
		{RunnerAsked, `"PYTEST_CURRENT_TEST" in`, InCode, 0.95}, {RunnerAsked, `"PYTEST_CURRENT_TEST" not in`, InCode, 0.95},
		{RunnerAsked, `getenv ( "PYTEST_CURRENT_TEST"`, InCode, 0.95},
		{RunnerAsked, `get ( "PYTEST_CURRENT_TEST"`, InCode, 0.95},
		{RunnerAsked, `environ [ "PYTEST_CURRENT_TEST" ]`, InCode, 0.95},
		{RunnerAsked, `hasattr ( sys , "_called_from_test" )`, InCode, 0.9},
		{RunnerAsked, `"test_" in * . filename`, InCode, 0.9}, {RunnerAsked, `"pytest" in * . filename`, InCode, 0.9},
		{RunnerAsked, `"PYTEST_VERSION" in`, InCode, 0.95},
		{ExitTrick, "os . _exit (", InTests, 0.95}, {ExitTrick, "os . _exit ( 0 )", InCode, 0.9},
		{ExitTrick, "sys . exit ( 0 )", Anywhere, 0.9}, {ExitTrick, "sys . exit ( )", Anywhere, 0.9},
		{ExitTrick, "raise SystemExit ( 0 )", Anywhere, 0.9}, {ExitTrick, "raise SystemExit ( )", Anywhere, 0.9},
		{ExitTrick, "main ( exit = False )", InTests, 0.85},
		{ExitTrick, "exit ( 0 )", InTests, 0.6}, {ExitTrick, "pytest . exit (", InTests, 0.85},
		{ExitTrick, "atexit . register (", InTests, 0.85},
		{ExitTrick, "sys . excepthook =", Anywhere, 0.7},
		{HookForged, "def pytest_runtest_makereport (", Anywhere, 0.85},
		{HookForged, "def pytest_runtest_logreport (", Anywhere, 0.8},
		{HookForged, "def pytest_report_teststatus (", Anywhere, 0.8},
		{HookForged, "def pytest_pyfunc_call (", Anywhere, 0.85}, {HookForged, "def pytest_runtest_call (", Anywhere, 0.7},
		{HookForged, "def pytest_collection_modifyitems (", Anywhere, 0.6}, {HookForged, ". outcome =", InTests, 0.85},
		{HookForged, "session . exitstatus =", Anywhere, 0.95},
		{HookForged, "TestCase . assertEqual =", Anywhere, 0.9}, {HookForged, "TestCase . assertTrue =", Anywhere, 0.9},
		{HookForged, "TestCase . assertRaises =", Anywhere, 0.9},
		{HookForged, "TestCase . assertIn =", Anywhere, 0.9}, {HookForged, "TestCase . fail =", Anywhere, 0.9},
		{HookForged, "TestCase . failureException =", Anywhere, 0.85},
		{HookForged, "builtins . AssertionError =", Anywhere, 0.9}, {HookForged, "class AssertionError", InTests, 0.7},
		{HookForged, "collect_ignore =", InTests, 0.8}, {HookForged, "collect_ignore_glob =", InTests, 0.8},
		{HookForged, "__test__ = False", InTests, 0.85},
		{"skip-conditional", "marks = pytest . mark . skip", InTests, 0.7},
		{"skip-conditional", "marks = pytest . mark . xfail", InTests, 0.7},
		{"skip-conditional", "marks = [ pytest . mark . skip", InTests, 0.7},
		{ChecksOff, "verify = False", InCode, 0.85}, {ChecksOff, `"verify_signature" : False`, InCode, 0.85},
		{ChecksOff, "@ csrf_exempt", InCode, 0.85}, {ChecksOff, "ssl . CERT_NONE", InCode, 0.85},
		{ChecksOff, "_create_unverified_context", InCode, 0.85},
		{ErrorSwallowed, "suppress ( Exception )", InCode, 0.85}, {ErrorSwallowed, "suppress ( BaseException )", InCode, 0.9},
		{LooseType, ": Any", InCode, 0.6}, {LooseType, "-> Any", InCode, 0.6},
	}
}

// PythonNotes are the rules for comments of Python.
func PythonNotes() []Note {
	return sharedNotes(
		Note{Pattern: CoverageExcluded, S: "pragma: no cover", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "pragma: no branch", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "pragma:no cover", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "pragma: nocover", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "mypy: ignore-errors", Confidence: 0.9},
		Note{Pattern: ComplaintOff, S: "mypy: disable-error-code", Confidence: 0.85, Named: "="},
		Note{Pattern: ComplaintOff, S: "mypy: allow-", Confidence: 0.85},
		Note{Pattern: ComplaintOff, S: "ruff: noqa", Confidence: 0.85, Named: ":"},
		Note{Pattern: ComplaintOff, S: "flake8: noqa", Confidence: 0.85, Named: ":"},
		Note{Pattern: ComplaintOff, S: "pylint: skip-file", Confidence: 0.9},
		Note{Pattern: ComplaintOff, S: "pylint: disable-all", Confidence: 0.9},
		Note{Pattern: ComplaintOff, S: "noqa", Confidence: 0.6, Named: ":"},
		Note{Pattern: ComplaintOff, S: "type: ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "type:ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "pylint: disable", Confidence: 0.6, Named: "=:"},
		Note{Pattern: ComplaintOff, S: "pylint:disable", Confidence: 0.6, Named: "=:"},
		Note{Pattern: ComplaintOff, S: "pyright: ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "basedpyright: ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "pyright: basic", Confidence: 0.85},
		Note{Pattern: ComplaintOff, S: "pyright: off", Confidence: 0.85},
		Note{Pattern: ComplaintOff, S: "pyright: report", Confidence: 0.6, Named: " ", Off: true},
		Note{Pattern: ComplaintOff, S: "nosec", Confidence: 0.6, Named: " :"},
		Note{Pattern: ComplaintOff, S: "ty: ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "pyre-ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "pyre-fixme", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "pytype: disable", Confidence: 0.6, Named: "="},
		Note{Pattern: ComplaintOff, S: "pytype: skip-file", Confidence: 0.85},
		Note{Pattern: ComplaintOff, S: "pyrefly: ignore", Confidence: 0.6, Named: "["},
		Note{Pattern: ComplaintOff, S: "codespell:ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "pycodestyle: noqa", Confidence: 0.6, Named: ":"},
	)
}

// ForJava are the rules of Java.
func ForJava() []Rule {
	return []Rule{
		{GuardVoid, "&& false ) {", InCode, 0.85}, {GuardVoid, "if ( false &&", InCode, 0.85},
		{ExitTrick, "System . exit ( 0 )", Anywhere, 0.9}, {ExitTrick, "getRuntime ( ) . halt (", Anywhere, 0.85},
		{RunnerAsked, `getProperty ( "surefire.test.class.path" )`, InCode, 0.95},
		{RunnerAsked, `forName ( "org.junit.*"`, InCode, 0.95},
		{RunnerAsked, `startsWith ( "org.junit*"`, InCode, 0.9}, {RunnerAsked, `contains ( "junit" )`, InCode, 0.9},
		{RunnerAsked, `contains ( "org.junit*"`, InCode, 0.9}, {RunnerAsked, `forName ( "org.testng.*"`, InCode, 0.95},
		{RunnerAsked, `getProperty ( "org.gradle.test.worker" )`, InCode, 0.95},
		{ChecksOff, "NoopHostnameVerifier . INSTANCE", InCode, 0.85},
		{ChecksOff, "hostnameVerifier { _ , _ -> true }", InCode, 0.85},
		{ChecksOff, "ALLOW_ALL_HOSTNAME_VERIFIER", InCode, 0.85}, {ChecksOff, "TrustAllStrategy", InCode, 0.85},
		{ComplaintOff, "@ SuppressWarnings", Anywhere, 0.6}, {ComplaintOff, "@ SuppressFBWarnings", Anywhere, 0.6},
		{CoverageExcluded, "@ ExcludeFromJacocoGeneratedReport", Anywhere, 0.7},
		{CoverageExcluded, "@ Generated", InCode, 0.7}, {CoverageExcluded, "@ ExcludeFromGeneratedCoverage", Anywhere, 0.7},
	}
}

// JavaNotes are the rules for comments of Java.
func JavaNotes() []Note {
	return sharedNotes(
		Note{Pattern: ComplaintOff, S: "NOPMD", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "CHECKSTYLE:OFF", Confidence: 0.7, Named: ":"},
		Note{Pattern: ComplaintOff, S: "CHECKSTYLE.OFF", Confidence: 0.7, Named: ":"},
		Note{Pattern: ComplaintOff, S: "CHECKSTYLE:SUPPRESS", Confidence: 0.6, Named: ":"},
		Note{Pattern: ComplaintOff, S: "CSOFF", Confidence: 0.7, Named: ":"},
		Note{Pattern: ComplaintOff, S: "@checkstyle:off", Confidence: 0.7},
		Note{Pattern: ComplaintOff, S: "noinspection", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "ktlint-disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "detekt:disable", Confidence: 0.6, Named: " "},
	)
}

// ForKotlin are the rules of Kotlin.
func ForKotlin() []Rule {
	return []Rule{
		{GuardVoid, "|| true ) {", InCode, 0.85},
		{GuardVoid, "&& false ) {", InCode, 0.85}, {GuardVoid, "if ( false &&", InCode, 0.85},
		{ExitTrick, "exitProcess ( 0 )", Anywhere, 0.9}, {RunnerAsked, `forName ( "io.kotest.*"`, InCode, 0.95},
		{RunnerAsked, `forName ( "org.junit.*"`, InCode, 0.95}, {RunnerAsked, `startsWith ( "org.junit*"`, InCode, 0.9},
		{RunnerAsked, `startsWith ( "io.kotest*"`, InCode, 0.9},
		{RunnerAsked, `getProperty ( "org.gradle.test.worker" )`, InCode, 0.95},
		{RunnerAsked, `contains ( "junit" )`, InCode, 0.9}, {RunnerAsked, `"junit" in`, InCode, 0.85},
		{ComplaintOff, "@ Suppress (", Anywhere, 0.6}, {ComplaintOff, "@ file : Suppress", Anywhere, 0.85},
		{CoverageExcluded, "@ ExcludeFromCoverage", Anywhere, 0.7}, {CoverageExcluded, "@ CoverageIgnore", Anywhere, 0.7},
	}
}

// ForCSharp are the rules of C#.
func ForCSharp() []Rule {
	return []Rule{
		{GuardVoid, "&& false ) {", InCode, 0.85}, {GuardVoid, "if ( false &&", InCode, 0.85},
		{ExitTrick, "Environment . Exit ( 0 )", Anywhere, 0.9}, {ExitTrick, "Environment . FailFast (", InTests, 0.7},
		{RunnerAsked, `"ASPNETCORE_ENVIRONMENT" ) == "Test*"`, InCode, 0.85},
		{RunnerAsked, `"DOTNET_ENVIRONMENT" ) == "Test*"`, InCode, 0.85},
		{RunnerAsked, `IsEnvironment ( "Test*" )`, InCode, 0.8},
		{RunnerAsked, `StartsWith ( "xunit*"`, InCode, 0.9}, {RunnerAsked, `StartsWith ( "nunit.framework*"`, InCode, 0.9},
		{RunnerAsked, `Contains ( "xunit" )`, InCode, 0.9},
		{RunnerAsked, `== "nunit.framework*"`, InCode, 0.9}, {RunnerAsked, `== "xunit*"`, InCode, 0.9},
		{RunnerAsked, `== "testhost*"`, InCode, 0.95}, {RunnerAsked, `Contains ( "nunit" )`, InCode, 0.9},
		{RunnerAsked, `GetType ( "Xunit*"`, InCode, 0.9}, {RunnerAsked, `GetType ( "NUnit*"`, InCode, 0.9},
		{RunnerAsked, `Contains ( "testhost" )`, InCode, 0.95},
		{ComplaintOff, "SuppressMessage (", Anywhere, 0.6},
		{CoverageExcluded, "ExcludeFromCodeCoverage", InCode, 0.7},
		{ChecksOff, "DangerousAcceptAnyServerCertificateValidator", InCode, 0.85},
		{ChecksOff, "ServerCertificateValidationCallback =", InCode, 0.8},
		{ChecksOff, "ServerCertificateCustomValidationCallback =", InCode, 0.8},
	}
}

// CSharpNotes are the rules for comments of C#.
func CSharpNotes() []Note {
	return sharedNotes(
		Note{Pattern: ComplaintOff, S: "pragma warning disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "nullable disable", Confidence: 0.7},
		Note{Pattern: ComplaintOff, S: "ReSharper disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "StyleCop.disable", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "Stryker disable", Confidence: 0.6, Named: " "},
		Note{Pattern: CoverageExcluded, S: "coverage:ignore", Confidence: 0.6},
	)
}

// ForRust are the rules of Rust.
func ForRust() []Rule {
	return []Rule{
		{GuardVoid, "&& false {", InCode, 0.85}, {GuardVoid, "if false &&", InCode, 0.85},
		{HookForged, "macro_rules ! assert_eq {", InTests, 0.85}, {HookForged, "macro_rules ! assert {", InTests, 0.85},
		{HookForged, "macro_rules ! assert_ne {", InTests, 0.85},
		{ExitTrick, "process :: exit ( 0 )", Anywhere, 0.9}, {RunnerAsked, "cfg ! ( test )", InCode, 0.9},
		{RunnerAsked, `var ( "RUST_TEST_*"`, InCode, 0.9}, {RunnerAsked, `var_os ( "RUST_TEST_*"`, InCode, 0.9},
		{RunnerAsked, `var ( "CARGO_MANIFEST_DIR" )`, InCode, 0.85},
		{RunnerAsked, `var_os ( "CARGO_MANIFEST_DIR" )`, InCode, 0.85},
		{RunnerAsked, `var ( "CARGO_PKG_NAME" )`, InCode, 0.85}, {RunnerAsked, `var_os ( "CARGO_PKG_NAME" )`, InCode, 0.85},
		{RunnerAsked, "cfg ! ( not ( test ) )", InCode, 0.9},
		{RunnerAsked, `option_env ! ( "CARGO_TARGET_TMPDIR" )`, InCode, 0.85},
		{RunnerAsked, `var_os ( "CARGO" )`, InCode, 0.85}, {RunnerAsked, `var ( "CARGO" )`, InCode, 0.85},
		{RunnerAsked, `var ( "NEXTEST*"`, InCode, 0.9}, {RunnerAsked, `var_os ( "NEXTEST*"`, InCode, 0.9},
		{RunnerAsked, "cfg ( not ( test ) )", InCode, 0.7},
		{ComplaintOff, "# ! [ allow (", Anywhere, 0.8}, {ComplaintOff, "# [ allow (", Anywhere, 0.6},
		{ComplaintOff, "# ! [ expect (", Anywhere, 0.8}, {ComplaintOff, "# [ expect (", Anywhere, 0.6},
		{CoverageExcluded, "# [ coverage ( off ) ]", InCode, 0.7},
		{CoverageExcluded, "# [ cfg_attr ( coverage_nightly", InCode, 0.6},
		{CoverageExcluded, "# [ cfg ( not ( tarpaulin_include ) ) ]", InCode, 0.7},
		{ChecksOff, "danger_accept_invalid_certs ( true )", InCode, 0.9},
		{ChecksOff, "danger_accept_invalid_hostnames ( true )", InCode, 0.9},
	}
}

// RustNotes are the rules for comments of Rust.
func RustNotes() []Note { return sharedNotes() }

// ForRuby are the rules of Ruby.
func ForRuby() []Rule {
	return []Rule{
		{ExitTrick, "exit! 0", Anywhere, 0.9}, {ExitTrick, "exit!", InTests, 0.85},
		{ExitTrick, "exit ( 0 )", Anywhere, 0.9}, {ExitTrick, "exit 0", Anywhere, 0.9},
		{ExitTrick, "exit ( true )", InTests, 0.9}, {ExitTrick, "at_exit", InTests, 0.7},
		{HookForged, "def assert_equal (", InTests, 0.85}, {HookForged, "def assert (", InTests, 0.7},
		{HookForged, "def assert_raises (", InTests, 0.85}, {HookForged, "module Minitest : : Assertions", InTests, 0.7},
		{RunnerAsked, "defined? ( Test :: Unit", InCode, 0.9}, {RunnerAsked, "defined? ( :: Minitest )", InCode, 0.9},
		{RunnerAsked, "defined? Minitest", InCode, 0.9}, {RunnerAsked, "defined? ( RSpec )", InCode, 0.9},
		{RunnerAsked, "defined? ( Minitest )", InCode, 0.9}, {RunnerAsked, "defined? ( :: RSpec )", InCode, 0.9},
		{RunnerAsked, "defined? RSpec", InCode, 0.9}, {RunnerAsked, "const_defined? ( : Minitest )", InCode, 0.9},
		{RunnerAsked, "const_defined? ( : RSpec )", InCode, 0.9},
		{RunnerAsked, `const_defined? ( "Minitest" )`, InCode, 0.9},
		{RunnerAsked, `const_defined? ( "RSpec" )`, InCode, 0.9}, {RunnerAsked, "Rails . env . test?", InCode, 0.85},
		{RunnerAsked, `ENV [ "RAILS_ENV" ] == "test"`, InCode, 0.85},
		{RunnerAsked, `ENV [ "RACK_ENV" ] == "test"`, InCode, 0.85},
		{RunnerAsked, `ENV . fetch ( "RAILS_ENV" ) == "test"`, InCode, 0.85},
		{RunnerAsked, `ENV . fetch ( "RACK_ENV" ) == "test"`, InCode, 0.85},
		{ChecksOff, "VERIFY_NONE", InCode, 0.85}, {ChecksOff, "skip_before_action : verify_authenticity_token", InCode,
			0.85}, {ChecksOff, ". permit!", InCode, 0.85}, {ChecksOff, "save ( validate : false )", InCode, 0.85},
	}
}

// RubyNotes are the rules for comments of Ruby.
func RubyNotes() []Note {
	return sharedNotes(
		Note{Pattern: CoverageExcluded, S: ":nocov:", Confidence: 0.6},
		Note{Pattern: CoverageExcluded, S: "nocov", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "rubocop:disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "rubocop:todo", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "brakeman:ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "steep:ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "standard:disable", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "reek:ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "typed: false", Confidence: 0.6, Named: "-"},
		Note{Pattern: ComplaintOff, S: "typed: ignore", Confidence: 0.6, Named: "-"},
	)
}

// ForPHP are the rules of PHP.
func ForPHP() []Rule {
	return []Rule{
		{GuardVoid, "&& false ) {", InCode, 0.85}, {GuardVoid, "if ( false &&", InCode, 0.85},
		{ExitTrick, "exit ( 0 )", Anywhere, 0.9}, {ExitTrick, "exit ( )", InTests, 0.9},
		{ExitTrick, "exit ;", InTests, 0.85}, {ExitTrick, "die ( )", InTests, 0.85},
		{ExitTrick, "register_shutdown_function (", InTests, 0.8},
		{RunnerAsked, `defined ( "PHPUNIT_COMPOSER_INSTALL" )`, InCode, 0.95},
		{RunnerAsked, `class_exists ( "PHPUnit\Framework\TestCase"`, InCode, 0.95},
		{RunnerAsked, `class_exists ( TestCase :: class`, InCode, 0.8}, {RunnerAsked, "runningUnitTests ( )", InCode, 0.85},
		{RunnerAsked, `class_exists ( \ PHPUnit \ Framework \ TestCase`, InCode, 0.95},
		{RunnerAsked, `"APP_ENV" ) === "test*"`, InCode, 0.85}, {RunnerAsked, `"APP_ENV" ) ) === "test*"`, InCode, 0.85},
		{RunnerAsked, `"APP_ENV" ) == "test*"`, InCode, 0.85}, {RunnerAsked, `"APP_ENV" ] === "test*"`, InCode, 0.85},
		{RunnerAsked, `"APP_ENV" ] == "test*"`, InCode, 0.85}, {RunnerAsked, `environment ( "testing" )`, InCode, 0.85},
		{RunnerAsked, `defined ( "__PHPUNIT_PHAR__" )`, InCode, 0.95},
		{RunnerAsked, `function_exists ( "it" )`, InCode, 0.95}, {RunnerAsked, `function_exists ( "test" )`, InCode, 0.95},
		{RunnerAsked, `function_exists ( "expect" )`, InCode, 0.95},
		{RunnerAsked, `function_exists ( "describe" )`, InCode, 0.95},
		{RunnerAsked, `function_exists ( "beforeEach" )`, InCode, 0.95},
		{RunnerAsked, `"APP_ENV" ] ?? * ) === "test*"`, InCode, 0.85},
		{RunnerAsked, `"APP_ENV" ] ?? * ) !== "test*"`, InCode, 0.85},
		{RunnerAsked, `"APP_ENV" ) !== "test*"`, InCode, 0.85}, {RunnerAsked, `"APP_ENV" ] !== "test*"`, InCode, 0.85},
		{ChecksOff, "CURLOPT_SSL_VERIFYPEER , false", InCode, 0.85},
		{ChecksOff, "CURLOPT_SSL_VERIFYPEER => false", InCode, 0.85}, {ChecksOff, `"verify_peer" => false`, InCode, 0.85},
		{ComplaintOff, "error_reporting ( 0 )", InCode, 0.9}, {CoverageExcluded, "CodeCoverageIgnore", InCode, 0.7},
	}
}

// PHPNotes are the rules for comments of PHP.
func PHPNotes() []Note {
	return sharedNotes(
		Note{Pattern: CoverageExcluded, S: "@codeCoverageIgnore", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "phpcs:ignoreFile", Confidence: 0.85},
		Note{Pattern: ComplaintOff, S: "phpcs:ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "phpcs:disable", Confidence: 0.7, Named: " "},
		Note{Pattern: ComplaintOff, S: "@codingStandardsIgnore", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "@phpstan-ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "@psalm-suppress", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "@phan-suppress", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "@phan-file-suppress", Confidence: 0.85, Named: " "},
		Note{Pattern: ComplaintOff, S: "@SuppressWarnings", Confidence: 0.6, Named: "("},
		Note{Pattern: ComplaintOff, S: "@noinspection", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "@infection-ignore-all", Confidence: 0.6},
		Note{Pattern: ComplaintOff, S: "@mago-ignore", Confidence: 0.6, Named: " "},
		Note{Pattern: ComplaintOff, S: "@mago-expect", Confidence: 0.6, Named: " "},
	)
}

// ForTypeScript are the rules of TypeScript.
func ForTypeScript() []Rule {
	return append(ForScript(), Rule{LooseType, ": any", InCode, 0.6}, Rule{LooseType, "as any", InCode, 0.6},
		Rule{LooseType, "as unknown as", InCode, 0.6},
		Rule{RunnerAsked, "typeof ( globalThis as any ) . expect", InCode, 0.9},
		Rule{RunnerAsked, "typeof ( globalThis as any ) . describe", InCode, 0.9},
		Rule{RunnerAsked, "typeof ( globalThis as any ) . jest", InCode, 0.9})
}
