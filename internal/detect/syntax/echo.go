package syntax

import (
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// sameComputed reports whether two expressions are the same code after locals are replaced by their
// values, or whether one contains the other.
func (u *unit) sameComputed(a, b [2]int) bool {
	if a[1] <= a[0] || b[1] <= b[0] || a[0] < 0 || b[0] < 0 || a[1] > len(u.tok) || b[1] > len(u.tok) {
		return false
	}
	x, y := u.put(a), u.put(b)
	return (x != a || y != b) && u.hasCall(x) && u.sameCode(x, y) || u.holdsWhole(a, b) || u.holdsWhole(b, a)
}

// hasCall reports whether an expression has a call.
func (u *unit) hasCall(a [2]int) bool {
	return anyOf(a[0], a[1], func(j int) bool { return u.at(j) == "(" && u.isWord(j-1) })
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

// onlyAskedFor reports whether the function named at i is only tested for presence by an assertion.
func (u *unit) onlyAskedFor(i int) bool {
	if u.at(i-1) == "callable" || u.at(i-1) == "typeof" || u.at(i-2) == "callable" {
		return true
	}
	if u.at(i-1) != "(" || u.at(i+1) != ")" && u.at(i+1) != "," {
		return false
	}
	for j := i - 2; j < min(i+14, len(u.tok)) && u.at(j) != ";" && (j < i || !u.tok[j].First || u.at(j) == "."); j++ {
		if thereness()[plain(u.at(j))] {
			return true
		}
	}
	return false
}

var thereness = sync.OnceValue(wordSet("null notnull isnotnull assertnotnull shouldnotbenull tobedefined " +
	"tobetruthy function notbenull benull assertiscallable iscallable callable isnotnone assertisnotnone notnil " +
	"nil none tobeok exist exists"))

// takesNone reports whether brackets select no elements: [:0], .slice(0, 0), .take(0), .Take(0),
// .limit(0).
func (u *unit) takesNone(open, closing int) bool {
	switch last := u.at(closing - 1); {
	case last != "0":
		return false
	case u.at(open) == "[":
		before := u.at(closing - 2)
		return (before == ":" || before == "..") && (closing-2 == open+1 || u.at(open+1) == "0" && closing-3 == open+1)
	case u.at(open) == "(":
		switch u.at(open - 1) {
		case "take", "Take", "limit", "first", "head":
			return closing == open+2
		case "slice", "islice", "array_slice":
			return u.at(closing-2) == "," && u.at(closing-3) == "0"
		}
	}
	return false
}
