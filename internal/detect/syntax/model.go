package syntax

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// Model is what the detectors read from one version of a file.
type Model struct {
	Path  string
	Tests []*Test
	// Suites are tests that assert nothing themselves and contain other tests.
	Suites []*Test
	// Helpers are functions that assert but are not tests.
	Helpers []*Test
	Funcs   []*Function
	Marks   []Mark
	Lines   Lines
	// Commented are the lines of comments that look like code, by hash.
	Commented map[uint64]CommentLine
	// Rest are the tokens outside tests and functions.
	Rest multiset.Hashes
	// Declares are the names that its production code declares, without those of libraries.
	Declares multiset.Hashes
	// Offers are the names that the file re-exports, sorted.
	Offers []string

	Exits Exits
	// Build is the build constraint of the file.
	Build string
	// Notes is the text of the comments, to recognize a test that was commented out.
	Notes string
}

// Lines are the hashes of the lines of code.
type Lines struct {
	hashes []uint64
	sorted bool
}

// Has reports whether a line has the hash. The first call sorts the hashes, as most are never
// queried; it is not safe for concurrent use.
func (l *Lines) Has(hash uint64) bool {
	if !l.sorted {
		slices.Sort(l.hashes)
		l.sorted = true
	}
	_, ok := slices.BinarySearch(l.hashes, hash)
	return ok
}

// Count returns the number of lines with the hash; see Has.
func (l *Lines) Count(hash uint64) int {
	if !l.Has(hash) {
		return 0
	}
	from, _ := slices.BinarySearch(l.hashes, hash)
	to, _ := slices.BinarySearch(l.hashes[from:], hash+1)
	return to
}

// CommentLine is a line of a comment.
type CommentLine struct {
	Line int
	S    string
}

// Test is a test, or a named case of a suite.
type Test struct {
	Name  string // with the names of the suites around it
	Leaf  string
	Line  int
	Skip  Skipping
	Focus bool
	Fails bool // expected to fail

	// Abstract is the name of the abstract class around it; empty for none.
	Abstract string
	// SkipLine and SkipText show where it is skipped.
	SkipLine int
	SkipText string
	// Whens are the conditions under which it is skipped.
	Whens   []When
	Asserts []Assertion
	Cases   []Case

	All      multiset.Hashes // of all tokens
	Telling  multiset.Hashes
	Literals multiset.Hashes
	Said     multiset.Hashes // words printed only on failure, in Go
	Parts    multiset.Hashes // fields between commas in its strings, as in rows of CSV
	Mocks    []string
	Names    multiset.Hashes // called or named in it, each once
	// Members are the names of fields, methods, options and constants that it uses: after a dot, as
	// a key, or in capitals.
	Members multiset.Hashes
	Empty   bool // it has no statements
	// Silent is set when it asserts nothing and passes nothing to code that could.
	Silent bool

	Sent   int // errors sent to a channel, in Go
	Caught int // assertions whose failure is caught

	BodyHash uint64
}

// When is a condition under which a test is skipped.
type When struct {
	platform.Condition
	Line int
	S    string
	Asks multiset.Hashes // the names in it
}

// Skipping is whether a test is skipped.
type Skipping uint8

// The ways in which a test runs.
const (
	Runs Skipping = iota
	Sometimes
	Always
)

// Case is a row of a test's table.
type Case struct {
	at   int // its first token; 0 for a row of a text
	Line int
	Key  uint64
	All  multiset.Hashes
	// Literals are its strings and distinctive numbers.
	Literals multiset.Hashes
	// Off is set when it is skipped or expected to fail.
	Off bool
	S   string
}

// Function is a function, a method or a container of production or test code.
type Function struct {
	Name       string
	Leaf       string
	Line       int
	Kind       declKind
	Public     bool
	Deprecated bool
	// Overrides is set when a superclass has it, too.
	Overrides bool
	Test      bool // part of test code
	All       multiset.Hashes
	Tokens    int
	Lines     int
	Guards    []Guard
	Handlers  []handler
	Throws    int
	Empties   int // return null and the like

	Fixed      int // special cases with constant results
	Stub       bool
	AlwaysTrue bool
	Early      bool // returns before its work
	EarlyLine  int
	BodyHash   uint64
	Calls      multiset.Hashes
	// Vouchers are calls whose name says that they check.
	Vouchers multiset.Hashes
	// Askers are the calls that may check something, each once; Given has the pairs of each with
	// the distinctive words of its lines.
	Askers, Given multiset.Hashes
	// Conditions are those under which it throws or returns a value.
	Conditions []Condition
	// Emptied are those under which it returns nothing.
	Emptied []Condition
	// Soft are those under which it assigns a value, continues or only logs.
	Soft []Condition

	// Tries counts the places where Rust and Go propagate an error, Swallows those that do not.
	// Ignored are the calls whose error only ends a loop round, selects another value or is logged.
	Tries, Swallows int
	Ignored         multiset.Hashes
	// Dropped are the calls of Go whose last result, the error, is discarded.
	Dropped multiset.Hashes
}

// Guard is a check that leaves the function on bad input.
type Guard struct {
	Line  int
	Key   uint64
	Words multiset.Hashes
	S     string
	// Names are those of the values that it tests.
	Names multiset.Hashes

	// Told has the words of its message.
	Told multiset.Hashes
	// Whole has the condition and the block.
	Whole multiset.Hashes

	// Lacks is set when it reports an unsupported feature.
	Lacks bool

	// Inline is set when the call whose error is tested is in the condition.
	Inline bool
	Throws bool
	// Called is set for a call that checks its arguments.
	Called bool
	// Of is the call whose result is tested; 0 when unknown.
	Of uint32
	// Weak is set when it only returns false or -1.
	Weak bool
	// Failure is set when it tests the error of a call.
	Failure bool
}

// handler is a place where errors are handled.
type handler struct {
	Line    int
	Dropped bool // it ignores the error
	// Expected is set when the error means that something optional is missing.
	Expected bool
	Broad    bool
	Cleans   bool            // the guarded code only closes or removes something
	Guarded  multiset.Hashes // distinctive tokens of the guarded code, when the error is dropped
	// Rethrows is set when it passes an error on, Plain when it calls nothing that may do so.
	Rethrows, Plain bool
	// Does are its distinctive tokens, Told the words it prints.
	Does, Told multiset.Hashes
	Body       uint64
	S          string
}

// Mark is a sequence of tokens, or part of a comment, that instructs a tool or a runner.
type Mark struct {
	Pattern    string
	Line       int
	S          string // the line
	Key        uint64 // hash of the line without the mark
	Target     uint64 // hash of the line of code it is about
	About      string // the text of that line, for suppressed warnings
	Confidence float64
	On         bool // the state of a switch
	// Why is the comment of at least three words on the line before; empty for none.
	Why string
	// Silence is the scope of and the reason for a suppressed warning.
	Silence Silence
}

// Reader makes models, one after the other. It reuses its memory; models share none of it.
type Reader struct {
	unit unit
}

// Read returns the model of a text in a language. It never fails: it omits unclear code.
func Read(lang *Language, path, src string) *Model { return new(Reader).Read(lang, path, src) }

// Read is the function Read with the memory of the reader.
func (r *Reader) Read(lang *Language, path, src string) *Model {
	u := &r.unit
	u.begin(lang, path, src)
	u.declare()
	return u.model()
}

// model returns the model of a file whose declarations are known.
func (u *unit) model() *Model {
	m := &Model{Path: u.path}
	u.findTests()
	u.readTests(m)
	u.readFunctions(m)
	u.readLines(m)
	u.readMarks(m)
	u.readExits(m)
	m.Build = u.goBuild()
	return m
}

// readLines notes the lines of code and of comments.
func (u *unit) readLines(m *Model) {
	u.lines = u.lines[:0]
	for i := 0; i < len(u.tok); {
		from, line := i, u.tok[i].Line
		for i < len(u.tok) && u.tok[i].Line == line {
			i++
		}
		u.lines = append(u.lines, mixAll(firstHash, u.tok[from:i]))
	}
	m.Lines.hashes = append([]uint64(nil), u.lines...)
	m.Commented = make(map[uint64]CommentLine)
	u.bytes = u.bytes[:0]
	for i := range u.notes {
		c := &u.notes[i]
		line := int(c.Line)
		for s := range strings.Lines(c.S) {
			s = strings.Trim(s, " \t\r\n/*#")
			if codeLike(s) {
				m.Commented[u.hashOf(s)] = CommentLine{line, strings.Clone(s)}
			}
			line++
		}
		if len(u.bytes) < maxNotes {
			u.bytes = append(append(u.bytes, c.S...), '\n')
		}
	}
	m.Notes = string(u.bytes)
}

// maxNotes is the number of bytes after which no more comments are kept.
const maxNotes = 64 << 10

// hashOf returns the hash of a line of code, as in Model.Lines.
func (u *unit) hashOf(s string) uint64 {
	rules := &u.lang.rules
	if rules.Tag != "" { // a line of code has no tag
		plain := *rules
		plain.Tag, rules = "", &plain
	}
	tokens, _ := u.aside.Read(rules, s)
	return mixAll(firstHash, tokens)
}

// codeLike reports whether the line of a comment may be code.
func codeLike(s string) bool {
	return len(s) > 4 && (strings.ContainsAny(s, "(){}=;") || strings.HasSuffix(s, ":") ||
		strings.HasPrefix(s, "return") || strings.HasPrefix(s, "assert") || s == "end")
}

// Script is the name of the code outside functions.
const Script = "(file)"
