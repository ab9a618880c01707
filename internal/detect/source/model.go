package source

import "strings"

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
	// lines are the hashes of the lines of code, with their number.
	Lines map[uint64]int
	// comments are the hashes of the lines of comments that look like code.
	Commented map[uint64]CommentLine
	// rest are the tokens outside of tests and functions.
	Rest Bag
	// Words are the names that production code calls.
	Words map[uint32]bool
	// build is what decides whether the file belongs to a build.
	Build string
	// titles are the names in comments, by which a test that became a comment is
	// recognised.
	Notes     string
	CodeLines int
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
	// skipLine and skipText show the skip.
	SkipLine int
	SkipText string
	Asserts  []Assertion
	Cases    []Case
	All      Bag // of all tokens
	Telling  Bag
	Literals Bag
	Parts    Bag // what stands between commas in its strings, as in rows of CSV
	Mocks    []string
	Names    map[uint32]bool // called or named in it
	Caught   int             // assertions whose failure is caught
	helper   bool            // calls something that may assert
	BodyHash uint64
	computed []Assertion
	tokens   int
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
	Line int
	Key  uint64
	All  Bag
	// Literals are the strings and numbers of it that tell something.
	Literals Bag
	S        string
}

// Function is a function, a method or a container of production or test code.
type Function struct {
	Name       string
	Leaf       string
	Line       int
	Kind       declKind
	Public     bool
	Deprecated bool
	Test       bool // part of test code
	All        Bag
	telling    Bag
	Tokens     int
	Lines      int
	Guards     []Guard
	Handlers   []handler
	Throws     int
	Empties    int // return null and the like
	Fixed      int // special cases with fixed results
	Stub       bool
	AlwaysTrue bool
	Early      bool // returns before its work
	EarlyLine  int
	BodyHash   uint64
	Calls      Bag
	// Conditions are those under which it throws or returns something.
	Conditions []Condition
	// Dropped are the calls whose last result goes nowhere, in Go: the last result
	// is the error.
	Dropped Bag
}

// Guard is a check that leaves the function when something is wrong.
type Guard struct {
	Line  int
	Key   uint64
	Words Bag
	S     string
	// Inline is set when the call whose error is checked stands in the condition.
	Inline bool
	// Weak is set when it only returns false or -1.
	Weak bool
	// failure is set for checks of an error that a call returned.
	Failure bool
}

// handler is a place where errors are handled.
type handler struct {
	Line    int
	Dropped bool // nothing is done with the error
	Broad   bool
	Cleans  bool // what it guards only closes or removes something
	Body    uint64
	S       string
}

// Mark is a sequence of tokens, or a piece of a comment, that tells something.
type Mark struct {
	Pattern    string
	Line       int
	S          string // the line
	Key        uint64 // the line without the mark
	Target     uint64 // the line of code it is about
	Confidence float64
	On         bool // of a switch
}

// Read makes the model of a text in a language. It never fails: what cannot be
// understood is not in the model.
func Read(lang *Language, path, src string) *Model {
	u := newUnit(lang, path, src)
	u.declare()
	return u.model()
}

// model makes the model of a file whose declarations are known.
func (u *unit) model() *Model {
	m := &Model{Path: u.path, Words: make(map[uint32]bool)}
	inTests := u.lang.TestFile(u.path)
	u.readTests(m)
	u.readFunctions(m, inTests)
	u.readLines(m)
	u.readMarks(m, inTests)
	if u.lang.Name == "go" {
		m.Build = goBuild(u.notes)
	}
	return m
}

// readLines notes the lines of code and of comments.
func (u *unit) readLines(m *Model) {
	m.Lines = make(map[uint64]int, len(u.tok)/6)
	m.Commented = make(map[uint64]CommentLine)
	for i := 0; i < len(u.tok); {
		line, h := u.tok[i].line, uint64(14695981039346656037)
		for ; i < len(u.tok) && u.tok[i].line == line; i++ {
			h = mix(h, u.tok[i].s)
		}
		m.Lines[h] = int(line)
		m.CodeLines++
	}
	var notes strings.Builder
	for _, c := range u.notes {
		line := int(c.line)
		for s := range strings.Lines(c.s) {
			s = strings.Trim(s, " \t\r\n/*#")
			if codeLike(s) {
				m.Commented[u.hashOf(s)] = CommentLine{line, strings.Clone(s)}
			}
			line++
		}
		if notes.Len() < 64<<10 {
			notes.WriteString(c.s)
			notes.WriteByte('\n')
		}
	}
	m.Notes = notes.String()
}

// hashOf is the hash of a line of code, like those of model.lines.
func (u *unit) hashOf(s string) uint64 {
	rules := u.lang.rules
	rules.tag = ""
	tokens, _ := lex(&rules, s)
	h := uint64(14695981039346656037)
	for i := range tokens {
		h = mix(h, tokens[i].s)
	}
	return h
}

// codeLike tells whether the line of a comment may be a line of code.
func codeLike(s string) bool {
	return len(s) > 4 && (strings.ContainsAny(s, "(){}=;") || strings.HasSuffix(s, ":") || strings.HasPrefix(s, "return") || strings.HasPrefix(s, "assert") || s == "end")
}
