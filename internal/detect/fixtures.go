package detect

import (
	"bytes"
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// edit describes the changed lines of a file.
type edit struct {
	lost, gained int
	// words are the words of the removed and added lines and of the file's path.
	words map[uint32]side
	// relaid is set for code and data of which only the layout changed.
	relaid bool
}

// side is a set of places where a word of an edit occurs.
type side uint8

const (
	before side = 1 << iota
	after
	named // long enough to be meaningful
)

// oneSided reports whether a word was only added or only removed.
func (s side) oneSided() bool { return s&(before|after) == before || s&(before|after) == after }

// editOf compares two versions of a file line by line, by the hashes of the lines.
func editOf(old, now *Version, code bool) edit {
	e := edit{words: make(map[uint32]side)}
	seed := maphash.MakeSeed()
	left := make(map[uint64]int)
	key := func(line []byte) uint64 { return maphash.Bytes(seed, bytes.TrimRight(line, "\r\n")) }
	for line := range bytes.Lines(now.Content) {
		left[key(line)]++
		e.gained++
	}
	for line := range bytes.Lines(old.Content) {
		if k := key(line); left[k] > 0 {
			left[k]--
			e.gained--
			continue
		}
		e.lost++
		if !code || !remark(line) {
			e.note(string(line), before)
		}
	}
	for line := range bytes.Lines(now.Content) {
		if k := key(line); left[k] > 0 {
			left[k]--
			if !code || !remark(line) {
				e.note(string(line), after)
			}
		}
	}
	e.notePath(old.Path)
	e.notePath(now.Path)
	return e
}

// remark reports whether a line of code is a comment.
func remark(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return slices.ContainsFunc([]string{"//", "/*", "* ", "# "},
		func(begin string) bool { return bytes.HasPrefix(line, []byte(begin)) })
}

// notePath records the words of a file's path, except for folders named after the project
// that they test.
func (e *edit) notePath(name string) {
	for part := range strings.SplitSeq(name, "/") {
		if !ofTests(part) {
			e.note(part, before|after)
		}
	}
}

// ofTests reports whether a folder is a test project, like Shop.Tests.
func ofTests(folder string) bool {
	return strings.HasSuffix(folder, "Tests") || strings.HasSuffix(folder, ".Test") ||
		strings.HasSuffix(folder, "UnitTest")
}

// note records the words of a line: the parts of names, titles and values.
func (e *edit) note(line string, where side) {
	if len(e.words) >= maxEditWords {
		return
	}
	for _, w := range nameWords(line) {
		mark := where
		if w = strings.TrimSuffix(w, "s"); len(w) > 2 {
			mark |= named
		}
		if !commonWords()[w] {
			e.words[syntax.Hash(w)] |= mark
		}
	}
}

// maxEditWords is the maximum number of words recorded for an edit.
const maxEditWords = 4000

// commonWords occur in file names and code of any subject; without a final s.
var commonWords = sync.OnceValue(wordSet("test testing spec snap snapshot fixture testdata data golden src lib " +
	"main java kotlin resource pkg internal cmd app txt json csv xml yaml yml html com org net example index " +
	"export const write read get set add make return function clas public private async await import from let " +
	"var thi self new null true false none nil static def end module use require package func"))

// related reports whether two edits share a meaningful word, or a value that both added
// or removed.
func (e *edit) related(o *edit) bool {
	a, b := e.words, o.words
	if len(b) < len(a) {
		a, b = b, a
	}
	for w, s := range a {
		o := b[w]
		if s.oneSided() && o.oneSided() || s&o&named != 0 {
			return true
		}
	}
	return false
}

// relaid reports whether only the layout changed: of code, or of data in a format in which
// blanks are insignificant.
func relaid(old, now *Version, code bool) bool {
	if !code && !laidOut(now.Path) || len(old.Content) > maxRelaid {
		return false
	}
	words := func(c rune) rune {
		if unicode.IsSpace(c) || strings.ContainsRune(",;'\"()", c) {
			return -1
		}
		return c
	}
	return bytes.Equal(bytes.Map(words, old.Content), bytes.Map(words, now.Content))
}

// maxRelaid is the maximum size of a file that relaid compares.
const maxRelaid = 256 << 10

// plainOutput reports whether a file is output of a program under test.
func plainOutput(name string) bool {
	return outputFile().MatchString(name)
}

var outputFile = lazyregexp.New(`\.(?:snap|out|stderr|stdout)$|(?i)golden|expected|snapshot|approved|output`)

// laidOut reports whether blanks and empty lines are insignificant in a format.
func laidOut(name string) bool {
	return slices.Contains([]string{".json", ".json5", ".xml", ".html", ".yaml", ".yml", ".toml", ".svg"}, path.Ext(name))
}

// prose reports whether a file is text for people.
func prose(name string) bool {
	// Without an extension: LICENSE.
	return slices.Contains([]string{".md", ".txt", ".rst", ".adoc", ""}, path.Ext(name)) || strings.HasPrefix(name, ".")
}

// manifest reports whether a file declares a project's name and dependencies. The
// versions that it resolved to are in lock files.
func manifest(name string) bool {
	base := path.Base(name)
	return slices.Contains([]string{"package.json", "pom.xml", "composer.json", "pyproject.toml", "setup.cfg",
		"Cargo.toml", "go.mod", "build.gradle", "build.gradle.kts", "deno.json", "Directory.Packages.props",
		"Directory.Build.props"}, base) || slices.Contains([]string{".csproj", ".gemspec", ".sln"}, path.Ext(base))
}

// dependencies reports whether a file records the resolved versions of dependencies;
// these can show in any fixture.
func dependencies(p *pair) bool {
	return lockFile().MatchString(path.Base(p.path))
}

var lockFile = lazyregexp.New(`\.(?:lock|sum)$|-lock\.|^(?:packages\.lock|npm-shrinkwrap)\.json$`)

// testFolders are the names of test folders, in which data files are fixtures.
var testFolders = sync.OnceValue(wordSet("test tests spec specs __tests__ test-data test_data testfiles"))

// readByTests reports whether a file is data in a test folder.
func readByTests(name string) bool {
	if syntax.LanguageOf(name) != nil || unread(name) || prose(name) && path.Ext(name) != ".txt" || manifest(name) {
		return false
	}
	if setupFile().MatchString(strings.ToLower(path.Base(name))) {
		return false
	}
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"),
		func(folder string) bool { return testFolders()[strings.ToLower(folder)] || ofTests(folder) })
}

// setupFile matches names of scripts and of configuration in test folders.
var setupFile = lazyregexp.New(`^(?:cmakelists|requirements|readme|phpunit|pytest|tox|package-lock)|config|\.(?:lock|sh|bat|` +
	`ps1|mk|cmake|gradle|props|targets|toml|ini|cfg|in|am|build|ts|bazel)$`)

// fixtures reports changed fixtures if the change does not touch related source. New
// fixtures do not count, nor do those that lost no line. The confidence is lower if tests
// gained assertions, or if the fixtures gained many more lines than they lost.
func (r *run) fixtures() {
	lost, gained := 0, 0
	tools := false // the change configures checks, as with another compiler
	var code, tests []*pair
	for _, p := range r.pairs {
		tools = tools || p.change.Protected != "" || p.change.Configures != ""
		switch p.class {
		case production:
			if !prose(p.path) && !manifest(p.path) {
				code = append(code, p)
			}
		case testCode:
			tests = append(tests, p)
		case fixture:
			lost, gained = lost+p.edit.lost, gained+p.edit.gained
		}
	}
	for _, p := range r.pairs {
		if p.class != fixture || p.edit.relaid || p.edit.lost == 0 && p.edit.gained > 0 || p.change.Old.Path == "" ||
			p.change.Old.Path != p.change.New.Path && p.change.New.Path != "" {
			continue
		}
		related := func(o *pair) bool { return p.edit.related(&o.edit) }
		if len(code) > 0 && (wholeProgram(p.path) || p.change.New.Path == "") || slices.ContainsFunc(code, related) {
			continue // a removed fixture is no longer read, by code that may have changed
		}
		f := Finding{File: p.path, Subject: p.path, Evidence: p.path, Confidence: 0.8}
		moved := func(o *pair) bool {
			return p.change.New.Path == "" && o.change.Old.Path == "" && path.Base(o.path) == path.Base(p.path)
		}
		if gained > 0 && gained >= manyMore*lost || slices.ContainsFunc(code, dependencies) || plainOutput(p.path) && tools ||
			slices.ContainsFunc(r.pairs, moved) ||
			slices.ContainsFunc(tests, func(o *pair) bool { return r.of(o).asserts > 0 && related(o) }) {
			f.Confidence = 0.7
		}
		r.add(f, fixtureChanged)
	}
}

// wholeProgram reports whether a fixture belongs to tests of the whole program: any code
// can affect it.
func wholeProgram(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return strings.ContainsRune("/._-", c) })
	return slices.ContainsFunc(parts, func(part string) bool { return programFolders()[part] })
}

var programFolders = sync.OnceValue(wordSet("e2e integration acceptance functional system txtar script scripts " +
	"scenarios feature features cassettes"))

// manyMore is the ratio of gained to lost lines from which fixtures count as growing.
const manyMore = 4
