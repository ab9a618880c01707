package syntax

import (
	"cmp"
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
	Name string
	// Family is the name of the language whose code may use the same names.
	Family string
	exts   []string
	rules  lex.Rules
	shape  shape
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
	marks    []markRule
	notes    []commentRule
	compiled func() *markTable // of marks
	// ruleWords is set when attributes name the rules that they suppress by words, not by strings.
	ruleWords bool
	declarations
	assertionForms
	testForms
	functionForms
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
		l.Family = cmp.Or(l.Family, l.Name)
		l.compiled = compileMarks(l.marks)
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
