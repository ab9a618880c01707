package syntax

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// Model is what the detectors know of a version of a file.
type Model struct {
	Path  string
	Tests []*Test
	// Suites are tests that assert nothing themselves and have others inside.
	Suites []*Test
	// Helpers are functions that assert and are no tests.
	Helpers []*Test
	Funcs   []*Function
	Marks   []Mark
	Lines   Lines
	// comments are the hashes of the lines of comments that look like code.
	Commented map[uint64]CommentLine
	// rest are the tokens outside of tests and functions.
	Rest multiset.Hashes
	// Offers are the names that the file hands on from others, sorted.
	Offers []string
	// Properties are what its classes offer besides functions.
	Properties []Property
	// Checks are those that it declares.
	Checks []Check
	// Words are the names that production code calls, each once.
	Words multiset.Hashes
	// Mods are the modules of tests of Rust that stand in files of their own.
	Mods []string
	// Starts are the calls that make runners run tests.
	Starts []Start
	// Hidden are tests in whose place another one of their name runs.
	Hidden []Hidden
	// Exits are how it ends the program.
	Exits Exits
	// build is what decides whether the file belongs to a build.
	Build string
	// titles are the names in comments, by which a test that became a comment is
	// recognised.
	Notes     string
	CodeLines int
}

// Lines are the hashes of the lines of code.
type Lines struct {
	hashes []uint64
	sorted bool
}

// Has tells whether one of the lines has a hash. Most are never asked, so they are
// sorted when the first question comes; it is not safe for concurrent use.
func (l *Lines) Has(hash uint64) bool {
	if !l.sorted {
		slices.Sort(l.hashes)
		l.sorted = true
	}
	_, ok := slices.BinarySearch(l.hashes, hash)
	return ok
}

// Count is how many lines have a hash; see Has.
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

// Test is a test, or a suite's case with a name of its own.
type Test struct {
	Name  string // with the suites around it
	Leaf  string
	Line  int
	Skip  Skipping
	Focus bool
	Fails bool // expected to fail
	Again int  // how often it is run again when it fails
	// Abstract is the name of the abstract class around it; empty for none.
	Abstract string
	// skipLine and skipText show the skip.
	SkipLine int
	SkipText string
	// Whens are the conditions under which it is skipped.
	Whens    []When
	Asserts  []Assertion
	Cases    []Case
	Rounds   []Round
	Narrowed []Narrowing
	All      multiset.Hashes // of all tokens
	Telling  multiset.Hashes
	Literals multiset.Hashes
	Said     multiset.Hashes // what it only says when it fails, in Go
	Parts    multiset.Hashes // what stands between commas in its strings, as in rows of CSV
	Mocks    []string
	Names    multiset.Hashes // called or named in it, each once
	// Members are the names of fields, methods, options and constants that it uses:
	// what stands after a dot, names a value, or is in capitals.
	Members multiset.Hashes
	Empty   bool // nothing is done in it
	// Silent is set when it asserts nothing and hands nobody what could: only a crash
	// makes it fail.
	Silent bool
	Table  bool // rows that stand apart, and no test
	Caught int  // assertions whose failure is caught
	// Maybe are assertions in handlers that only run when something fails, and
	// nothing says that it has to.
	Maybe int
	// Told counts statements that print, or that say that something was asserted;
	// Voided are names whose value is given to nobody.
	Told     int
	Sent     int // errors that are given to a channel, in Go
	Voided   []string
	BodyHash uint64
}

// Hidden is a test that never runs: what comes after it has its name.
type Hidden struct {
	Name string
	Line int
}

// When is a condition under which a test is skipped.
type When struct {
	platform.Condition
	Line int
	S    string
	Asks multiset.Hashes // what it names
}

// Skipping says whether a test is skipped.
type Skipping uint8

// How tests run.
const (
	Runs Skipping = iota
	Sometimes
	Always
)

// Case is a row of a table of a test.
type Case struct {
	at   int // its first token; 0 for a piece of a text
	Line int
	Key  uint64
	// First is what its first cell says; 0 for none.
	First uint64
	All   multiset.Hashes
	// Literals are the strings and numbers of it that tell something.
	Literals multiset.Hashes
	// Off is set when it is skipped, or expected to fail.
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
	// Overrides is set when its class has it from another one, too.
	Overrides bool
	Test      bool // part of test code
	All       multiset.Hashes
	Tokens    int
	Lines     int
	Guards    []Guard
	Handlers  []handler
	Throws    int
	Empties   int // return null and the like
	Failing   int // return 1 and the like, and exits with such a code
	// Elses are the branches for all that is left, Refuses those of them that throw.
	Elses, Refuses int
	Fixed          int // special cases with fixed results
	Stub           bool
	AlwaysTrue     bool
	// Agrees is set when it says yes to all, though its name says that it checks.
	Agrees    bool
	Early     bool // returns before its work
	EarlyLine int
	BodyHash  uint64
	Calls     multiset.Hashes
	// Vouchers are calls whose name says that they check.
	Vouchers multiset.Hashes
	// Askers are the calls that may check something, each once; Given has each of them
	// together with each telling word of the lines that it stands in.
	Askers, Given multiset.Hashes
	// Conditions are those under which it throws or returns something.
	Conditions []Condition
	// Emptied are those under which it returns nothing.
	Emptied []Condition
	// Soft are those under which it gives a value or goes on, and what it only tells of.
	Soft []Condition
	// Strict are the words that make failures known, Softer the names of the calls in
	// whose place stand such that do not fail. Oks are where Rust gives what is good,
	// and Go returns no error.
	Strict, Softer multiset.Hashes
	Oks            int
	// Tries are the places where Rust and Go pass an error on, Swallows those where it
	// goes no further. Ignored are the calls whose error does so: it only ends a round
	// of a loop, gives another value, is told.
	Tries, Swallows int
	Ignored         multiset.Hashes
	// Dropped are the calls whose last result goes nowhere, in Go: the last result
	// is the error.
	Dropped multiset.Hashes
	// Stops are the calls of Go after whose failure the function, or the round of a loop, ends.
	// Idle are those after whose failure nothing is done.
	Stops, Idle multiset.Hashes
}

// Guard is a check that leaves the function when something is wrong.
type Guard struct {
	Line  int
	Key   uint64
	Words multiset.Hashes
	S     string
	// Names are those of the values that it asks about.
	Names multiset.Hashes
	// Cond has all of the condition, Limits are the numbers that it compares with, and
	// Ors counts its alternatives.
	Cond   multiset.Hashes
	Limits []Limit
	Ors    int
	// Parts are its alternatives, Asks what all of it asks for, Told the words that it
	// tells when it fails.
	Parts []Part
	Asks  asking
	Told  multiset.Hashes
	// Whole has all of it, with what is done then.
	Whole multiset.Hashes
	// Formed is set when it asks for a form: a pattern, or what a check says of it. Partly
	// is set when it asks for a part of something only.
	Formed, Partly bool
	// Lacks is set when it says that something cannot be done yet.
	Lacks bool
	// Vouched is set when the call whose error is checked has a name that says that it
	// checks something.
	Vouched bool
	// Inline is set when the call whose error is checked stands in the condition.
	Inline bool
	Throws bool
	// Called is set for a call that checks what it is given.
	Called bool
	// Of is the call whose result is checked; 0 when that cannot be told.
	Of uint32
	// Weak is set when it only returns false or -1.
	Weak bool
	// failure is set for checks of an error that a call returned.
	Failure bool
}

// handler is a place where errors are handled.
type handler struct {
	Line    int
	Dropped bool // nothing is done with the error
	// StandsIn is set when it gives an empty value for what was wanted, Expected when
	// it is for what may be missing.
	StandsIn, Expected bool
	Broad              bool
	Cleans             bool            // what it guards only closes or removes something
	Guarded            multiset.Hashes // telling tokens of what it guards, when it is dropped
	// Rethrows is set when it passes an error on, Plain when it calls nothing that
	// may do so.
	Rethrows, Plain bool
	// Fails is set when it passes an error on, or gives what tells of one; Alike when
	// it gives what is given where nothing failed.
	Fails, Alike bool
	// Hushed is set when it only tells where nobody reads, Succeeds when it answers that
	// all is well, Counts are the names of what it counts.
	Hushed, Succeeds bool
	Counts           multiset.Hashes
	// Sets is set when it gives a value to something, Hands when it hands the error to
	// somebody.
	Sets, Hands bool
	// Called are the names of what it calls, Does what is done, Told the words of its texts.
	Called, Does, Told multiset.Hashes
	Body               uint64
	S                  string
}

// Mark is a sequence of tokens, or a piece of a comment, that tells something.
type Mark struct {
	Pattern    string
	Line       int
	S          string // the line
	Key        uint64 // the line without the mark
	Target     uint64 // the line of code it is about
	About      string // the same line as it stands there, for what silences a tool
	Confidence float64
	On         bool // of a switch
	// Why is the comment on the line before it, of three words at least; empty for none.
	Why string
	// Silence is what one says that silences a tool.
	Silence Silence
}

// Reader makes models, one after the other. It keeps the memory that reading takes
// for the next text; models share none of it.
type Reader struct {
	unit unit
}

// Read makes the model of a text in a language. It never fails: what cannot be
// understood is not in the model.
func Read(lang *Language, path, src string) *Model { return new(Reader).Read(lang, path, src) }

// Read makes a model as the function of this name does.
func (r *Reader) Read(lang *Language, path, src string) *Model {
	u := &r.unit
	u.begin(lang, path, src)
	u.declare()
	return u.model()
}

// model makes the model of a file whose declarations are known.
func (u *unit) model() *Model {
	m := &Model{Path: u.path}
	u.findTests()
	m.Hidden = u.hidden
	u.readTests(m)
	u.readFunctions(m)
	u.readLines(m)
	u.readMarks(m)
	u.readChecks(m)
	u.readExits(m)
	u.readStarts(m)
	if u.lang.Name == "rust" {
		m.Mods = u.testModules()
	}
	if u.lang.Name == "go" {
		m.Build = goBuild(u.notes)
	}
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
	m.Lines.hashes, m.CodeLines = append([]uint64(nil), u.lines...), len(u.lines)
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

// maxNotes is after how many bytes no more comments are kept.
const maxNotes = 64 << 10

// hashOf is the hash of a line of code, like those of Model.Lines.
func (u *unit) hashOf(s string) uint64 {
	rules := &u.lang.rules
	if rules.Tag != "" { // it is code without the tag
		plain := *rules
		plain.Tag, rules = "", &plain
	}
	tokens, _ := u.aside.Read(rules, s)
	return mixAll(firstHash, tokens)
}

// codeLike tells whether the line of a comment may be a line of code.
func codeLike(s string) bool {
	return len(s) > 4 && (strings.ContainsAny(s, "(){}=;") || strings.HasSuffix(s, ":") ||
		strings.HasPrefix(s, "return") || strings.HasPrefix(s, "assert") || s == "end")
}
