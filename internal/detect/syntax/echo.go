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

// farthestGiven is the maximum distance in tokens between a local's assignment and an assertion.
const farthestGiven = 120

// put returns the value of the local that an expression consists of, if no other code is between;
// otherwise the expression.
func (u *unit) put(a [2]int) [2]int {
	if u.at(a[0]) == "await" {
		a[0]++
	}
	if a[1] != a[0]+1 || !u.isWord(a[0]) {
		return a
	}
	for j := a[0] - 1; j > max(0, a[0]-farthestGiven); j-- {
		if u.at(j) != u.at(a[0]) || u.at(j-1) == "." || u.at(j+1) != "=" && u.at(j+1) != ":=" {
			continue
		}
		from, to := j+2, u.lineEnd(j)
		if u.lang.shape == braces {
			to = u.statementEnd(j)
		}
		to = u.trimmed(from, to)
		if u.at(from) == "await" {
			from++
		}
		if from >= to || to > a[0] || u.done(to, a[0]) {
			return a
		}
		return [2]int{from, to}
	}
	return a
}

// done reports whether the tokens [from, to) have statements other than values and assertions.
func (u *unit) done(from, to int) bool {
	for j := from; j < to; j++ {
		if !u.tok[j].First || !u.isWord(j) || oneOf(u.at(j), "const", "let", "var", "val", "if") {
			continue
		}
		if next := u.at(j + 1); next == "=" || next == ":=" || u.asserts(j, nil) {
			continue
		}
		for k := j; k < to && !(k > j && u.tok[k].First); k++ {
			if u.isWord(k) && u.asserts(k, nil) || k == to-1 {
				break
			}
			if u.at(k) == "(" {
				return true
			}
		}
	}
	return false
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
