package syntax

import (
	"strings"
	"sync"
)

// deadCode returns the spans of a test file that never run, such as blocks under a false condition
// and loops over nothing.
func (u *unit) deadCode() [][2]int {
	var all [][2]int
	for i := range u.tok {
		if !u.isWord(i) {
			continue
		}
		if span := u.deadAt(i); span[0] < span[1] {
			all = append(all, span)
		}
	}
	for i := range u.decls {
		if span := u.afterReturn(i); span[0] < span[1] {
			all = append(all, span)
		}
	}
	return all
}

// afterReturn returns the tokens of a test after an unconditional return.
func (u *unit) afterReturn(i int) [2]int {
	d := &u.decls[i]
	first := u.firstStatement(d)
	if !u.tests[i] || first < 0 {
		return [2]int{}
	}
	for j := first; j < d.end-1; j++ {
		s := u.at(j)
		if u.match[j] > int32(j) { // nested code is conditional or runs elsewhere
			j = int(u.match[j])
			continue
		}
		if s != "return" || u.lang.shape == indents && u.headCol(j) != u.headCol(first) || u.lang.shape == braces &&
			u.underHead(j) {
			continue
		}
		if u.bareReturn(j, d.end) == Always {
			return [2]int{j, d.end}
		}
	}
	return [2]int{}
}

// underHead reports whether the statement at i is the body of an if or a loop without braces.
func (u *unit) underHead(i int) bool {
	if u.at(i-1) == ")" {
		return oneOf(u.at(u.opener(i-1)-1), "if", "while", "for", "foreach", "elseif", "when")
	}
	return oneOf(u.at(i-1), "else", "=>", "->", "do")
}

// deadAt returns the body of the statement at i if it never runs.
func (u *unit) deadAt(i int) [2]int {
	switch s := u.at(i); s {
	case "if", "while", "unless":
		if s == "while" && u.at(i-1) == "}" {
			break // the body before it runs once
		}
		from, to := i+1, i+2
		if u.at(from) == "(" {
			from, to = i+2, u.closer(i+1)-1
		}
		not := s == "unless"
		if u.at(from) == "!" || u.at(from) == "not" {
			not = !not
			from++
			to = max(to, from+1)
		}
		if to != from+1 || !u.isFalse(from, not) {
			return [2]int{}
		}
		if u.at(i+1) == "(" {
			to++
		}
		return u.headedBody(i, to)
	case "of", "in", "range":
		return u.emptyLoop(i)
	case "forEach", "each", "map", "each_with_index", "for_each", "onEach", "each_pair":
		if u.at(i-1) == "." && u.emptyList(u.listBegin(i-1), i-1) {
			return [2]int{i, u.afterCall(i)}
		}
	}
	return [2]int{}
}

// isFalse reports whether the token at i is a false constant, or a true one if negated.
func (u *unit) isFalse(i int, not bool) bool {
	s := strings.ToLower(u.at(i))
	return not && (s == "true" || s == "1") || !not && (s == "false" || s == "0")
}

// headedBody returns the body of the statement at i whose head ends at to.
func (u *unit) headedBody(i, to int) [2]int {
	switch u.lang.shape {
	case indents:
		if u.at(to) == ":" {
			return [2]int{to + 1, u.indentedEnd(i, to+1, len(u.tok))}
		}
	case ends:
		if u.tok[i].First && u.match[i] >= 0 {
			return [2]int{to, int(u.match[i])}
		}
	default:
		if u.at(to) == "{" {
			return [2]int{to + 1, u.closer(to) - 1}
		}
		if u.at(i+1) == "(" {
			return [2]int{to, u.statementEnd(to)}
		}
	}
	return [2]int{}
}

// emptyLoop returns the body of a loop over an empty literal list.
func (u *unit) emptyLoop(i int) [2]int {
	from, to := i+1, i+1
	if u.lang.shape == indents {
		if to = u.colon(i, len(u.tok)) - 1; u.at(to) != ":" || to-i > 12 || !u.emptyList(from, to) {
			return [2]int{}
		}
		head := i
		for head > 0 && !u.tok[head].First {
			head--
		}
		if u.at(head) != "for" {
			return [2]int{}
		}
		return [2]int{to + 1, u.indentedEnd(head, to+1, len(u.tok))}
	}
	for to < len(u.tok) && to-i < 16 && u.at(to) != ")" && !(u.at(to) == "{" && u.at(to+1) != "}") {
		if s := u.at(to); s == "(" || s == "[" || s == "{" {
			to = u.closer(to)
			continue
		}
		to++
	}
	if !u.emptyList(from, to) {
		return [2]int{}
	}
	if u.at(to) == ")" {
		to++
	}
	if u.at(to) == "{" {
		return [2]int{to + 1, u.closer(to) - 1}
	}
	return [2]int{}
}

// emptyList reports whether the tokens [from, to) are an empty literal list.
func (u *unit) emptyList(from, to int) bool {
	if to-from < 2 || to > len(u.tok) || from < 0 {
		return false
	}
	open := u.opener(to - 1)
	if open < from {
		return u.at(to-1) == "0" && (u.at(to-2) == ".." || u.at(to-2) == "until") && u.at(to-3) == "0" && to-3 == from
	}
	if open > from && u.takesNone(open, to-1) {
		return true
	}
	if zero := open == to-3 && u.at(to-2) == "0"; zero {
		return u.at(from) == "new" && u.at(open) == "[" || u.at(open) == "(" && u.at(open-1) == "range" && open-1 == from
	}
	if open != to-2 {
		return false
	}
	if open == from {
		return true
	}
	before := open - 1
	for u.at(before) == ">" || u.at(before) == ">>" { // types
		for before > from && u.at(before) != "<" {
			before--
		}
		before--
	}
	switch u.at(open) {
	case "{":
		return u.at(from) == "[" || u.at(from) == "map" || u.at(from) == "new"
	case "(":
		return listMakers()[u.at(before)]
	}
	return u.at(before) == "!" && u.at(before-1) == "vec"
}

var listMakers = sync.OnceValue(wordSet("of listOf emptyList emptyArray arrayOf emptySet setOf mapOf emptyMap " +
	"Empty list set dict tuple frozenset array asList emptySequence sequenceOf"))

// listBegin returns the beginning of the expression before the dot.
func (u *unit) listBegin(dot int) int {
	j := dot - 1
	for j > 0 && dot-j < 16 {
		if s := u.at(j); (s == ")" || s == "]" || s == "}") && u.opener(j) >= 0 {
			j = u.opener(j)
		}
		if s := u.at(j - 1); !u.isWord(j-1) && s != "." && s != ">" && s != "<" || goBack()[s] {
			return j
		}
		j--
	}
	return j
}

var goBack = sync.OnceValue(wordSet("return await do then else in of"))

// takesNone reports whether brackets select no elements: [:0], .slice(0, 0).
func (u *unit) takesNone(open, closing int) bool {
	switch last := u.at(closing - 1); {
	case last != "0":
		return false
	case u.at(open) == "[":
		before := u.at(closing - 2)
		return (before == ":" || before == "..") && (closing-2 == open+1 || u.at(open+1) == "0" && closing-3 == open+1)
	case u.at(open) == "(":
		return oneOf(u.at(open-1), "slice", "islice", "array_slice") && u.at(closing-2) == "," && u.at(closing-3) == "0"
	}
	return false
}
