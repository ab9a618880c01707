package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// cannotFail reports whether an assertion holds for any code.
func (u *unit) cannotFail(i, begin, end int) bool {
	args := u.arguments(i, begin, end)
	if u.at(i) == "pass" || u.at(i) == "addToAssertionCount" || u.passes(i) {
		return true
	}
	if open := i + 1; u.assertStatement(i) && u.at(open) == "(" && u.closer(open) == end &&
		u.at(u.commaAfter(open+1, end-1)) == "," {
		return true // a tuple
	}
	if len(args) == 0 {
		return false
	}
	if u.lang.failing[u.at(i)] {
		return begin < i && u.at(begin) == "if" && u.at(begin+1) == "false"
	}
	if u.saysFailure(i, end) {
		return false
	}
	constant := true
	for _, a := range args {
		constant = constant && u.fixedTokens(a[0], a[1])
		if n := a[1]; n-a[0] > 2 && (u.at(n-2) == "or" || u.at(n-2) == "||") && strings.EqualFold(u.at(n-1), "true") {
			return true
		}
	}
	if constant {
		name := plain(u.at(i))
		return !strings.HasPrefix(name, "expectexception") && !strings.Contains(name, "called") &&
			!strings.Contains(name, "await") && u.namesComparison(i)
	}
	return len(args) == 2 && u.sameTokens(args[0], args[1])
}

func (u *unit) sameTokens(a, b [2]int) bool {
	if a[1]-a[0] != b[1]-b[0] {
		return false
	}
	return !anyOf(0, a[1]-a[0], func(k int) bool { return u.at(a[0]+k) != u.at(b[0]+k) || u.at(a[0]+k) == "(" })
}

// fixedTokens reports whether an expression is a constant.
func (u *unit) fixedTokens(from, to int) bool {
	for j := from; j < to; j++ {
		switch {
		case u.kindAt(j) == lex.Number:
		case u.kindAt(j) == lex.Text:
			if strings.ContainsAny(u.at(j), "{") {
				return false // maybe a template
			}
		case u.isWord(j):
			if s := strings.ToLower(u.at(j)); !oneOf(s, "true", "false", "none", "null", "nil", "not") {
				return false
			}
		case u.at(j) != "-" && u.at(j) != "!":
			return false
		}
	}
	return to > from
}

// bare reports whether an assertion has no matcher: expect(x), x.Should(), assertThat(x), or a
// matcher that is not called.
func (u *unit) bare(i int) bool {
	end := i + 1
	if u.at(end) == "(" || u.lang.shape == ends && (u.at(end) == "{" || u.at(end) == "do") || u.lang.macros &&
		u.at(end) == "!" {
		if u.at(end) == "!" {
			end++
		}
		if end = u.closer(end); u.isWord(end-1) && u.at(end-1) != "end" { // unclosed
			return false
		}
	}
	return u.lang.isBare(u, i, end, end == i+1)
}

// bareCall reports whether the call at i begins a chain and has one argument.
func (u *unit) bareCall(i, end int, alone bool) bool {
	return bareCalls()[u.at(i)] && !alone && u.endsStatement(end) && u.oneArgument(i)
}

// bareCalls are the calls that begin a chain with a matcher.
var bareCalls = sync.OnceValue(wordSet("assertThat assertThatThrownBy assertThatCode assertThatExceptionOfType " +
	"expectThat expectCatching assert_that assert_that expect_that"))

// endsStatement reports whether a statement ends before the token at i.
func (u *unit) endsStatement(i int) bool {
	if i >= len(u.tok) {
		return true
	}
	s := u.at(i)
	return s == ";" || s == "}" || s == "end" || u.tok[i].First && !goesOn(u.at(i-1), s)
}

// oneArgument reports whether the call at i has one argument.
func (u *unit) oneArgument(i int) bool {
	open := i + 1
	if u.at(open) == "!" {
		open++
	}
	end := u.closer(open) - 1
	return u.commaAfter(open+1, end) >= end-1
}

// comparesItself reports whether both sides of an assertion are the same according to a function.
func (u *unit) comparesItself(i, begin, end int, same func(a, b [2]int) bool) bool {
	if u.infix(i) {
		return same([2]int{begin, i}, [2]int{i + 1, end})
	}
	if u.lang.failing[u.at(i)] {
		return false
	}
	if u.at(i-1) == "." && i-1 > begin { // x.Should().Be(x), x.should.equal(x), x.must_equal x
		from, to := i+1, end
		for j := i; j < end; j++ {
			if u.at(j) == "(" && u.kindAt(j) == lex.Op {
				from, to = j+1, u.closer(j)-1
				j = to
			}
		}
		if same([2]int{begin, i - 1}, [2]int{from, to}) {
			return true
		}
		if strings.Contains(plain(u.at(i)), "not") { // it would always fail
			return false
		}
	}
	args := u.arguments(i, begin, end)
	return (len(args) == 2 || len(args) == 3) && u.namesComparison(i) && same(args[0], args[1])
}

// sameCode reports whether two expressions are the same and contain a name.
func (u *unit) sameCode(a, b [2]int) bool {
	if a[1]-a[0] != b[1]-b[0] || a[1] <= a[0] || a[0] < 0 || b[1] > len(u.tok) {
		return false
	}
	return anyOf(a[0], a[1], u.isWord) &&
		!anyOf(0, a[1]-a[0], func(k int) bool { return u.at(a[0]+k) != u.at(b[0]+k) })
}

// sameComputed reports whether two expressions are the same code after locals are replaced by their
// values, or whether one contains the other.
func (u *unit) sameComputed(a, b [2]int) bool {
	if a[1] <= a[0] || b[1] <= b[0] || a[0] < 0 || b[0] < 0 || a[1] > len(u.tok) || b[1] > len(u.tok) {
		return false
	}
	x, y := u.put(a), u.put(b)
	calls := anyOf(x[0], x[1], func(j int) bool { return u.at(j) == "(" && u.isWord(j-1) })
	return (x != a || y != b) && calls && u.sameCode(x, y) || u.holdsWhole(a, b) || u.holdsWhole(b, a)
}

// holdsWhole reports whether an expression contains another one and only copies or counts it
// besides: { ...want, ...won } and won, all.size and all.
func (u *unit) holdsWhole(part, whole [2]int) bool {
	n := part[1] - part[0]
	if whole[1]-whole[0] <= n || !u.isWord(part[0]) || u.fixedTokens(part[0], part[1]) {
		return false
	}
	for j := whole[0]; j < whole[1]; j++ {
		if u.at(j) == "(" && u.kindAt(j) == lex.Op && !sameStill()[u.at(j-1)] {
			return false
		}
	}
	for j := whole[0]; j+n <= whole[1]; j++ {
		if !u.sameCode(part, [2]int{j, j + n}) {
			continue
		}
		switch u.at(j - 1) {
		case ".", "->", "[", "::", "+", "-", "*", "/":
			continue
		}
		switch next := u.at(j + n); {
		case j+n == whole[1], next == "or", next == "||", next == "??", next == "}", next == ")", next == ",", next == "?:":
			return true
		case (next == "." || next == "->" || next == "?.") && sameStill()[u.at(j+n+1)] && j+n+2 >= whole[1]-2:
			return true
		}
	}
	return false
}

// sameStill are calls and fields that copy or count a value.
var sameStill = sync.OnceValue(wordSet("size len count length Len Count Length clone copy to_s toString to_string " +
	"String ToString toList ToList to_a slice dup deepcopy structuredClone strlen"))
