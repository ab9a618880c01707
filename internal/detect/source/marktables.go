package source

import "slices"

// The tables of marks. A confidence of 0.6 warns in standard mode; what is about
// a line that the baseline had is raised to certainty in marks of findings.

func sharedNotes(more ...noteRule) []noteRule {
	return slices.Concat(more, []noteRule{
		{CoverageExcluded, "LCOV_EXCL", 0.6}, {ComplaintOff, "NOSONAR", 0.6}, {ComplaintOff, "nosemgrep", 0.6}, {ComplaintOff, "codeql[", 0.6},
	})
}

func goMarks() []markRule {
	return []markRule{
		{RunnerAsked, "testing . Testing ( )", inCode, 0.9},
		{RunnerAsked, `flag . Lookup ( "test.v" )`, inCode, 0.9},
		{RunnerAsked, `HasSuffix ( os . Args [ 0 ] , ".test" )`, inCode, 0.9},
		{RunnerAsked, `HasSuffix ( os . Args [ 0 ] , "_test" )`, inCode, 0.9},
		{ExitTrick, "os . Exit ( 0 )", inTests, 0.9},
		{ChecksOff, "InsecureSkipVerify : true", inCode, 0.85},
		{ErrorSwallowed, "_ = err", inCode, 0.85},
	}
}

func goNotes() []noteRule {
	return sharedNotes(noteRule{ComplaintOff, "nolint", 0.6}, noteRule{ComplaintOff, "nosec", 0.6}, noteRule{ComplaintOff, "lint:ignore", 0.6},
		noteRule{ComplaintOff, "lint:file-ignore", 0.85}, noteRule{ComplaintOff, "revive:disable", 0.6}, noteRule{CoverageExcluded, "coverage:ignore", 0.6})
}

func scriptMarks() []markRule {
	return []markRule{
		{RunnerAsked, "process . env . JEST_WORKER_ID", inCode, 0.9},
		{RunnerAsked, "process . env . VITEST", inCode, 0.9},
		{RunnerAsked, "process . env . VITEST_WORKER_ID", inCode, 0.9},
		{RunnerAsked, `process . env . NODE_ENV === "test"`, inCode, 0.85},
		{RunnerAsked, `process . env . NODE_ENV == "test"`, inCode, 0.85},
		{RunnerAsked, `process . env . NODE_ENV !== "test"`, inCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] === "test"`, inCode, 0.85}, {RunnerAsked, `process . env [ "NODE_ENV" ] == "test"`, inCode, 0.85},
		{RunnerAsked, `process . env [ "NODE_ENV" ] !== "test"`, inCode, 0.85}, {RunnerAsked, `"test" === process . env . NODE_ENV`, inCode, 0.85},
		{RunnerAsked, `process . env . npm_lifecycle_event === "test"`, inCode, 0.85}, {RunnerAsked, `process . env . npm_lifecycle_event !== "test"`, inCode, 0.85},
		{RunnerAsked, "typeof jest", inCode, 0.9}, {RunnerAsked, "globalThis . jest", inCode, 0.9}, {RunnerAsked, "global . jest", inCode, 0.9},
		{RunnerAsked, "typeof describe", inCode, 0.9}, {RunnerAsked, "typeof vi", inCode, 0.9}, {RunnerAsked, "process . env . NODE_TEST_CONTEXT", inCode, 0.9},
		{ExitTrick, "process . exit ( 0 )", inTests, 0.9}, {ExitTrick, "process . exit ( )", inTests, 0.9},
		{ExitTrick, "process . exitCode = 0", inTests, 0.9}, {ExitTrick, "process . reallyExit (", anywhere, 0.9},
		{HookForged, "expect = ", inTests, 0.6}, {HookForged, "globalThis . expect =", anywhere, 0.9}, {HookForged, "global . expect =", anywhere, 0.85},
		{HookForged, "global . it =", anywhere, 0.85}, {HookForged, "global . test =", anywhere, 0.85},
		{ChecksOff, "rejectUnauthorized : false", inCode, 0.85}, {ChecksOff, `NODE_TLS_REJECT_UNAUTHORIZED = "0"`, inCode, 0.9},
	}
}

func scriptNotes() []noteRule {
	return sharedNotes(
		noteRule{CoverageExcluded, "istanbul ignore", 0.6}, noteRule{CoverageExcluded, "c8 ignore", 0.6}, noteRule{CoverageExcluded, "v8 ignore", 0.6},
		noteRule{CoverageExcluded, "node:coverage", 0.6},
		noteRule{ComplaintOff, "@ts-nocheck", 0.9}, noteRule{ComplaintOff, "@ts-ignore", 0.7}, noteRule{ComplaintOff, "@ts-expect-error", 0.6},
		noteRule{ComplaintOff, "eslint-disable", 0.6}, noteRule{ComplaintOff, "biome-ignore", 0.6}, noteRule{ComplaintOff, "oxlint-disable", 0.6},
		noteRule{ComplaintOff, "tslint:disable", 0.6}, noteRule{ComplaintOff, "$FlowFixMe", 0.6}, noteRule{ComplaintOff, "$FlowIgnore", 0.6}, noteRule{ComplaintOff, "jshint ignore", 0.6})
}

func pythonMarks() []markRule {
	return []markRule{
		{RunnerAsked, `"pytest" in sys . modules`, inCode, 0.95}, {RunnerAsked, `"unittest" in sys . modules`, inCode, 0.95},
		{RunnerAsked, `"pytest" not in sys . modules`, inCode, 0.95}, {RunnerAsked, `sys . modules . get ( "pytest" )`, inCode, 0.95},
		{RunnerAsked, `"PYTEST_CURRENT_TEST" in`, inCode, 0.95}, {RunnerAsked, `"PYTEST_CURRENT_TEST" not in`, inCode, 0.95},
		{RunnerAsked, `getenv ( "PYTEST_CURRENT_TEST"`, inCode, 0.95}, {RunnerAsked, `get ( "PYTEST_CURRENT_TEST"`, inCode, 0.95},
		{RunnerAsked, `environ [ "PYTEST_CURRENT_TEST" ]`, inCode, 0.95}, {RunnerAsked, `hasattr ( sys , "_called_from_test" )`, inCode, 0.9},
		{RunnerAsked, `"test_" in * . filename`, inCode, 0.9}, {RunnerAsked, `"pytest" in * . filename`, inCode, 0.9}, {RunnerAsked, `"PYTEST_VERSION" in`, inCode, 0.95},
		{ExitTrick, "os . _exit (", inTests, 0.95}, {ExitTrick, "os . _exit ( 0 )", inCode, 0.7}, {ExitTrick, "sys . exit ( 0 )", inTests, 0.9}, {ExitTrick, "sys . exit ( )", inTests, 0.9},
		{ExitTrick, "exit ( 0 )", inTests, 0.6}, {ExitTrick, "pytest . exit (", inTests, 0.85}, {ExitTrick, "atexit . register (", inTests, 0.85},
		{ExitTrick, "sys . excepthook =", anywhere, 0.7},
		{HookForged, "def pytest_runtest_makereport (", anywhere, 0.85}, {HookForged, "def pytest_runtest_logreport (", anywhere, 0.8},
		{HookForged, "def pytest_report_teststatus (", anywhere, 0.8}, {HookForged, "def pytest_pyfunc_call (", anywhere, 0.85}, {HookForged, "def pytest_runtest_call (", anywhere, 0.7},
		{HookForged, "def pytest_collection_modifyitems (", anywhere, 0.6}, {HookForged, ". outcome =", inTests, 0.85}, {HookForged, "session . exitstatus =", anywhere, 0.95},
		{HookForged, "collect_ignore =", inTests, 0.8}, {HookForged, "collect_ignore_glob =", inTests, 0.8}, {HookForged, "__test__ = False", inTests, 0.85},
		{"skip-conditional", "marks = pytest . mark . skip", inTests, 0.7}, {"skip-conditional", "marks = pytest . mark . xfail", inTests, 0.7}, {"skip-conditional", "marks = [ pytest . mark . skip", inTests, 0.7},
		{ChecksOff, "verify = False", inCode, 0.85}, {ChecksOff, "ssl . CERT_NONE", inCode, 0.85}, {ChecksOff, "_create_unverified_context", inCode, 0.85},
		{ErrorSwallowed, "suppress ( Exception )", inCode, 0.85}, {ErrorSwallowed, "suppress ( BaseException )", inCode, 0.9},
		{LooseType, ": Any", inCode, 0.6}, {LooseType, "-> Any", inCode, 0.6},
	}
}

func pythonNotes() []noteRule {
	return sharedNotes(
		noteRule{CoverageExcluded, "pragma: no cover", 0.6}, noteRule{CoverageExcluded, "pragma: no branch", 0.6}, noteRule{CoverageExcluded, "pragma:no cover", 0.6}, noteRule{CoverageExcluded, "pragma: nocover", 0.6},
		noteRule{ComplaintOff, "mypy: ignore-errors", 0.9}, noteRule{ComplaintOff, "ruff: noqa", 0.85}, noteRule{ComplaintOff, "flake8: noqa", 0.85}, noteRule{ComplaintOff, "pylint: skip-file", 0.9},
		noteRule{ComplaintOff, "noqa", 0.6}, noteRule{ComplaintOff, "type: ignore", 0.6}, noteRule{ComplaintOff, "pylint: disable", 0.6},
		noteRule{ComplaintOff, "pyright: ignore", 0.6}, noteRule{ComplaintOff, "pyright: basic", 0.6}, noteRule{ComplaintOff, "nosec", 0.6}, noteRule{ComplaintOff, "ty: ignore", 0.6}, noteRule{ComplaintOff, "pyre-ignore", 0.6})
}

func javaMarks() []markRule {
	return []markRule{
		{ExitTrick, "System . exit ( 0 )", inTests, 0.9}, {ExitTrick, "getRuntime ( ) . halt (", anywhere, 0.85},
		{RunnerAsked, `getProperty ( "surefire.test.class.path" )`, inCode, 0.95}, {RunnerAsked, `forName ( "org.junit.*"`, inCode, 0.95},
		{RunnerAsked, `startsWith ( "org.junit*"`, inCode, 0.9}, {RunnerAsked, `forName ( "org.testng.*"`, inCode, 0.95}, {RunnerAsked, `getProperty ( "org.gradle.test.worker" )`, inCode, 0.95},
		{ChecksOff, "NoopHostnameVerifier . INSTANCE", inCode, 0.85}, {ChecksOff, "ALLOW_ALL_HOSTNAME_VERIFIER", inCode, 0.85}, {ChecksOff, "TrustAllStrategy", inCode, 0.85},
		{ComplaintOff, "@ SuppressWarnings", anywhere, 0.6}, {ComplaintOff, "@ SuppressFBWarnings", anywhere, 0.6},
		{CoverageExcluded, "@ ExcludeFromJacocoGeneratedReport", anywhere, 0.7}, {CoverageExcluded, "@ Generated", inCode, 0.7}, {CoverageExcluded, "@ ExcludeFromGeneratedCoverage", anywhere, 0.7},
	}
}

func javaNotes() []noteRule {
	return sharedNotes(noteRule{ComplaintOff, "NOPMD", 0.6}, noteRule{ComplaintOff, "CHECKSTYLE:OFF", 0.7}, noteRule{ComplaintOff, "CHECKSTYLE.OFF", 0.7}, noteRule{ComplaintOff, "noinspection", 0.6})
}

func kotlinMarks() []markRule {
	return []markRule{
		{ExitTrick, "exitProcess ( 0 )", inTests, 0.9}, {ComplaintOff, "@ Suppress (", anywhere, 0.6}, {ComplaintOff, "@ file : Suppress", anywhere, 0.85},
		{CoverageExcluded, "@ ExcludeFromCoverage", anywhere, 0.7}, {CoverageExcluded, "@ CoverageIgnore", anywhere, 0.7},
	}
}

func csharpMarks() []markRule {
	return []markRule{
		{ExitTrick, "Environment . Exit ( 0 )", inTests, 0.9}, {ExitTrick, "Environment . FailFast (", inTests, 0.7},
		{RunnerAsked, `"ASPNETCORE_ENVIRONMENT" ) == "Test*"`, inCode, 0.85}, {RunnerAsked, `"DOTNET_ENVIRONMENT" ) == "Test*"`, inCode, 0.85}, {RunnerAsked, `IsEnvironment ( "Test*" )`, inCode, 0.8},
		{RunnerAsked, `StartsWith ( "xunit" )`, inCode, 0.9}, {RunnerAsked, `StartsWith ( "nunit.framework" )`, inCode, 0.9}, {RunnerAsked, `Contains ( "xunit" )`, inCode, 0.9}, {RunnerAsked, `Contains ( "testhost" )`, inCode, 0.95},
		{ComplaintOff, "SuppressMessage (", anywhere, 0.6},
		{CoverageExcluded, "ExcludeFromCodeCoverage", inCode, 0.7},
		{ChecksOff, "DangerousAcceptAnyServerCertificateValidator", inCode, 0.85}, {ChecksOff, "ServerCertificateValidationCallback =", inCode, 0.8}, {ChecksOff, "ServerCertificateCustomValidationCallback =", inCode, 0.8},
	}
}

func csharpNotes() []noteRule {
	return sharedNotes(noteRule{ComplaintOff, "pragma warning disable", 0.6}, noteRule{ComplaintOff, "nullable disable", 0.7}, noteRule{ComplaintOff, "ReSharper disable", 0.6})
}

func rustMarks() []markRule {
	return []markRule{
		{ExitTrick, "process :: exit ( 0 )", inTests, 0.9}, {RunnerAsked, "cfg ! ( test )", inCode, 0.9}, {RunnerAsked, `var ( "RUST_TEST_*"`, inCode, 0.9}, {RunnerAsked, `var_os ( "RUST_TEST_*"`, inCode, 0.9},
		{RunnerAsked, `var ( "NEXTEST*"`, inCode, 0.9}, {RunnerAsked, `var_os ( "NEXTEST*"`, inCode, 0.9}, {RunnerAsked, "cfg ( not ( test ) )", inCode, 0.7},
		{ComplaintOff, "# ! [ allow (", anywhere, 0.8}, {ComplaintOff, "# [ allow (", anywhere, 0.6}, {CoverageExcluded, "# [ coverage ( off ) ]", inCode, 0.7},
		{CoverageExcluded, "# [ cfg_attr ( coverage_nightly", inCode, 0.6}, {CoverageExcluded, "# [ cfg ( not ( tarpaulin_include ) ) ]", inCode, 0.7},
		{ChecksOff, "danger_accept_invalid_certs ( true )", inCode, 0.9}, {ChecksOff, "danger_accept_invalid_hostnames ( true )", inCode, 0.9},
	}
}

func rubyMarks() []markRule {
	return []markRule{
		{ExitTrick, "exit! 0", inTests, 0.9}, {ExitTrick, "exit!", inTests, 0.85}, {ExitTrick, "exit ( 0 )", inTests, 0.9}, {ExitTrick, "exit 0", inTests, 0.9}, {ExitTrick, "exit ( true )", inTests, 0.9}, {ExitTrick, "at_exit", inTests, 0.7},
		{RunnerAsked, "defined? ( RSpec )", inCode, 0.9}, {RunnerAsked, "defined? ( Minitest )", inCode, 0.9}, {RunnerAsked, "defined? ( :: RSpec )", inCode, 0.9}, {RunnerAsked, "defined? RSpec", inCode, 0.9}, {RunnerAsked, "Rails . env . test?", inCode, 0.85},
		{RunnerAsked, `ENV [ "RAILS_ENV" ] == "test"`, inCode, 0.85}, {RunnerAsked, `ENV [ "RACK_ENV" ] == "test"`, inCode, 0.85},
		{RunnerAsked, `ENV . fetch ( "RAILS_ENV" ) == "test"`, inCode, 0.85}, {RunnerAsked, `ENV . fetch ( "RACK_ENV" ) == "test"`, inCode, 0.85},
		{ChecksOff, "VERIFY_NONE", inCode, 0.85}, {ChecksOff, "save ( validate : false )", inCode, 0.85},
	}
}

func rubyNotes() []noteRule {
	return sharedNotes(noteRule{CoverageExcluded, ":nocov:", 0.6}, noteRule{CoverageExcluded, "nocov", 0.6}, noteRule{ComplaintOff, "rubocop:disable", 0.6}, noteRule{ComplaintOff, "brakeman:ignore", 0.6}, noteRule{ComplaintOff, "steep:ignore", 0.6})
}

func phpMarks() []markRule {
	return []markRule{
		{ExitTrick, "exit ( 0 )", inTests, 0.9}, {ExitTrick, "exit ( )", inTests, 0.9}, {ExitTrick, "exit ;", inTests, 0.85}, {ExitTrick, "die ( )", inTests, 0.85}, {ExitTrick, "register_shutdown_function (", inTests, 0.8},
		{RunnerAsked, `defined ( "PHPUNIT_COMPOSER_INSTALL" )`, inCode, 0.95}, {RunnerAsked, `class_exists ( "PHPUnit\Framework\TestCase"`, inCode, 0.95}, {RunnerAsked, `class_exists ( TestCase :: class`, inCode, 0.8}, {RunnerAsked, "runningUnitTests ( )", inCode, 0.85},
		{RunnerAsked, `class_exists ( \ PHPUnit \ Framework \ TestCase`, inCode, 0.95}, {RunnerAsked, `"APP_ENV" ) === "test*"`, inCode, 0.85}, {RunnerAsked, `"APP_ENV" ) ) === "test*"`, inCode, 0.85},
		{RunnerAsked, `"APP_ENV" ) == "test*"`, inCode, 0.85}, {RunnerAsked, `"APP_ENV" ] === "test*"`, inCode, 0.85}, {RunnerAsked, `"APP_ENV" ] == "test*"`, inCode, 0.85}, {RunnerAsked, `environment ( "testing" )`, inCode, 0.85},
		{RunnerAsked, `defined ( "__PHPUNIT_PHAR__" )`, inCode, 0.95},
		{ChecksOff, "CURLOPT_SSL_VERIFYPEER , false", inCode, 0.85}, {ChecksOff, "CURLOPT_SSL_VERIFYPEER => false", inCode, 0.85}, {ChecksOff, `"verify_peer" => false`, inCode, 0.85},
		{ComplaintOff, "error_reporting ( 0 )", inCode, 0.9}, {CoverageExcluded, "CodeCoverageIgnore", inCode, 0.7},
	}
}

func phpNotes() []noteRule {
	return sharedNotes(noteRule{CoverageExcluded, "@codeCoverageIgnore", 0.6}, noteRule{ComplaintOff, "phpcs:ignore", 0.6}, noteRule{ComplaintOff, "phpcs:disable", 0.7}, noteRule{ComplaintOff, "@phpstan-ignore", 0.6}, noteRule{ComplaintOff, "@psalm-suppress", 0.6}, noteRule{ComplaintOff, "@phan-suppress", 0.6})
}
