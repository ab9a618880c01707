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

// markRule matches sequences of tokens, which blanks separate. A quoted word is a string, or a prefix
// of one if it ends in a star; * is any token.
type markRule struct {
	Pattern    string
	Where      markPlace
	Confidence float64
	Sequences  []string
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

// sharedNotes returns the rules of a language and those of all languages.
func sharedNotes(more ...[]commentRule) []commentRule {
	return slices.Concat(append(more,
		comments(CoverageExcluded, 0.6, "", "LCOV_EXCL"),
		comments(ComplaintOff, 0.6, "", "NOSONAR"),
		comments(ComplaintOff, 0.6, ":", "nosemgrep"),
		comments(ComplaintOff, 0.6, "[", "codeql[", "lgtm["),
		comments(ComplaintOff, 0.6, " ", "DevSkim: ignore"))...)
}

// comments returns a rule for each text.
func comments(pattern string, confidence float64, named string, texts ...string) []commentRule {
	var all []commentRule
	for _, s := range texts {
		all = append(all, commentRule{Pattern: pattern, S: s, Confidence: confidence, Named: named})
	}
	return all
}

func goMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false {", "if false &&"}},
		{RunnerAsked, inCode, 0.9, []string{"testing . Testing ( )", `flag . Lookup ( "test.v" )`,
			`HasSuffix ( os . Args [ 0 ] , ".test" )`, `HasSuffix ( os . Args [ 0 ] , "_test" )`}},
		{ExitTrick, anywhere, 0.9, []string{"os . Exit ( 0 )"}},
		{ChecksOff, inCode, 0.85, []string{"InsecureSkipVerify : true"}},
		{ErrorSwallowed, inCode, 0.85, []string{"_ = err"}},
	}
}

func goNotes() []commentRule {
	return sharedNotes(
		comments(ComplaintOff, 0.6, ":", "nolint"),
		comments(ComplaintOff, 0.6, " :", "nosec"),
		comments(ComplaintOff, 0.6, " ", "lint:ignore"),
		comments(ComplaintOff, 0.85, " ", "lint:file-ignore"),
		comments(ComplaintOff, 0.6, ":", "revive:disable"),
		comments(CoverageExcluded, 0.6, "", "coverage:ignore", "coverage-ignore"),
	)
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

func rustMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false {", "if false &&"}},
		{HookForged, inTests, 0.85, []string{"macro_rules ! assert_eq {", "macro_rules ! assert {",
			"macro_rules ! assert_ne {"}},
		{ExitTrick, anywhere, 0.9, []string{"process :: exit ( 0 )"}},
		{RunnerAsked, inCode, 0.9, []string{"cfg ! ( test )", `var ( "RUST_TEST_*"`, `var_os ( "RUST_TEST_*"`,
			"cfg ! ( not ( test ) )"}},
		{RunnerAsked, inCode, 0.85, []string{`var ( "CARGO_MANIFEST_DIR" )`, `var_os ( "CARGO_MANIFEST_DIR" )`,
			`var ( "CARGO_PKG_NAME" )`, `var_os ( "CARGO_PKG_NAME" )`, `option_env ! ( "CARGO_TARGET_TMPDIR" )`,
			`var_os ( "CARGO" )`, `var ( "CARGO" )`}},
		{RunnerAsked, inCode, 0.9, []string{`var ( "NEXTEST*"`, `var_os ( "NEXTEST*"`}},
		{RunnerAsked, inCode, 0.7, []string{"cfg ( not ( test ) )"}},
		{ComplaintOff, anywhere, 0.8, []string{"# ! [ allow ("}},
		{ComplaintOff, anywhere, 0.6, []string{"# [ allow ("}},
		{ComplaintOff, anywhere, 0.8, []string{"# ! [ expect ("}},
		{ComplaintOff, anywhere, 0.6, []string{"# [ expect ("}},
		{CoverageExcluded, inCode, 0.7, []string{"# [ coverage ( off ) ]"}},
		{CoverageExcluded, inCode, 0.6, []string{"# [ cfg_attr ( coverage_nightly"}},
		{CoverageExcluded, inCode, 0.7, []string{"# [ cfg ( not ( tarpaulin_include ) ) ]"}},
		{ChecksOff, inCode, 0.9, []string{"danger_accept_invalid_certs ( true )",
			"danger_accept_invalid_hostnames ( true )"}},
	}
}

func rubyMarks() []markRule {
	return []markRule{
		{ExitTrick, anywhere, 0.9, []string{"exit! 0", "exit ( 0 )", "exit 0"}},
		{ExitTrick, inTests, 0.85, []string{"exit!"}},
		{ExitTrick, inTests, 0.9, []string{"exit ( true )"}},
		{ExitTrick, inTests, 0.7, []string{"at_exit"}},
		{HookForged, inTests, 0.85, []string{"def assert_equal ("}},
		{HookForged, inTests, 0.7, []string{"def assert (", "module Minitest : : Assertions"}},
		{HookForged, inTests, 0.85, []string{"def assert_raises ("}},
		{RunnerAsked, inCode, 0.9, []string{"defined? ( Test :: Unit", "defined? ( :: Minitest )", "defined? Minitest",
			"defined? ( RSpec )", "defined? ( Minitest )", "defined? ( :: RSpec )", "defined? RSpec",
			"const_defined? ( : Minitest )", "const_defined? ( : RSpec )", `const_defined? ( "Minitest" )`,
			`const_defined? ( "RSpec" )`}},
		{RunnerAsked, inCode, 0.85, []string{"Rails . env . test?", `ENV [ "RAILS_ENV" ] == "test"`,
			`ENV [ "RACK_ENV" ] == "test"`, `ENV . fetch ( "RAILS_ENV" ) == "test"`, `ENV . fetch ( "RACK_ENV" ) == "test"`}},
		{ChecksOff, inCode, 0.85, []string{"VERIFY_NONE", "skip_before_action : verify_authenticity_token", ". permit!",
			"save ( validate : false )"}},
	}
}

func rubyNotes() []commentRule {
	return sharedNotes(
		comments(CoverageExcluded, 0.6, "", ":nocov:", "nocov"),
		comments(ComplaintOff, 0.6, " ", "rubocop:disable", "rubocop:todo", "brakeman:ignore", "steep:ignore",
			"standard:disable", "reek:ignore"),
		comments(ComplaintOff, 0.6, "", "typed: false", "typed: ignore"),
	)
}

func phpMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false ) {", "if ( false &&"}},
		{ExitTrick, anywhere, 0.9, []string{"exit ( 0 )"}},
		{ExitTrick, inTests, 0.9, []string{"exit ( )"}},
		{ExitTrick, inTests, 0.85, []string{"exit ;", "die ( )"}},
		{ExitTrick, inTests, 0.8, []string{"register_shutdown_function ("}},
		{RunnerAsked, inCode, 0.95, []string{`defined ( "PHPUNIT_COMPOSER_INSTALL" )`,
			`class_exists ( "PHPUnit\Framework\TestCase"`}},
		{RunnerAsked, inCode, 0.8, []string{`class_exists ( TestCase :: class`}},
		{RunnerAsked, inCode, 0.85, []string{"runningUnitTests ( )", `"APP_ENV" ) === "test*"`, `"APP_ENV" ) ) === "test*"`,
			`"APP_ENV" ) == "test*"`, `"APP_ENV" ] === "test*"`, `"APP_ENV" ] == "test*"`, `environment ( "testing" )`,
			`"APP_ENV" ] ?? * ) === "test*"`, `"APP_ENV" ] ?? * ) !== "test*"`, `"APP_ENV" ) !== "test*"`,
			`"APP_ENV" ] !== "test*"`}},
		{RunnerAsked, inCode, 0.95, []string{`class_exists ( \ PHPUnit \ Framework \ TestCase`,
			`defined ( "__PHPUNIT_PHAR__" )`, `function_exists ( "it" )`, `function_exists ( "test" )`,
			`function_exists ( "expect" )`, `function_exists ( "describe" )`, `function_exists ( "beforeEach" )`}},
		{ChecksOff, inCode, 0.85, []string{"CURLOPT_SSL_VERIFYPEER , false", "CURLOPT_SSL_VERIFYPEER => false",
			`"verify_peer" => false`}},
		{ComplaintOff, inCode, 0.9, []string{"error_reporting ( 0 )"}},
		{CoverageExcluded, inCode, 0.7, []string{"CodeCoverageIgnore"}},
	}
}

func phpNotes() []commentRule {
	return sharedNotes(
		comments(CoverageExcluded, 0.6, "", "@codeCoverageIgnore"),
		comments(ComplaintOff, 0.85, "", "phpcs:ignoreFile"),
		comments(ComplaintOff, 0.6, " ", "phpcs:ignore"),
		comments(ComplaintOff, 0.7, " ", "phpcs:disable"),
		comments(ComplaintOff, 0.6, "", "@codingStandardsIgnore"),
		comments(ComplaintOff, 0.6, " ", "@phpstan-ignore", "@psalm-suppress", "@phan-suppress"),
		comments(ComplaintOff, 0.85, " ", "@phan-file-suppress"),
		comments(ComplaintOff, 0.6, "(", "@SuppressWarnings"),
		comments(ComplaintOff, 0.6, " ", "@noinspection"),
		comments(ComplaintOff, 0.6, "", "@infection-ignore-all"),
		comments(ComplaintOff, 0.6, " ", "@mago-ignore", "@mago-expect"),
	)
}

func typeScriptMarks() []markRule {
	return append(scriptMarks(),
		markRule{LooseType, inCode, 0.6, []string{": any", "as any", "as unknown as"}},
		markRule{RunnerAsked, inCode, 0.9, []string{"typeof ( globalThis as any ) . expect",
			"typeof ( globalThis as any ) . describe", "typeof ( globalThis as any ) . jest"}},
	)
}
