package syntax

import (
	"strings"
	"sync"
)

// namesTestRunner reports whether a text is the name of a test runner, or the path or title of a
// part of one. Names with other meanings must stand alone between slashes or dots; a command-line
// option is not a name.
func namesTestRunner(s string) bool {
	if len(s) < 3 || len(s) > 60 || s[0] == '-' || strings.ContainsAny(s, " \t%{}<>") {
		return false
	}
	var small [60]byte
	low := small[:copy(small[:], s)]
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c | 0x20
		}
	}
	from := 0
	for i := 0; i <= len(low); i++ {
		if i < len(low) && ('a' <= low[i] && low[i] <= 'z' || low[i] == '_' || low[i] == '-' && i > from) {
			continue
		}
		if i > from {
			if word := strings.Trim(string(low[from:i]), "_"); runnerNames()[word] || i-from > 5 && containsRunner(word) {
				return true
			}
		}
		from = i + 1
	}
	return false
}

// containsRunner reports whether a word contains the name of a test runner.
func containsRunner(word string) bool {
	for _, name := range [...]string{"jest", "vitest", "mocha", "jasmine", "karma", "pytest", "unittest", "nosetest",
		"junit", "surefire", "kotest", "testng", "xunit", "nunit", "mstest", "testhost", "vstest", "testrunner", "minitest",
		"rspec", "rake_test", "phpunit", "paratest", "nextest", "gotestsum", "playwright"} {
		if strings.Contains(word, name) {
			return name != "playwright" || strings.HasSuffix(word, "test")
		}
	}
	return false
}

// namesRunnerModule reports whether a module is usually loaded only by tests.
func namesRunnerModule(s string) bool {
	head, _, _ := strings.Cut(s, ".")
	return runnerModules()[head]
}

// isRunnerVariable reports whether test runners set the environment variable.
func isRunnerVariable(s string) bool {
	if len(s) < 3 || len(s) > 42 {
		return false
	}
	if runnerVariables()[s] || strings.HasPrefix(s, "RUST_TEST_") || strings.HasPrefix(s, "TEST_WORKER_") {
		return true
	}
	head, _, ok := strings.Cut(strings.TrimLeft(s, "_"), "_")
	return ok && runnerFamilies()[head] && s == strings.ToUpper(s)
}

var (
	runnerNames = sync.OnceValue(wordSet("jest vitest mocha jasmine karma ava tape tap uvu cypress wdio " +
		"webdriverio qunit testcafe nightwatch ts-mocha mocha-phantomjs node-tap jest-worker vitest-pool pytest " +
		"unittest nose nosetests tox py-test testtools junit surefire failsafe kotest testng spock cucumber jqwik " +
		"gradle-worker gradleworkermain xunit nunit mstest testhost vstest resharpertestrunner specflow reqnroll " +
		"ncrunch minitest rspec phpunit pest paratest codeception codecept behat phpspec infection atoum nextest " +
		"cargo-nextest tarpaulin llvm-cov ginkgo gotestsum convey"))
	runnerModules = sync.OnceValue(wordSet("pytest _pytest unittest hypothesis nose nose2 tox doctest behave " +
		"coverage trial testtools xdist pluggy ward lettuce robot freezegun responses"))
	runnerVariables = sync.OnceValue(wordSet("VITEST NODE_TEST_CONTEXT NEXTEST GO_TEST TESTING UNDER_TEST IN_TEST " +
		"IS_TEST RUNNING_TESTS RUNNING_TEST RUN_BY_TEST vitest Cypress TAP AVA_PATH PLAYWRIGHT_TEST BUN_TEST " +
		"DENO_TEST UNIQUE_TEST_TOKEN TEST_TOKEN TEST_ENV_NUMBER CARGO_TARGET_TMPDIR GOCOVERDIR COVERAGE_RUN " +
		"COVERAGE_PROCESS_START TEST_WORKSPACE TEST_TARGET TEST_SRCDIR PARATEST INFECTION STRYKER_MUTATOR_WORKER " +
		"NYC_PROCESS_ID NYC_CONFIG __PHPUNIT_PHAR__ PHPUNIT_COMPOSER_INSTALL DOTNET_RUNNING_IN_TEST CYPRESS"))
	runnerFamilies = sync.OnceValue(wordSet("JEST VITEST PYTEST MOCHA NEXTEST PHPUNIT AVA TAP UVU CYPRESS WDIO " +
		"KARMA JASMINE HYPOTHESIS BEHAVE NOSE TOX VSTEST XUNIT NUNIT MSTEST RSPEC MINITEST CUCUMBER PARATEST PEST " +
		"BEHAT CODECEPTION INFECTION GINKGO GOTESTSUM SUREFIRE JUNIT KOTEST TESTNG STRYKER"))
)
