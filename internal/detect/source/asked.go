package source

import (
	"regexp"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/lex"
)

// readAsked finds production code that asks whether it is tested: it looks at what runs
// it (arguments, the environment, the stack, what is loaded), and compares that with
// what runners of tests, or files and variables of tests, are called.
func (u *unit) readAsked(m *Model, tests func(i int) bool) {
	asks := askedOf()[u.lang.Name]
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
			Pattern: RunnerAsked, Line: u.line(i), S: u.lineText(i), Key: mixAll(firstHash, u.tok[max(0, i-3):i+1]), Confidence: 0.85,
		})
	}
}

// namesRunner tells whether the token at i is what a runner of tests is called, and
// compared with what runs the code.
func (u *unit) namesRunner(i int, asks set) bool {
	if !mayNameRunner(u.at(i)) {
		return false // nearly all, and the expressions are slow
	}
	if u.kindAt(i) == lex.Word {
		return runnerVariable().MatchString(u.at(i)) && u.asksBefore(i, asks, 8)
	}
	s := lex.Unquote(u.at(i))
	switch {
	case len(s) == 0 || len(s) > 40:
		return false
	case runnerVariable().MatchString(s):
		return u.asksAround(i, asks)
	case (s == "test" || s == "testing" || s == "Test" || s == "Testing") && u.ofMode(i):
		return true
	case !runnerName().MatchString(s) && !nameOfTest().MatchString(s):
		return false
	}
	return u.comparedWith(i) && u.asksAround(i, asks)
}

// mayNameRunner tells of tokens that have a piece of what runners and tests are called.
func mayNameRunner(s string) bool {
	if len(s) < 4 || len(s) > 42 {
		return false
	}
	for _, piece := range [...]string{"est", "EST", "nit", "NIT", "spec", "Spec", "mocha", "MOCHA", "jasmine", "karma", "surefire", "/deps/"} {
		if strings.Contains(s, piece) {
			return true
		}
	}
	return false
}

// asksBefore tells whether one of the words that say what runs the code stands in the
// tokens before i.
func (u *unit) asksBefore(i int, asks set, far int) bool {
	for j := i - 1; j >= max(0, i-far); j-- {
		if s := u.at(j); asks[s] && u.kindAt(j) != lex.Text && u.at(j-1) != "const" && u.at(j-1) != "let" {
			return true
		}
	}
	return false
}

// asksAround is asksBefore, or the same on the line behind i.
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

// maxAsked is how many tokens may stand between what is asked and what it is compared
// with.
const maxAsked = 40

// comparedWith tells whether something is compared with the string at i, or looked for
// by it.
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

// ofMode tells whether what the string at i is compared with is the mode of a program:
// the environment that it runs in.
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
	for j := max(0, i-10); j < min(len(u.tok), i+10); j++ {
		s := u.at(j)
		if u.tok[j].Line == u.tok[i].Line && u.kindAt(j) != lex.Op && j != i && (modeName().MatchString(strings.Trim(s, "\"'")) || strings.HasSuffix(s, "profiles.active\"")) {
			return true
		}
	}
	return false
}

var (
	// askedOf are the words by which code asks what runs it, by language.
	askedOf = sync.OnceValue(func() map[string]set {
		script := words("argv execArgv stack env mainModule")
		jvm := words("getStackTrace stackTrace StackWalker getProperty getenv getClassName className forName")
		return map[string]set{
			"go": words("Args Executable Caller Callers FuncForPC Stack ReadBuildInfo Lookup Getenv LookupEnv"), "javascript": script, "typescript": script,
			"python": words("modules argv stack _getframe co_filename co_name environ getenv extract_stack currentframe"), "java": jvm, "kotlin": jvm,
			"csharp": words("GetAssemblies FriendlyName GetEntryAssembly ProcessName StackTrace GetFrames GetEnvironmentVariable DeclaringType"),
			"rust":   words("current current_exe args var var_os option_env"),
			"ruby":   words("$0 $PROGRAM_NAME caller caller_locations $LOADED_FEATURES ENV"),
			"php":    words("argv debug_backtrace getenv _ENV _SERVER $_ENV $_SERVER getTrace class_exists"),
		}
	})
	comparing = sync.OnceValue(func() set {
		return words("includes contains Contains startsWith endsWith StartsWith EndsWith startswith endswith HasSuffix HasPrefix HasSuffixFold start_with? end_with? include? match match? test " +
			"equals Equals equalsIgnoreCase str_contains str_starts_with str_ends_with strpos stripos starts_with ends_with class_exists forName Lookup get has indexOf eq is_a any")
	})
	// runnerVariable are what runners of tests set in the environment.
	runnerVariable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:JEST_WORKER_ID|VITEST(?:_\w+)?|PYTEST_\w+|NODE_TEST_CONTEXT|MOCHA_\w+|RUST_TEST_\w+|NEXTEST(?:_\w+)?|PHPUNIT_\w+|__PHPUNIT_PHAR__|GO_TEST|TESTING|UNDER_TEST|IN_TEST|IS_TEST|RUNNING_TESTS|TEST_WORKER_\w+|vitest)$`)
	})
	runnerName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\w./\\:-]*(?:jest|vitest|mocha|jasmine|karma|pytest|unittest|nosetests|junit|surefire|kotest|testng|xunit|nunit|mstest|testhost|vstest|minitest|rspec|rake_test|phpunit|nextest)[\w./\\:-]*$`)
	})
	nameOfTest = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:-test\.?[\w.]*|test\.\w+|\.test|_test|_test\.go|\.test\.[jt]sx?|\.spec\.[jt]sx?|test_|/?tests?/|_spec|_spec\.rb|_test\.rb|test-classes|tests::|::tests::|/deps/|Tests?|Spec)$`)
	})
	modeName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:node|app|rails|rack|go|django|flask|aspnetcore|dotnet|spring|micronaut|symfony|laravel|ktor)_?(?:env|environment|profiles_active)$|^env$|^environment$`)
	})
)
