package syntax

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// shape is the way in which a language delimits blocks.
type shape uint8

const (
	braces  shape = iota // {}
	indents              // indentation
	ends                 // a keyword until end
)

// Language describes a programming language for the readers.
type Language struct {
	Name  string
	exts  []string
	rules lex.Rules
	shape shape
	// functions and containers are words that begin declarations.
	functions, containers set
	// typed languages declare functions without a keyword: a name, parentheses and a block.
	typed bool
	// lines is set when the end of a line ends a statement.
	lines bool
	// suites and tests are calls with a title that contain tests, or are one.
	suites, tests set
	// skipped and focused are such calls that are skipped, or run alone.
	skipped, focused set
	// annotations make a method a test; skips are annotations and calls that skip.
	annotations, skips set
	// asserts are calls and words that assert, in addition to names with one of assertPrefixes.
	asserts set
	// throws are words and calls that raise an error; handlers begin its handling.
	throws, handlers set
	// statements has these and the words that begin other statements of interest.
	statements *sieve
	// Affixes of the names of test files, and names of their folders.
	testSuffixes, testPrefixes, testFolders []string
	// marks are sequences of tokens, notes parts of comments; see marks.go.
	marks []markRule
	notes []commentRule
}

// Languages returns the names of the known languages.
func Languages() []string {
	var names []string
	for i := range languages() {
		names = append(names, languages()[i].Name)
	}
	return names
}

var languages = sync.OnceValue(func() []Language {
	all := []Language{golang(), javascript(), typescript(), python(), java(), kotlin(), csharp(), rust(), ruby(), php()}
	for i := range all {
		l := &all[i]
		l.rules.Prepare()
		l.statements = words("if unless elif elseif guard case return assert exit Exit exitProcess exitCode ExitCode").with(
			l.throws).with(l.handlers).sieve()
	}
	return all
})

var languageIndex = sync.OnceValue(func() map[string]*Language {
	index := make(map[string]*Language)
	for i := range languages() {
		l := &languages()[i]
		for _, ext := range l.exts {
			index[ext] = l
		}
	}
	return index
})

// LanguageOf returns the language of a file by its name; nil for none.
func LanguageOf(name string) *Language {
	base := strings.ToLower(path.Base(name))
	if strings.HasSuffix(base, ".d.ts") || strings.HasSuffix(base, ".d.cts") || strings.HasSuffix(base, ".d.mts") ||
		strings.HasSuffix(base, ".min.js") {
		return nil
	}
	if base == "rakefile" || base == "gemfile" {
		return languageIndex()[".rb"]
	}
	return languageIndex()[path.Ext(base)]
}

// Tokens returns the tokens of a program. Programs in other languages than the known ones are
// read as JavaScript, whose strings and comments are the most common.
func Tokens(name, text string) []lex.Token {
	lang := LanguageOf(name)
	if lang == nil {
		lang = languageIndex()[".js"]
	}
	tokens, _ := new(lex.Reader).Read(&lang.rules, text)
	return tokens
}

// TestFile reports whether the name is one of a test file or test helper.
func (l *Language) TestFile(name string) bool {
	base := path.Base(name)
	stem := strings.TrimSuffix(base, path.Ext(base))
	return stem == "conftest" ||
		slices.ContainsFunc(l.testSuffixes, func(s string) bool { return strings.HasSuffix(stem, s) && stem != s }) ||
		slices.ContainsFunc(l.testPrefixes, func(s string) bool { return strings.HasPrefix(stem, s) && stem != s }) ||
		slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(folder string) bool {
			return slices.Contains(l.testFolders, strings.ToLower(folder)) || strings.HasSuffix(folder, "Tests") ||
				strings.HasSuffix(folder, ".Test")
		})
}

// Blank replaces comments and the contents of strings with blanks, or everything but the comments.
// Lines and columns stay.
func Blank(lang *Language, src string, comments bool) string {
	return lex.Blank(&lang.rules, src, comments)
}

// set is a set of words.
type set map[string]bool

// words returns the set of the words in a text.
func words(s string) set { return set(nil).and(s) }

// wordSet returns a function that builds a set with words, for sync.OnceValue.
func wordSet(s string) func() set { return func() set { return words(s) } }

// and returns the set with more words.
func (s set) and(more string) set {
	all := make(set, len(s)+8)
	maps.Copy(all, s)
	for w := range strings.FieldsSeq(more) {
		all[w] = true
	}
	return all
}

// with returns the union of both sets.
func (s set) with(more set) set {
	all := maps.Clone(s)
	maps.Copy(all, more)
	return all
}

// sieve is a filter by hash that excludes most words that are not in a set.
type sieve [1 << 10]bool

func (s set) sieve() *sieve {
	all := new(sieve)
	for w := range s {
		all.add(Hash(w))
	}
	return all
}

func (s *sieve) add(h uint32) { s[h%uint32(len(s))] = true }

// may reports whether a word with the hash may be in the set.
func (s *sieve) may(h uint32) bool { return s[h%uint32(len(s))] }

func doubleQuote() lex.Quote { return lex.Quote{Open: `"`, Close: `"`, Escape: '\\'} }
func singleQuote() lex.Quote { return lex.Quote{Open: "'", Close: "'", Escape: '\\'} }
func threeQuotes() lex.Quote { return lex.Quote{Open: `"""`, Close: `"""`, Escape: '\\', Lines: true} }

func golang() Language {
	return Language{
		Name: "go", exts: []string{".go"}, lines: true,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Char: true,
			Quotes: []lex.Quote{doubleQuote(), {Open: "`", Close: "`", Lines: true}}},
		functions: words("func"),
		skips:     words("Skip Skipf SkipNow"),
		asserts: words("Error Errorf Fatal Fatalf Fail FailNow Expect Ω Eventually Consistently DeepEqual EqualError " +
			"ErrorIs ErrorAs " +
			"ErrorContains Nil NotNil NoError Equal NotEqual True False Contains Len Panics"),
		throws:       words("panic Errorf Fatal Fatalf"),
		testSuffixes: []string{"_test"}, testFolders: []string{"testdata"},
		marks: goMarks(), notes: goNotes(),
	}
}

func javascript() Language {
	return Language{
		Name: "javascript", exts: []string{".js", ".jsx", ".mjs", ".cjs"}, typed: true, lines: true,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Regex: true, Dollar: true,
			Quotes: []lex.Quote{doubleQuote(), singleQuote(), {Open: "`", Close: "`", Escape: '\\', Lines: true, Code: "${"}}},
		functions: words("function"), containers: words("class namespace interface enum"),
		suites:  words("describe context suite xdescribe fdescribe xcontext fcontext describeIf"),
		tests:   words("it test specify xit xtest fit xspecify ftest tap bench"),
		skipped: words("xdescribe xcontext xit xtest xspecify"), focused: words("fdescribe fcontext fit ftest"),
		skips:   words("skip todo skipIf runIf pending"),
		asserts: words("expect assert expectTypeOf assertType should sinon"),
		throws:  words("throw reject"), handlers: words("catch"),
		testSuffixes: []string{".test", ".spec", "_test", "-test", ".e2e", ".cy", "-spec", "_spec"},
		testPrefixes: []string{"test-", "test_"},
		testFolders:  []string{"__tests__", "test", "tests", "spec", "specs", "__mocks__", "e2e", "cypress"},
		marks:        scriptMarks(), notes: scriptNotes(),
	}
}

func typescript() Language {
	l := javascript()
	l.Name, l.exts = "typescript", []string{".ts", ".tsx", ".mts", ".cts"}
	l.marks = typeScriptMarks()
	return l
}

func python() Language {
	long := lex.Quote{Open: "'''", Close: "'''", Escape: '\\', Lines: true}
	return Language{
		Name: "python", exts: []string{".py", ".pyi"}, shape: indents, lines: true,
		rules: lex.Rules{Line: []string{"#"}, Prefixes: "rRbBfFuU",
			Quotes: []lex.Quote{threeQuotes(), long, doubleQuote(), singleQuote()}},
		functions: words("def"), containers: words("class"),
		skips: words("skip skipif skipIf skipUnless skipTest importorskip SkipTest xfail expectedFailure"),
		asserts: words("assert raises warns assert_called assert_that approx fail assert_allclose check_call " +
			"deprecated_call expect"),
		throws: words("raise"), handlers: words("except"),
		testSuffixes: []string{"_test", "_tests"}, testPrefixes: []string{"test_", "tests_"},
		testFolders: []string{"test", "tests", "testing"},
		marks:       pythonMarks(), notes: pythonNotes(),
	}
}

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
			"expectBody " +
			"expectNext verifyComplete"),
		throws: words("throw"), handlers: words("catch"),
		testSuffixes: []string{"Test", "Tests", "IT", "TestCase", "Spec"}, testPrefixes: []string{"Test"},
		testFolders: []string{"test", "tests", "androidtest", "integrationtest"},
		marks:       javaMarks(), notes: javaNotes(),
	}
}

func kotlin() Language {
	l := java()
	l.Name, l.exts, l.typed, l.lines = "kotlin", []string{".kt", ".kts"}, false, true
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
		"expectThat shouldBeNull " +
		"shouldBeTrue")
	l.skips = l.skips.and("Ignored")
	l.throws = l.throws.and("error")
	l.testFolders = append(l.testFolders, "commontest", "jvmtest")
	l.marks = append(l.marks, kotlinMarks()...)
	return l
}

func csharp() Language {
	return Language{
		Name: "csharp", exts: []string{".cs"}, typed: true,
		rules:      lex.Rules{Line: []string{"//"}, Block: "/*", Char: true, Prefixes: "$@", Preprocessor: true, Raw: true},
		containers: words("class interface enum record struct"),
		annotations: words("Fact Theory Test TestCase TestCaseSource TestMethod DataTestMethod SkippableFact " +
			"SkippableTheory Property " +
			"UnityTest STATestMethod"),
		skips: words("Ignore Explicit Inconclusive Skip SkipWhen SkipUnless"),
		asserts: words("Should ShouldBe ShouldThrow Verify VerifyAll Received DidNotReceive ShouldNotBeNull ShouldBeTrue " +
			"MustHaveHappened"),
		throws: words("throw"), handlers: words("catch"),
		testSuffixes: []string{"Test", "Tests", "Spec", "Specs", "Facts", "Fixture"}, testFolders: []string{"test", "tests"},
		marks: csharpMarks(), notes: csharpNotes(),
	}
}

func rust() Language {
	return Language{
		Name: "rust", exts: []string{".rs"}, lines: false,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Nested: true, Char: true, Hashes: true, Prefixes: "brc",
			Quotes: []lex.Quote{{Open: `"`, Close: `"`, Escape: '\\', Lines: true}}},
		functions: words("fn"), containers: words("mod impl trait struct enum"),
		annotations: words("test rstest test_case quickcheck proptest wasm_bindgen_test case apply test_log"),
		skips:       words("ignore"),
		asserts: words("assert assert_eq assert_ne assert_matches panic prop_assert prop_assert_eq assert_snapshot " +
			"assert_debug_snapshot assert_ok assert_err unreachable assert_relative_eq assert_abs_diff_eq"),
		throws:       words("panic bail ensure Err unreachable"),
		testSuffixes: []string{"_test", "_tests"}, testPrefixes: []string{"test_"}, testFolders: []string{"tests"},
		marks: rustMarks(), notes: sharedNotes(),
	}
}

func ruby() Language {
	return Language{
		Name: "ruby", exts: []string{".rb", ".rake"}, shape: ends, lines: true,
		rules: lex.Rules{Line: []string{"#"}, Block: "=begin", Regex: true, Percent: true, Documents: "<<~", At: true,
			Query: true, Dollar: true,
			Quotes: []lex.Quote{{Open: `"`, Close: `"`, Escape: '\\', Lines: true, Code: "#{"},
				{Open: "'", Close: "'", Escape: '\\', Lines: true}, {Open: "`", Close: "`", Escape: '\\'}}},
		functions: words("def"), containers: words("class module"),
		suites: words("describe context feature xdescribe xcontext fdescribe fcontext shared_examples shared_context " +
			"shared_examples_for"),
		tests:   words("it specify example scenario test should xit xspecify xexample fit fspecify pending its focus"),
		skipped: words("xdescribe xcontext xit xspecify xexample pending"),
		focused: words("fdescribe fcontext fit fspecify focus"),
		skips:   words("skip pending omit"),
		asserts: words("expect assert refute should must_equal must_be wont_be wont_equal must_raise must_include " +
			"is_expected flunk " +
			"expect_any_instance_of"),
		throws: words("raise abort"), handlers: words("rescue"),
		testSuffixes: []string{"_spec", "_test"}, testPrefixes: []string{"test_"},
		testFolders: []string{"spec", "test", "tests"},
		marks:       rubyMarks(), notes: rubyNotes(),
	}
}

func php() Language {
	return Language{
		Name: "php", exts: []string{".php", ".phpt"},
		rules: lex.Rules{Line: []string{"//", "#"}, Block: "/*", Dollar: true, Documents: "<<<", Tag: "<?",
			Quotes: []lex.Quote{{Open: `"`, Close: `"`, Escape: '\\', Lines: true},
				{Open: "'", Close: "'", Escape: '\\', Lines: true}, {Open: "`", Close: "`", Escape: '\\', Lines: true}}},
		functions: words("function fn"), containers: words("class interface trait enum"),
		suites: words("describe"), tests: words("it test"),
		annotations: words("Test"),
		skips: words("markTestSkipped markTestIncomplete skip todo Skip RequiresPhp RequiresPhpExtension RequiresPhpunit " +
			"RequiresFunction RequiresMethod " +
			"RequiresSetting RequiresOperatingSystem RequiresOperatingSystemFamily"),
		asserts: words("expect expectException expectExceptionMessage assert shouldReceive fail expectExceptionCode " +
			"addToAssertionCount"),
		throws: words("throw abort die"), handlers: words("catch"),
		testSuffixes: []string{"Test", "TestCase", "_test"}, testFolders: []string{"test", "tests"},
		marks: phpMarks(), notes: phpNotes(),
	}
}

func has(list []string, s string) bool { return slices.Contains(list, s) }
