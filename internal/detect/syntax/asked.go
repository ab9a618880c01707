package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// readAsked finds production code that detects test runs: it compares the arguments, the
// environment, the stack or the loaded modules with names of test runners, test files or their
// variables.
func (u *unit) readAsked(m *Model, tests func(i int) bool) {
	asks := u.lang.asks
	told := make(map[int32]bool)
	for i := range m.Marks {
		if m.Marks[i].Pattern == RunnerAsked {
			told[int32(m.Marks[i].Line)] = true
		}
	}
	for i := range u.tok {
		t := &u.tok[i]
		if t.Kind == lex.Op || tests(i) || !u.namesRunner(i, asks) || told[int32(u.line(i))] {
			continue
		}
		told[int32(u.line(i))] = true
		m.Marks = append(m.Marks, Mark{
			Pattern: RunnerAsked, Line: u.line(i), S: u.lineText(i), Key: mixAll(firstHash, u.tok[max(0, i-3):i+1]),
			Confidence: 0.85,
		})
	}
}

// namesRunner reports whether the token at i is a name of a test runner that is compared with the
// environment of the program.
func (u *unit) namesRunner(i int, asks set) bool {
	if u.kindAt(i) == lex.Word {
		name := u.at(i)
		return len(name) > 2 && (name[0] == '_' || name[0] >= 'A' && name[0] <= 'Z' && name[1] < 'a' || name == "vitest") &&
			isRunnerVariable(name) && u.asksBefore(i, asks, 8)
	}
	s := lex.Unquote(u.at(i))
	switch {
	case len(s) < 3 || len(s) > 60:
		return false
	case isRunnerVariable(s):
		return u.asksAround(i, asks)
	case !u.comparedWith(i) && s != "test":
		return false // the common case
	case (s == "test" || s == "testing" || s == "Test" || s == "Testing") && u.ofMode(i):
		return true
	case namesRunnerModule(s) && u.asksAround(i, modules()):
		return true
	case !namesTestRunner(s) && !nameOfTest(s):
		return false
	}
	return u.comparedWith(i) && u.asksAround(i, asks)
}

// asksBefore reports whether one of the words is in the tokens before i.
func (u *unit) asksBefore(i int, asks set, far int) bool {
	return anyOf(max(0, i-far), i, func(j int) bool {
		return asks[u.at(j)] && u.kindAt(j) != lex.Text && u.at(j-1) != "const" && u.at(j-1) != "let"
	})
}

// asksAround reports whether one of the words is before i or on the same line after it.
func (u *unit) asksAround(i int, asks set) bool {
	if u.asksBefore(i, asks, maxAsked) {
		return true
	}
	for j := i + 1; j < min(len(u.tok), i+12) && u.tok[j].Line == u.tok[i].Line; j++ {
		if asks[u.at(j)] && u.kindAt(j) != lex.Text {
			return true
		}
	}
	return false
}

// maxAsked is the maximum distance between a query and the value that it is compared with.
const maxAsked = 40

// comparedWith reports whether the string at i is compared or searched for.
func (u *unit) comparedWith(i int) bool {
	for j := i - 1; j >= max(0, i-3); j-- {
		switch s := u.at(j); s {
		case "==", "===", "!=", "!==", "is", "=~", "or":
			return true
		case "(":
			if comparing()[u.at(j-1)] {
				return true
			}
		case ",": // strings.HasSuffix(name, ".test"), str_contains($name, 'phpunit')
			for k := j - 1; k > max(0, j-16); k-- {
				if u.at(k) == "(" && comparing()[u.at(k-1)] {
					return true
				}
			}
		}
	}
	switch u.at(i + 1) {
	case "==", "===", "!=", "!==", "in":
		return true
	case "not":
		return u.at(i+2) == "in"
	case ".":
		return u.at(i+2) == "equals" || u.at(i+2) == "Equals"
	}
	return false
}

// nameOfTest reports whether a text is (part of) the name of a test file, program or function.
func nameOfTest(s string) bool {
	return strings.HasPrefix(s, "-test") && len(s) < 20 || strings.HasPrefix(s, "test.") && len(s) < 14 || testNames()[s]
}

// ofMode reports whether the string at i is compared with the mode of a program, such as NODE_ENV.
func (u *unit) ofMode(i int) bool {
	if u.at(i+1) == "in" && u.at(i+2) == "sys" && u.at(i+4) == "argv" {
		return true
	}
	for j := i - 1; j > max(0, i-8) && u.at(j) != ";" && u.at(j) != "{"; j-- { // acceptsProfiles(Profiles.of("test"))
		if s := u.at(j); s == "acceptsProfiles" || s == "matchesProfiles" {
			return true
		}
	}
	if !u.comparedWith(i) {
		return false
	}
	return anyOf(max(0, i-10), min(len(u.tok), i+10), func(j int) bool {
		s := u.at(j)
		return u.tok[j].Line == u.tok[i].Line && u.kindAt(j) != lex.Op && j != i &&
			(modeName().MatchString(strings.Trim(s, "\"'")) || strings.HasSuffix(s, "profiles.active\""))
	})
}

var (
	comparing = sync.OnceValue(wordSet("includes contains Contains startsWith endsWith StartsWith EndsWith startswith " +
		"endswith HasSuffix HasPrefix HasSuffixFold start_with? end_with? include? match match? test equals Equals " +
		"equalsIgnoreCase str_contains str_starts_with str_ends_with strpos stripos starts_with ends_with class_exists " +
		"forName Lookup get has indexOf eq is_a any some in_array preg_match strstr function_exists interface_exists " +
		"defined const_defined? loadClass key? has_key? ContainsKey containsKey find matches IsMatch"))
	testNames = sync.OnceValue(wordSet(".test _test _test.go .test.js .test.ts .test.jsx .test.tsx .spec.js " +
		".spec.ts .spec.jsx .spec.tsx test_ tests/ /tests/ /test/ test/ /tests /test tests _spec _spec.rb " +
		"_test.rb test-classes tests:: ::tests:: /deps/ Test Tests Spec .Tests ::test_ conftest"))
	modules  = sync.OnceValue(wordSet("modules"))
	modeName = lazyregexp.New(`(?i)^(?:node|app|rails|rack|go|django|flask|aspnetcore|dotnet|spring|micronaut|` +
		`symfony|laravel|ktor)_?(?:env|environment|profiles_active)$|^npm_lifecycle_event$|^env$|^environment$`)
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
			if word := strings.Trim(string(low[from:i]), "_"); runnerNames()[word] {
				return true
			}
		}
		from = i + 1
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
