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
	declarations
	assertionForms
	testForms
}

// testForms are the forms of tests, of their rows and of skips of some languages.
type testForms struct {
	// isTest reports whether a function without an annotation is a test.
	isTest func(u *unit, d *decl) bool
	// collected reports whether the runner finds the test at an index; nil for all of them.
	collected func(u *unit, i int) bool
	// strictPrefixes and strictSuffixes are those of file names that runners require, strictFolder is
	// the folder in which each file counts.
	strictPrefixes, strictSuffixes []string
	strictFolder                   string
	// readRows adds rows of the language's own to a test.
	readRows func(u *unit, t *Test, d *decl)
	// over is the word between the variables and the list of a loop, besides of and in.
	over string
	// braceLists is set when lists are in braces, typedLists when a type is before them.
	braceLists, typedLists bool
	// namedArguments is set when = passes an argument by its name, arrowMembers when => declares a
	// member with a value.
	namedArguments, arrowMembers bool

	// skipsFile returns how all tests of a file are skipped, and where.
	skipsFile func(u *unit) (Skipping, int)
	// skipsAt returns how the word at an index skips its test, if that is decided; nil for calls.
	skipsAt func(u *unit, d *decl, i int) (s Skipping, decided bool)
	// annotated returns how an annotation with the arguments at open skips a test, if that is decided.
	annotated func(u *unit, a *annotation, open int) (s Skipping, decided bool)
	// restricts reports whether the annotation named at an index lists where a test runs.
	restricts func(u *unit, i, to int) bool
	// chainSkips notes the skip by a call on the result of a test, and reports whether it is one.
	chainSkips func(u *unit, d *decl, call string, note onSkip) bool
	// readSkips notes skips in the title, the options or the comment of a test or suite.
	readSkips func(u *unit, t *Test, d *decl, note onSkip)
	// subtests is set when tests are calls inside other tests, receivers when a method names its
	// receiver, testModules when tests are in modules of production files.
	subtests, receivers, testModules bool
}

// onSkip notes a skip by the tokens [at, to).
type onSkip func(s Skipping, at, to int)

// assertionForms are the forms of assertions of some languages.
type assertionForms struct {
	// isAssertion reports whether the word at an index is an assertion; decided is false when its name
	// and the parentheses behind it decide.
	isAssertion func(u *unit, i int, helpers set) (asserts, decided bool)
	// isBare reports whether the assertion at an index has no matcher; its call ends at end, which is
	// the next token when it is alone.
	isBare func(u *unit, i, end int, alone bool) bool
	// loses reports whether the word at an index makes failures of assertions disappear.
	loses func(u *unit, i, from int) bool
	// declaresAt reports whether the name at an index declares a variable; nil for the first of a line.
	declaresAt func(u *unit, i int) bool
	// closures are the tokens that begin a function which is a value.
	closures set
	// failing are the calls that report the failure of a condition before them.
	failing set
	// handle is the parameter by which a test fails.
	handle string
	// closing are assertions after the test that they are about.
	closing set
	// assertWord is set when assert is a statement, infix when a matcher may be between its operands.
	assertWord, infix bool
	// macros is set when a call may have a ! before its arguments, trailing when a block may be one.
	macros, trailing bool
	// errorValues is set when functions return errors as values, initialisers when a statement may be
	// before a condition: if a := b(); a.
	errorValues, initialisers bool
	// listFirst is set when a loop names its list first: foreach ($rows as $row).
	listFirst bool
}

// declarations are the forms of declarations of some languages.
type declarations struct {
	// declare finds the declarations; nil for those with braces only.
	declare func(u *unit)
	// block reads a declaration of the language's own whose block opens at an index, and reports
	// whether it was one; arrow reads the member or function with the => at an index.
	block func(u *unit, open int) bool
	arrow func(u *unit, i int)
	// names are words that may name a function, unlike in other languages.
	names set
	// patterns are words that begin blocks which are patterns or values.
	patterns set
	// explicit is set when methods may have the name of an interface before theirs.
	explicit bool
	// brackets is set when attributes are in brackets without a # before them.
	brackets bool
	// blockBodies is set when a function has a block as its body, not a value.
	blockBodies bool
	// afterTitle reads the rest of a call after its title and reports whether it may be a test; nil
	// for a comma. chained reads the calls on the result of such a call.
	afterTitle func(u *unit, d *decl) bool
	chained    func(u *unit, d *decl)
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

func has(list []string, s string) bool { return slices.Contains(list, s) }

// Collected reports whether runners look for tests, not only helpers, in a file of this name.
func (l *Language) Collected(name string) bool {
	base := path.Base(name)
	if l.strictFolder != "" {
		return path.Base(path.Dir(name)) == l.strictFolder
	}
	stem := strings.TrimSuffix(base, path.Ext(base))
	return !strings.HasPrefix(base, "_") && !strings.HasPrefix(base, ".") &&
		(slices.ContainsFunc(l.strictPrefixes, func(s string) bool { return strings.HasPrefix(stem, s) }) ||
			slices.ContainsFunc(l.strictSuffixes, func(s string) bool { return strings.HasSuffix(stem, s) }))
}
