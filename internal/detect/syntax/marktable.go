package syntax

import "slices"

// The patterns of marks.
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

// markPlace is the code in which a mark counts.
type markPlace uint8

// The places.
const (
	anywhere markPlace = iota
	inCode
	inTests
)

// markRule is a sequence of tokens separated by blanks. A quoted word is a string, or a prefix of
// one if it ends in a star; * is any token.
type markRule struct {
	Pattern    string
	Tokens     string
	Where      markPlace
	Confidence float64
}

// commentRule is a part of a comment.
type commentRule struct {
	Pattern, S string
	Confidence float64
	// Named are the characters before the names of the rules that the comment suppresses; empty
	// when it cannot name one.
	Named string
	// Off is set when it counts only with a 0 or an off after the name of a rule.
	Off bool
}

// The tables of marks. A confidence of 0.6 warns in standard mode; marks about a line of the
// baseline are raised to certainty when findings are made.

func sharedNotes(more ...commentRule) []commentRule {
	return slices.Concat(more, []commentRule{
		{Pattern: CoverageExcluded, S: "LCOV_EXCL", Confidence: 0.6}, {Pattern: ComplaintOff, S: "NOSONAR", Confidence: 0.6},
		{Pattern: ComplaintOff, S: "nosemgrep", Confidence: 0.6, Named: ":"},
		{Pattern: ComplaintOff, S: "codeql[", Confidence: 0.6, Named: "["},
		{Pattern: ComplaintOff, S: "lgtm[", Confidence: 0.6, Named: "["},
		{Pattern: ComplaintOff, S: "DevSkim: ignore", Confidence: 0.6, Named: " "},
	})
}

func goMarks() []markRule {
	return []markRule{
		{GuardVoid, "&& false {", inCode, 0.85}, {GuardVoid, "if false &&", inCode, 0.85},
		{RunnerAsked, "testing . Testing ( )", inCode, 0.9},
		{RunnerAsked, `flag . Lookup ( "test.v" )`, inCode, 0.9},
		{RunnerAsked, `HasSuffix ( os . Args [ 0 ] , ".test" )`, inCode, 0.9},
		{RunnerAsked, `HasSuffix ( os . Args [ 0 ] , "_test" )`, inCode, 0.9},
		{ExitTrick, "os . Exit ( 0 )", anywhere, 0.9},
		{ChecksOff, "InsecureSkipVerify : true", inCode, 0.85},
		{ErrorSwallowed, "_ = err", inCode, 0.85},
	}
}

func goNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: ComplaintOff, S: "nolint", Confidence: 0.6, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "nosec", Confidence: 0.6, Named: " :"},
		commentRule{Pattern: ComplaintOff, S: "lint:ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "lint:file-ignore", Confidence: 0.85, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "revive:disable", Confidence: 0.6, Named: ":"},
		commentRule{Pattern: CoverageExcluded, S: "coverage:ignore", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "coverage-ignore", Confidence: 0.6},
	)
}

func scriptMarks() []markRule {
	return []markRule{
		{GuardVoid, "&& false ) {", inCode, 0.85}, {GuardVoid, "if ( false &&", inCode, 0.85},
		{RunnerAsked, "process . env . JEST_WORKER_ID", inCode, 0.9},
		{RunnerAsked, "process . env . VITEST", inCode, 0.9},
		{RunnerAsked, "process . env . VITEST_WORKER_ID", inCode, 0.9},
		{RunnerAsked, `process . env . NODE_ENV === "test"`, inCode, 0.85},
		{RunnerAsked, `process . env . NODE_ENV == "test"`, inCode, 0.85},
		{RunnerAsked, `process . env . NODE_ENV !== "test"`, inCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] === "test"`, inCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] == "test"`, inCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] !== "test"`, inCode, 0.85},
		{RunnerAsked, `"test" === process . env . NODE_ENV`, inCode, 0.85},
		{RunnerAsked, `process . env . npm_lifecycle_event === "test"`, inCode, 0.85},
		{RunnerAsked, `process . env . npm_lifecycle_event !== "test"`, inCode, 0.85},
		{RunnerAsked, "typeof jest", inCode, 0.9}, {RunnerAsked, `execArgv . includes ( "--test" )`, inCode, 0.9},
		{RunnerAsked, "globalThis . jest", inCode, 0.9}, {RunnerAsked, "global . jest", inCode, 0.9},
		{RunnerAsked, "globalThis . describe", inCode, 0.9}, {RunnerAsked, "global . describe", inCode, 0.9},
		{RunnerAsked, "globalThis . it ", inCode, 0.9}, {RunnerAsked, "global . it ", inCode, 0.9},
		{RunnerAsked, "globalThis . expect", inCode, 0.9}, {RunnerAsked, "globalThis . vi ", inCode, 0.9},
		{RunnerAsked, "typeof it ", inCode, 0.9}, {RunnerAsked, "typeof expect", inCode, 0.9},
		{RunnerAsked, "typeof describe", inCode, 0.9}, {RunnerAsked, "typeof beforeEach", inCode, 0.9},
		{RunnerAsked, "typeof afterEach", inCode, 0.9}, {RunnerAsked, "typeof suite", inCode, 0.85},
		{RunnerAsked, "globalThis . test ", inCode, 0.85}, {RunnerAsked, "globalThis . beforeEach", inCode, 0.9},
		{RunnerAsked, "meta . vitest", inCode, 0.9}, {RunnerAsked, "typeof vi", inCode, 0.9},
		{RunnerAsked, "process . env . NODE_TEST_CONTEXT", inCode, 0.9},
		{RunnerAsked, `process . env [ "JEST_WORKER_ID" ]`, inCode, 0.9},
		{RunnerAsked, `process . env [ "VITEST" ]`, inCode, 0.9},
		{RunnerAsked, `process . env [ "VITEST_WORKER_ID" ]`, inCode, 0.9},
		{RunnerAsked, `process . env [ "NODE_TEST_CONTEXT" ]`, inCode, 0.9},
		{RunnerAsked, `meta . env . MODE === "test"`, inCode, 0.85},
		{RunnerAsked, `meta . env ?. MODE === "test"`, inCode, 0.85},
		{ExitTrick, "process . exit ( 0 )", anywhere, 0.9}, {ExitTrick, "process . exit ( )", anywhere, 0.9},
		{ExitTrick, "process . exitCode = 0", inTests, 0.9}, {ExitTrick, "process . reallyExit (", anywhere, 0.9},
		{HookForged, "assert [ * ] =", inTests, 0.85}, {HookForged, "assert . equal =", inTests, 0.9},
		{HookForged, "assert . strictEqual =", inTests, 0.9},
		{HookForged, "assert . deepEqual =", inTests, 0.9}, {HookForged, "assert . throws =", inTests, 0.9},
		{HookForged, "assert . ok =", inTests, 0.9},
		{HookForged, "globalThis . assert =", anywhere, 0.85}, {HookForged, "chai . expect =", inTests, 0.85},
		{HookForged, "AssertionError =", inTests, 0.7},
		{HookForged, "expect = ", inTests, 0.6}, {HookForged, "globalThis . expect =", anywhere, 0.9},
		{HookForged, "global . expect =", anywhere, 0.85},
		{HookForged, "global . it =", anywhere, 0.85}, {HookForged, "global . test =", anywhere, 0.85},
		{ChecksOff, "rejectUnauthorized : false", inCode, 0.85},
		{ChecksOff, `NODE_TLS_REJECT_UNAUTHORIZED = "0"`, inCode, 0.9},
	}
}

func scriptNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: CoverageExcluded, S: "istanbul ignore", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "c8 ignore", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "v8 ignore", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "node:coverage", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "@ts-nocheck", Confidence: 0.9},
		commentRule{Pattern: ComplaintOff, S: "@ts-ignore", Confidence: 0.7},
		commentRule{Pattern: ComplaintOff, S: "@ts-expect-error", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "eslint-disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "eslint ", Confidence: 0.6, Named: " ", Off: true},
		commentRule{Pattern: ComplaintOff, S: "biome-ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "deno-lint-ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "oxlint-disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "tslint:disable", Confidence: 0.6, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "$FlowFixMe", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "$FlowIgnore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "$FlowExpectedError", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "@noflow", Confidence: 0.85},
		commentRule{Pattern: ComplaintOff, S: "jshint ignore", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "jscs:disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "standard-disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "Stryker disable", Confidence: 0.6, Named: " "},
	)
}

func pythonMarks() []markRule {
	return []markRule{
		{GuardVoid, "and False :", inCode, 0.85}, {GuardVoid, "if False and", inCode, 0.85},
		{RunnerAsked, `"pytest" in sys . modules`, inCode, 0.95}, {RunnerAsked, `"unittest" in sys . modules`, inCode, 0.95},
		{RunnerAsked, `"pytest" not in sys . modules`, inCode, 0.95},
		{RunnerAsked, `sys . modules . get ( "pytest" )`, inCode, 0.95},
		{RunnerAsked, `"PYTEST_CURRENT_TEST" in`, inCode, 0.95}, {RunnerAsked, `"PYTEST_CURRENT_TEST" not in`, inCode, 0.95},
		{RunnerAsked, `getenv ( "PYTEST_CURRENT_TEST"`, inCode, 0.95},
		{RunnerAsked, `get ( "PYTEST_CURRENT_TEST"`, inCode, 0.95},
		{RunnerAsked, `environ [ "PYTEST_CURRENT_TEST" ]`, inCode, 0.95},
		{RunnerAsked, `hasattr ( sys , "_called_from_test" )`, inCode, 0.9},
		{RunnerAsked, `"test_" in * . filename`, inCode, 0.9}, {RunnerAsked, `"pytest" in * . filename`, inCode, 0.9},
		{RunnerAsked, `"PYTEST_VERSION" in`, inCode, 0.95},
		{ExitTrick, "os . _exit (", inTests, 0.95}, {ExitTrick, "os . _exit ( 0 )", inCode, 0.9},
		{ExitTrick, "sys . exit ( 0 )", anywhere, 0.9}, {ExitTrick, "sys . exit ( )", anywhere, 0.9},
		{ExitTrick, "raise SystemExit ( 0 )", anywhere, 0.9}, {ExitTrick, "raise SystemExit ( )", anywhere, 0.9},
		{ExitTrick, "main ( exit = False )", inTests, 0.85},
		{ExitTrick, "exit ( 0 )", inTests, 0.6}, {ExitTrick, "pytest . exit (", inTests, 0.85},
		{ExitTrick, "atexit . register (", inTests, 0.85},
		{ExitTrick, "sys . excepthook =", anywhere, 0.7},
		{HookForged, "def pytest_runtest_makereport (", anywhere, 0.85},
		{HookForged, "def pytest_runtest_logreport (", anywhere, 0.8},
		{HookForged, "def pytest_report_teststatus (", anywhere, 0.8},
		{HookForged, "def pytest_pyfunc_call (", anywhere, 0.85}, {HookForged, "def pytest_runtest_call (", anywhere, 0.7},
		{HookForged, "def pytest_collection_modifyitems (", anywhere, 0.6}, {HookForged, ". outcome =", inTests, 0.85},
		{HookForged, "session . exitstatus =", anywhere, 0.95},
		{HookForged, "TestCase . assertEqual =", anywhere, 0.9}, {HookForged, "TestCase . assertTrue =", anywhere, 0.9},
		{HookForged, "TestCase . assertRaises =", anywhere, 0.9},
		{HookForged, "TestCase . assertIn =", anywhere, 0.9}, {HookForged, "TestCase . fail =", anywhere, 0.9},
		{HookForged, "TestCase . failureException =", anywhere, 0.85},
		{HookForged, "builtins . AssertionError =", anywhere, 0.9}, {HookForged, "class AssertionError", inTests, 0.7},
		{HookForged, "collect_ignore =", inTests, 0.8}, {HookForged, "collect_ignore_glob =", inTests, 0.8},
		{HookForged, "__test__ = False", inTests, 0.85},
		{"skip-conditional", "marks = pytest . mark . skip", inTests, 0.7},
		{"skip-conditional", "marks = pytest . mark . xfail", inTests, 0.7},
		{"skip-conditional", "marks = [ pytest . mark . skip", inTests, 0.7},
		{ChecksOff, "verify = False", inCode, 0.85}, {ChecksOff, `"verify_signature" : False`, inCode, 0.85},
		{ChecksOff, "@ csrf_exempt", inCode, 0.85}, {ChecksOff, "ssl . CERT_NONE", inCode, 0.85},
		{ChecksOff, "_create_unverified_context", inCode, 0.85},
		{ErrorSwallowed, "suppress ( Exception )", inCode, 0.85}, {ErrorSwallowed, "suppress ( BaseException )", inCode, 0.9},
		{LooseType, ": Any", inCode, 0.6}, {LooseType, "-> Any", inCode, 0.6},
	}
}

func pythonNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: CoverageExcluded, S: "pragma: no cover", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "pragma: no branch", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "pragma:no cover", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "pragma: nocover", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "mypy: ignore-errors", Confidence: 0.9},
		commentRule{Pattern: ComplaintOff, S: "mypy: disable-error-code", Confidence: 0.85, Named: "="},
		commentRule{Pattern: ComplaintOff, S: "mypy: allow-", Confidence: 0.85},
		commentRule{Pattern: ComplaintOff, S: "ruff: noqa", Confidence: 0.85, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "flake8: noqa", Confidence: 0.85, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "pylint: skip-file", Confidence: 0.9},
		commentRule{Pattern: ComplaintOff, S: "pylint: disable-all", Confidence: 0.9},
		commentRule{Pattern: ComplaintOff, S: "noqa", Confidence: 0.6, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "type: ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "type:ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "pylint: disable", Confidence: 0.6, Named: "=:"},
		commentRule{Pattern: ComplaintOff, S: "pylint:disable", Confidence: 0.6, Named: "=:"},
		commentRule{Pattern: ComplaintOff, S: "pyright: ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "basedpyright: ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "pyright: basic", Confidence: 0.85},
		commentRule{Pattern: ComplaintOff, S: "pyright: off", Confidence: 0.85},
		commentRule{Pattern: ComplaintOff, S: "pyright: report", Confidence: 0.6, Named: " ", Off: true},
		commentRule{Pattern: ComplaintOff, S: "nosec", Confidence: 0.6, Named: " :"},
		commentRule{Pattern: ComplaintOff, S: "ty: ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "pyre-ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "pyre-fixme", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "pytype: disable", Confidence: 0.6, Named: "="},
		commentRule{Pattern: ComplaintOff, S: "pytype: skip-file", Confidence: 0.85},
		commentRule{Pattern: ComplaintOff, S: "pyrefly: ignore", Confidence: 0.6, Named: "["},
		commentRule{Pattern: ComplaintOff, S: "codespell:ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "pycodestyle: noqa", Confidence: 0.6, Named: ":"},
	)
}

func javaMarks() []markRule {
	return []markRule{
		{GuardVoid, "&& false ) {", inCode, 0.85}, {GuardVoid, "if ( false &&", inCode, 0.85},
		{ExitTrick, "System . exit ( 0 )", anywhere, 0.9}, {ExitTrick, "getRuntime ( ) . halt (", anywhere, 0.85},
		{RunnerAsked, `getProperty ( "surefire.test.class.path" )`, inCode, 0.95},
		{RunnerAsked, `forName ( "org.junit.*"`, inCode, 0.95},
		{RunnerAsked, `startsWith ( "org.junit*"`, inCode, 0.9}, {RunnerAsked, `contains ( "junit" )`, inCode, 0.9},
		{RunnerAsked, `contains ( "org.junit*"`, inCode, 0.9}, {RunnerAsked, `forName ( "org.testng.*"`, inCode, 0.95},
		{RunnerAsked, `getProperty ( "org.gradle.test.worker" )`, inCode, 0.95},
		{ChecksOff, "NoopHostnameVerifier . INSTANCE", inCode, 0.85},
		{ChecksOff, "hostnameVerifier { _ , _ -> true }", inCode, 0.85},
		{ChecksOff, "ALLOW_ALL_HOSTNAME_VERIFIER", inCode, 0.85}, {ChecksOff, "TrustAllStrategy", inCode, 0.85},
		{ComplaintOff, "@ SuppressWarnings", anywhere, 0.6}, {ComplaintOff, "@ SuppressFBWarnings", anywhere, 0.6},
		{CoverageExcluded, "@ ExcludeFromJacocoGeneratedReport", anywhere, 0.7},
		{CoverageExcluded, "@ Generated", inCode, 0.7}, {CoverageExcluded, "@ ExcludeFromGeneratedCoverage", anywhere, 0.7},
	}
}

func javaNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: ComplaintOff, S: "NOPMD", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "CHECKSTYLE:OFF", Confidence: 0.7, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "CHECKSTYLE.OFF", Confidence: 0.7, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "CHECKSTYLE:SUPPRESS", Confidence: 0.6, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "CSOFF", Confidence: 0.7, Named: ":"},
		commentRule{Pattern: ComplaintOff, S: "@checkstyle:off", Confidence: 0.7},
		commentRule{Pattern: ComplaintOff, S: "noinspection", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "ktlint-disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "detekt:disable", Confidence: 0.6, Named: " "},
	)
}

func kotlinMarks() []markRule {
	return []markRule{
		{GuardVoid, "|| true ) {", inCode, 0.85},
		{GuardVoid, "&& false ) {", inCode, 0.85}, {GuardVoid, "if ( false &&", inCode, 0.85},
		{ExitTrick, "exitProcess ( 0 )", anywhere, 0.9}, {RunnerAsked, `forName ( "io.kotest.*"`, inCode, 0.95},
		{RunnerAsked, `forName ( "org.junit.*"`, inCode, 0.95}, {RunnerAsked, `startsWith ( "org.junit*"`, inCode, 0.9},
		{RunnerAsked, `startsWith ( "io.kotest*"`, inCode, 0.9},
		{RunnerAsked, `getProperty ( "org.gradle.test.worker" )`, inCode, 0.95},
		{RunnerAsked, `contains ( "junit" )`, inCode, 0.9}, {RunnerAsked, `"junit" in`, inCode, 0.85},
		{ComplaintOff, "@ Suppress (", anywhere, 0.6}, {ComplaintOff, "@ file : Suppress", anywhere, 0.85},
		{CoverageExcluded, "@ ExcludeFromCoverage", anywhere, 0.7}, {CoverageExcluded, "@ CoverageIgnore", anywhere, 0.7},
	}
}

func csharpMarks() []markRule {
	return []markRule{
		{GuardVoid, "&& false ) {", inCode, 0.85}, {GuardVoid, "if ( false &&", inCode, 0.85},
		{ExitTrick, "Environment . Exit ( 0 )", anywhere, 0.9}, {ExitTrick, "Environment . FailFast (", inTests, 0.7},
		{RunnerAsked, `"ASPNETCORE_ENVIRONMENT" ) == "Test*"`, inCode, 0.85},
		{RunnerAsked, `"DOTNET_ENVIRONMENT" ) == "Test*"`, inCode, 0.85},
		{RunnerAsked, `IsEnvironment ( "Test*" )`, inCode, 0.8},
		{RunnerAsked, `StartsWith ( "xunit*"`, inCode, 0.9}, {RunnerAsked, `StartsWith ( "nunit.framework*"`, inCode, 0.9},
		{RunnerAsked, `Contains ( "xunit" )`, inCode, 0.9},
		{RunnerAsked, `== "nunit.framework*"`, inCode, 0.9}, {RunnerAsked, `== "xunit*"`, inCode, 0.9},
		{RunnerAsked, `== "testhost*"`, inCode, 0.95}, {RunnerAsked, `Contains ( "nunit" )`, inCode, 0.9},
		{RunnerAsked, `GetType ( "Xunit*"`, inCode, 0.9}, {RunnerAsked, `GetType ( "NUnit*"`, inCode, 0.9},
		{RunnerAsked, `Contains ( "testhost" )`, inCode, 0.95},
		{ComplaintOff, "SuppressMessage (", anywhere, 0.6},
		{CoverageExcluded, "ExcludeFromCodeCoverage", inCode, 0.7},
		{ChecksOff, "DangerousAcceptAnyServerCertificateValidator", inCode, 0.85},
		{ChecksOff, "ServerCertificateValidationCallback =", inCode, 0.8},
		{ChecksOff, "ServerCertificateCustomValidationCallback =", inCode, 0.8},
	}
}

func csharpNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: ComplaintOff, S: "pragma warning disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "nullable disable", Confidence: 0.7},
		commentRule{Pattern: ComplaintOff, S: "ReSharper disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "StyleCop.disable", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "Stryker disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: CoverageExcluded, S: "coverage:ignore", Confidence: 0.6},
	)
}

func rustMarks() []markRule {
	return []markRule{
		{GuardVoid, "&& false {", inCode, 0.85}, {GuardVoid, "if false &&", inCode, 0.85},
		{HookForged, "macro_rules ! assert_eq {", inTests, 0.85}, {HookForged, "macro_rules ! assert {", inTests, 0.85},
		{HookForged, "macro_rules ! assert_ne {", inTests, 0.85},
		{ExitTrick, "process :: exit ( 0 )", anywhere, 0.9}, {RunnerAsked, "cfg ! ( test )", inCode, 0.9},
		{RunnerAsked, `var ( "RUST_TEST_*"`, inCode, 0.9}, {RunnerAsked, `var_os ( "RUST_TEST_*"`, inCode, 0.9},
		{RunnerAsked, `var ( "CARGO_MANIFEST_DIR" )`, inCode, 0.85},
		{RunnerAsked, `var_os ( "CARGO_MANIFEST_DIR" )`, inCode, 0.85},
		{RunnerAsked, `var ( "CARGO_PKG_NAME" )`, inCode, 0.85}, {RunnerAsked, `var_os ( "CARGO_PKG_NAME" )`, inCode, 0.85},
		{RunnerAsked, "cfg ! ( not ( test ) )", inCode, 0.9},
		{RunnerAsked, `option_env ! ( "CARGO_TARGET_TMPDIR" )`, inCode, 0.85},
		{RunnerAsked, `var_os ( "CARGO" )`, inCode, 0.85}, {RunnerAsked, `var ( "CARGO" )`, inCode, 0.85},
		{RunnerAsked, `var ( "NEXTEST*"`, inCode, 0.9}, {RunnerAsked, `var_os ( "NEXTEST*"`, inCode, 0.9},
		{RunnerAsked, "cfg ( not ( test ) )", inCode, 0.7},
		{ComplaintOff, "# ! [ allow (", anywhere, 0.8}, {ComplaintOff, "# [ allow (", anywhere, 0.6},
		{ComplaintOff, "# ! [ expect (", anywhere, 0.8}, {ComplaintOff, "# [ expect (", anywhere, 0.6},
		{CoverageExcluded, "# [ coverage ( off ) ]", inCode, 0.7},
		{CoverageExcluded, "# [ cfg_attr ( coverage_nightly", inCode, 0.6},
		{CoverageExcluded, "# [ cfg ( not ( tarpaulin_include ) ) ]", inCode, 0.7},
		{ChecksOff, "danger_accept_invalid_certs ( true )", inCode, 0.9},
		{ChecksOff, "danger_accept_invalid_hostnames ( true )", inCode, 0.9},
	}
}

func rustNotes() []commentRule { return sharedNotes() }

func rubyMarks() []markRule {
	return []markRule{
		{ExitTrick, "exit! 0", anywhere, 0.9}, {ExitTrick, "exit!", inTests, 0.85},
		{ExitTrick, "exit ( 0 )", anywhere, 0.9}, {ExitTrick, "exit 0", anywhere, 0.9},
		{ExitTrick, "exit ( true )", inTests, 0.9}, {ExitTrick, "at_exit", inTests, 0.7},
		{HookForged, "def assert_equal (", inTests, 0.85}, {HookForged, "def assert (", inTests, 0.7},
		{HookForged, "def assert_raises (", inTests, 0.85}, {HookForged, "module Minitest : : Assertions", inTests, 0.7},
		{RunnerAsked, "defined? ( Test :: Unit", inCode, 0.9}, {RunnerAsked, "defined? ( :: Minitest )", inCode, 0.9},
		{RunnerAsked, "defined? Minitest", inCode, 0.9}, {RunnerAsked, "defined? ( RSpec )", inCode, 0.9},
		{RunnerAsked, "defined? ( Minitest )", inCode, 0.9}, {RunnerAsked, "defined? ( :: RSpec )", inCode, 0.9},
		{RunnerAsked, "defined? RSpec", inCode, 0.9}, {RunnerAsked, "const_defined? ( : Minitest )", inCode, 0.9},
		{RunnerAsked, "const_defined? ( : RSpec )", inCode, 0.9},
		{RunnerAsked, `const_defined? ( "Minitest" )`, inCode, 0.9},
		{RunnerAsked, `const_defined? ( "RSpec" )`, inCode, 0.9}, {RunnerAsked, "Rails . env . test?", inCode, 0.85},
		{RunnerAsked, `ENV [ "RAILS_ENV" ] == "test"`, inCode, 0.85},
		{RunnerAsked, `ENV [ "RACK_ENV" ] == "test"`, inCode, 0.85},
		{RunnerAsked, `ENV . fetch ( "RAILS_ENV" ) == "test"`, inCode, 0.85},
		{RunnerAsked, `ENV . fetch ( "RACK_ENV" ) == "test"`, inCode, 0.85},
		{ChecksOff, "VERIFY_NONE", inCode, 0.85}, {ChecksOff, "skip_before_action : verify_authenticity_token", inCode,
			0.85}, {ChecksOff, ". permit!", inCode, 0.85}, {ChecksOff, "save ( validate : false )", inCode, 0.85},
	}
}

func rubyNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: CoverageExcluded, S: ":nocov:", Confidence: 0.6},
		commentRule{Pattern: CoverageExcluded, S: "nocov", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "rubocop:disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "rubocop:todo", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "brakeman:ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "steep:ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "standard:disable", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "reek:ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "typed: false", Confidence: 0.6, Named: "-"},
		commentRule{Pattern: ComplaintOff, S: "typed: ignore", Confidence: 0.6, Named: "-"},
	)
}

func phpMarks() []markRule {
	return []markRule{
		{GuardVoid, "&& false ) {", inCode, 0.85}, {GuardVoid, "if ( false &&", inCode, 0.85},
		{ExitTrick, "exit ( 0 )", anywhere, 0.9}, {ExitTrick, "exit ( )", inTests, 0.9},
		{ExitTrick, "exit ;", inTests, 0.85}, {ExitTrick, "die ( )", inTests, 0.85},
		{ExitTrick, "register_shutdown_function (", inTests, 0.8},
		{RunnerAsked, `defined ( "PHPUNIT_COMPOSER_INSTALL" )`, inCode, 0.95},
		{RunnerAsked, `class_exists ( "PHPUnit\Framework\TestCase"`, inCode, 0.95},
		{RunnerAsked, `class_exists ( TestCase :: class`, inCode, 0.8}, {RunnerAsked, "runningUnitTests ( )", inCode, 0.85},
		{RunnerAsked, `class_exists ( \ PHPUnit \ Framework \ TestCase`, inCode, 0.95},
		{RunnerAsked, `"APP_ENV" ) === "test*"`, inCode, 0.85}, {RunnerAsked, `"APP_ENV" ) ) === "test*"`, inCode, 0.85},
		{RunnerAsked, `"APP_ENV" ) == "test*"`, inCode, 0.85}, {RunnerAsked, `"APP_ENV" ] === "test*"`, inCode, 0.85},
		{RunnerAsked, `"APP_ENV" ] == "test*"`, inCode, 0.85}, {RunnerAsked, `environment ( "testing" )`, inCode, 0.85},
		{RunnerAsked, `defined ( "__PHPUNIT_PHAR__" )`, inCode, 0.95},
		{RunnerAsked, `function_exists ( "it" )`, inCode, 0.95}, {RunnerAsked, `function_exists ( "test" )`, inCode, 0.95},
		{RunnerAsked, `function_exists ( "expect" )`, inCode, 0.95},
		{RunnerAsked, `function_exists ( "describe" )`, inCode, 0.95},
		{RunnerAsked, `function_exists ( "beforeEach" )`, inCode, 0.95},
		{RunnerAsked, `"APP_ENV" ] ?? * ) === "test*"`, inCode, 0.85},
		{RunnerAsked, `"APP_ENV" ] ?? * ) !== "test*"`, inCode, 0.85},
		{RunnerAsked, `"APP_ENV" ) !== "test*"`, inCode, 0.85}, {RunnerAsked, `"APP_ENV" ] !== "test*"`, inCode, 0.85},
		{ChecksOff, "CURLOPT_SSL_VERIFYPEER , false", inCode, 0.85},
		{ChecksOff, "CURLOPT_SSL_VERIFYPEER => false", inCode, 0.85}, {ChecksOff, `"verify_peer" => false`, inCode, 0.85},
		{ComplaintOff, "error_reporting ( 0 )", inCode, 0.9}, {CoverageExcluded, "CodeCoverageIgnore", inCode, 0.7},
	}
}

func phpNotes() []commentRule {
	return sharedNotes(
		commentRule{Pattern: CoverageExcluded, S: "@codeCoverageIgnore", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "phpcs:ignoreFile", Confidence: 0.85},
		commentRule{Pattern: ComplaintOff, S: "phpcs:ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "phpcs:disable", Confidence: 0.7, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@codingStandardsIgnore", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "@phpstan-ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@psalm-suppress", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@phan-suppress", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@phan-file-suppress", Confidence: 0.85, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@SuppressWarnings", Confidence: 0.6, Named: "("},
		commentRule{Pattern: ComplaintOff, S: "@noinspection", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@infection-ignore-all", Confidence: 0.6},
		commentRule{Pattern: ComplaintOff, S: "@mago-ignore", Confidence: 0.6, Named: " "},
		commentRule{Pattern: ComplaintOff, S: "@mago-expect", Confidence: 0.6, Named: " "},
	)
}

func typeScriptMarks() []markRule {
	return append(scriptMarks(), markRule{LooseType, ": any", inCode, 0.6}, markRule{LooseType, "as any", inCode, 0.6},
		markRule{LooseType, "as unknown as", inCode, 0.6},
		markRule{RunnerAsked, "typeof ( globalThis as any ) . expect", inCode, 0.9},
		markRule{RunnerAsked, "typeof ( globalThis as any ) . describe", inCode, 0.9},
		markRule{RunnerAsked, "typeof ( globalThis as any ) . jest", inCode, 0.9})
}
