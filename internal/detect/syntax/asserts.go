package syntax

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Assertion is a place where a test can fail.
type Assertion struct {
	// Bare is set when it names a value without a condition: expect(x);
	Bare bool
	// Self is set when both sides are the same code.
	Self bool
	// Echo is set when the expected value is computed from the tested one, or contains it.
	Echo bool

	Helper   bool // a call of an asserting function of the file, with no other assertion
	Line     int
	Name     string // the matcher: toBe, assertEqual
	Strength Strength
	Key      uint64          // of its tokens
	Words    multiset.Hashes // distinctive ones
	Literals multiset.Hashes
	S        string
	Marker   bool // only says that a place was reached
	// Kind is set when it only tests the type of a value.
	Kind bool
	// Under is its condition, if nothing is asserted otherwise; nil for none.
	Under *When
	at    int
	// Next is the key of the next assertion if that one implies it.
	Next uint64
	// Call has the name of the call whose error is all that is tested, and the name before its dot.
	Call multiset.Hashes
}

// assertions returns the assertions among the tokens [from, to), without nested ones and without
// repetitions of one with nothing but assertions between.
func (u *unit) assertions(from, to, body int, helpers set) []Assertion {
	var all []Assertion
	last, seen := [2]int{}, make(map[uint64]bool)
	for i := max(from, body); i < to; i++ {
		if !u.isWord(i) || !u.asserts(i, helpers) {
			continue
		}
		begin, end := u.extent(i, from, to)
		next := u.assertedEnd(i, end)
		a := u.assertion(i, begin, next)
		a.Helper = begin == i && helpers[u.at(i)] && !u.asserts(i, nil)
		if len(all) > 0 && all[len(all)-1].Strength == Weak &&
			u.implied(&all[len(all)-1], &a, last, [2]int{begin, next}) {
			all[len(all)-1].Next = a.Key
		}
		if anyOf(last[1], begin, func(j int) bool { return !oneOf(u.at(j), ";", "}", ")", "end") }) {
			clear(seen)
		}
		if !seen[a.Key] {
			all = append(all, a)
		}
		seen[a.Key], last = true, [2]int{begin, next}
		i = max(i, next-1)
	}
	return all
}

// assertedEnd returns where the search for further assertions continues: a block passed to an
// assertion may contain some.
func (u *unit) assertedEnd(i, end int) int {
	for j := i; j < end; j++ {
		if u.at(j) == "{" && u.kindAt(j) == lex.Op && u.lang.shape == braces && end-j > 30 {
			return j + 1
		}
	}
	return end
}

// asserts reports whether the word at i is an assertion.
func (u *unit) asserts(i int, helpers set) bool {
	s := u.at(i)
	next, before := u.at(i+1), u.at(i-1)
	call := next == "(" || next == "!" || next == "<" || next == "{" && u.lang.trailing
	if oneOf(before, "function", "def", "fn", "fun", "func", "import", "use", "@") {
		return false
	}
	if u.lang.isAssertion != nil {
		if asserts, decided := u.lang.isAssertion(u, i, helpers); decided {
			return asserts
		}
	}
	if !call {
		return false
	}
	if u.lang.asserts[s] || helpers[s] {
		return before != "." || s != "fail" && s != "then" || oneOf(u.at(i-2), "Assert", "Assertions", "self")
	}
	return assertLike(s)
}

// assertLike reports whether a name begins like that of an assertion.
func assertLike(s string) bool {
	if s == "expectNotToPerformAssertions" {
		return false
	}
	s = strings.TrimLeft(s, "_$")
	if len(s) < 6 {
		return false
	}
	for _, p := range assertPrefixes {
		if len(s) > len(p) && strings.EqualFold(s[:len(p)], p) {
			c := s[len(p)]
			return c == '_' || c >= 'A' && c <= 'Z' || p == "assert"
		}
	}
	return strings.HasSuffix(s, "Matchers") || strings.HasSuffix(s, "_assert")
}

var assertPrefixes = [...]string{"assert", "expect", "verify", "check", "should", "must", "ensure", "refute",
	"require", "compare"}

// assertStatement reports whether the statement assert is at i.
func (u *unit) assertStatement(i int) bool { return u.lang.assertWord && u.at(i) == "assert" }

// passes reports whether Assert.Pass of NUnit, which ends a test, is at i.
func (u *unit) passes(i int) bool { return u.at(i) == "Assert" && u.at(i+2) == "Pass" }

// extent returns the tokens of the assertion with the word at i.
func (u *unit) extent(i, from, to int) (begin, end int) {
	begin, end = i, i+1
	switch {
	case u.assertStatement(i):
		return i, min(u.lineEnd(i), to)
	case u.lang.closing[u.at(i)]:
		return i, u.closer(i + 1) // without the test before it
	case u.lang.shape == ends, u.infix(i):
		for begin > from && !u.tok[begin].First && u.at(begin-1) != "{" && u.at(begin-1) != "do" {
			begin--
		}
		return begin, max(min(u.lineEnd(i), to), i+1)
	}
	j := i + 1
	for j < to {
		switch s := u.at(j); {
		case s == "(":
			j = u.closer(j)
		case (s == "." || s == "->" || s == "?." || s == "::") && u.isWord(j+1):
			j += 2
		case s == "!" && u.at(j+1) == "(":
			j++
		case s == "<":
			k := u.angles(j)
			if k == j {
				return begin, max(j, i+1)
			}
			j = k
		case s == "{" && u.lang.trailing:
			j = u.closer(j)
		default:
			return u.withCondition(begin, min(j, to), from)
		}
		end = j
	}
	return u.withCondition(begin, min(end, to), from)
}

// withCondition extends an assertion to the beginning of its chain or, if it only reports a
// failure, to its condition: if got != want { t.Errorf(...) }.
func (u *unit) withCondition(begin, end, from int) (int, int) {
	for u.at(begin-1) == "." || u.at(begin-1) == "->" || u.at(begin-1) == "::" {
		begin -= 2
		for begin > from && (u.at(begin) == ")" || u.at(begin) == "]") && u.opener(begin) > 0 {
			begin = u.opener(begin) - 1
		}
	}
	begin = max(begin, from)
	if u.at(begin+1) != "." || !u.lang.failing[u.at(begin+2)] {
		return begin, end
	}
	depth := 0
	for j := begin - 1; j > max(from, begin-120); j-- {
		switch s := u.at(j); {
		case s == "}" && u.opener(j) > 0:
			j = u.opener(j)
		case s == "{" && u.kindAt(j) == lex.Op:
			depth++
		case (s == "if" || s == "case" || s == "switch") && depth >= 1:
			return j, end
		case s == "func":
			return begin, end
		}
	}
	return begin, end
}

// assertion reads the tokens [begin, end) of an assertion.
func (u *unit) assertion(i, begin, end int) Assertion {
	from, to := begin, u.withoutMessage(i, begin, end)
	if u.assertStatement(i) {
		from, to = u.unwrapped(i+1, to)
	}
	tokens := u.tok[from:to]
	a := Assertion{Line: u.line(i), Key: mixAll(firstHash, tokens), Words: u.once(appendTelling, tokens),
		Literals: u.once(appendLiterals, tokens), S: u.text(begin, end)}
	a.Name, a.Strength = u.measure(i, begin, end)
	if u.lang.failing[u.at(i)] {
		a.Call = u.errorOf(begin, end)
	}
	if u.cannotFail(i, begin, end) {
		a.Strength, a.Marker = Trivial, u.marksPlace(i, begin, end)
	}
	a.Bare, a.Self, a.Kind, a.at = u.bare(i), u.comparesItself(i, begin, end, u.sameCode), u.asksKind(begin, end), begin
	a.Echo = !a.Self && u.comparesItself(i, begin, end, u.sameComputed)
	if !u.lang.ofTypes[u.at(i)] && slices.ContainsFunc(u.dead, func(s [2]int) bool { return s[0] <= i && i < s[1] }) {
		a.Strength = Trivial // it never runs
	}
	return a
}

// withoutMessage returns the end of the condition of an assertion, without the failure message.
func (u *unit) withoutMessage(i, begin, end int) int {
	switch {
	case u.assertStatement(i):
		if comma := u.find(i+1, end, ","); comma < end {
			return comma
		}
	case u.lang.failing[u.at(i)] && begin < i-2:
		if j := u.find(begin, i, "{", ":"); j < i {
			return j
		}
	}
	return end
}

// plain returns a name in lower case without underscores.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// arguments returns the values that an assertion compares: the arguments of the call and its
// matcher, or the sides of a condition.
func (u *unit) arguments(i, begin, end int) [][2]int {
	if u.infix(i) {
		return [][2]int{{begin, i}, {i + 1, end}}
	}
	var all [][2]int
	if u.isWord(i) && u.onReceiver(i) {
		all = append(all, [2]int{begin, i - 1})
	}
	if u.lang.shape == ends && u.at(i+1) != "(" && u.at(i+1) != "{" {
		for _, part := range u.parts(i+1, end) {
			all = append(all, u.sides(part[0], part[1])...)
		}
		return all
	}
	if u.assertStatement(i) {
		return u.sides(u.unwrapped(i+1, u.withoutMessage(i, i, end)))
	}
	for j := i; j < end; j++ {
		if u.at(j) != "(" {
			continue
		}
		closing := u.closer(j) - 1
		for _, part := range u.parts(j+1, closing) {
			if u.at(part[0]) != "t" {
				all = append(all, u.sides(part[0], part[1])...)
			}
		}
		j = closing
	}
	if len(all) > 2 && u.kindAt(all[len(all)-1][0]) == lex.Text { // a message
		all = all[:len(all)-1]
	}
	return all
}

// onReceiver reports whether the word at i asserts something about what is before its dot:
// x.must_equal 1, get("/").expect(200).
func (u *unit) onReceiver(i int) bool {
	s := u.at(i)
	return strings.HasPrefix(s, "must_") || strings.HasPrefix(s, "wont_") || u.at(i-1) == "." && u.at(i-2) == ")" &&
		u.asserts(i, nil)
}

// sides splits a comparison into its two sides.
func (u *unit) sides(from, to int) [][2]int {
	if j := u.find(from, to, "==", "==="); j < to {
		return [][2]int{{from, j}, {j + 1, to}}
	}
	return [][2]int{{from, to}}
}

// droppedFailure reports whether the handler at i drops the failures of assertions before it. A try
// that ends with fail() expects the error.
func (u *unit) droppedFailure(i, from int) bool {
	h := u.handlerAt(i)
	if h == nil || !h.Dropped || !h.Broad {
		return false
	}
	asserted, try := u.assertsBefore(i, from)
	return asserted && try
}

// Subject returns the distinctive tokens of an assertion without its literals.
func (a *Assertion) Subject() multiset.Hashes {
	s := slices.Clone(a.Words)
	return multiset.Difference(s, a.Literals)
}

// saysFailure reports whether an assertion always fails: fail("not reached"), assert.ok(0).
func (u *unit) saysFailure(i, end int) bool {
	j := i
	for ; j < end && u.at(j) != "("; j++ {
		if plain(u.at(j)) == "fail" {
			return true
		}
	}
	if u.assertStatement(i) {
		j = i
	} else if !oneOf(plain(u.at(j-1)), "assert", "!", "ok", "asserttrue", "true", "istrue") {
		return false
	}
	return oneOf(u.at(j+1), "false", "False", "0", "null", "None", "nil") && (j+2 >= end || oneOf(u.at(j+2), ")", ","))
}

// marksPlace reports whether an assertion only records that a place was reached, among assertions
// that are counted: assert.ok("the hook was called").
func (u *unit) marksPlace(i, begin, end int) bool {
	if u.passes(i) && u.assertsWithin(end, u.testEnd(i), nil) {
		return false // NUnit ends the test there
	}
	args := u.arguments(i, begin, end)
	return u.at(i) == "pass" || u.at(i) == "addToAssertionCount" ||
		len(args) == 1 && args[0][1]-args[0][0] == 1 && u.kindAt(args[0][0]) == lex.Text
}

// testEnd returns the end of the test around the token at i.
func (u *unit) testEnd(i int) int {
	for n := range u.decls {
		if d := &u.decls[n]; u.tests[n] && d.at < i && i < d.end {
			return d.end
		}
	}
	return i
}
