package syntax

import (
	"strings"
	"sync"
)

// losesFailure reports whether the word at i makes failures of assertions disappear: a handler that
// only logs, a call that catches what its block throws, a promise that is not awaited.
func (u *unit) losesFailure(i, from int) bool {
	if u.lang.loses != nil && u.lang.loses(u, i, from) || u.expectsFailure(i) {
		return true
	}
	if !u.lang.handlers[u.at(i)] || !u.onlyLogs(i) {
		return false
	}
	asserted, try := u.assertsBefore(i, from)
	return asserted && (try || u.lang.shape == ends) // a Ruby method needs no begin
}

// chainBegin returns the beginning of the statement or argument at i.
func (u *unit) chainBegin(i int) int {
	j := i
	for j > 0 && i-j < 300 {
		s := u.at(j - 1)
		if s == ")" || s == "]" || s == "}" && u.at(j) == "." {
			if u.opener(j-1) < 0 {
				return j
			}
			j = u.opener(j - 1)
			continue
		}
		if oneOf(s, ";", "{", "}", "(", ",", "=>", "=") || u.lang.shape == ends && u.tok[j].First && u.at(j) != "." {
			return j
		}
		j--
	}
	return j
}

// expectsFailure reports whether a call expects the assertions inside it to fail.
func (u *unit) expectsFailure(i int) bool {
	if !oneOf(u.at(i), "assertThrows", "assertFailsWith", "shouldThrow", "raises", "assertRaises", "Throws") {
		return false
	}
	return anyOf(i+1, i+5, func(j int) bool {
		s := u.at(j)
		return oneOf(s, "AssertionError", "AssertionFailedError", "AssertionException", "XunitException")
	})
}

// discards reports whether the expression after i is a statement, or assigned to _.
func (u *unit) discards(i int) bool {
	return u.at(i) == "=" && u.at(i-1) == "_" || u.at(i) == ";" || u.at(i) == "{" || u.at(i) == "}"
}

// assertsWithin reports whether anything in [from, to) asserts, including calls of helpers.
func (u *unit) assertsWithin(from, to int, helpers set) bool {
	return anyOf(from, to, func(j int) bool { return u.isWord(j) && u.asserts(j, helpers) })
}

// onlyLogs reports whether a handler for failed assertions at most logs them.
func (u *unit) onlyLogs(i int) bool {
	h := u.handlerAt(i)
	if h == nil || !h.Broad && !u.namesFailure(i) {
		return false
	}
	from, to := u.handlerBody(i)
	if from < 0 {
		return false
	}
	told := 0
	for j := from; j < to; j++ {
		s := u.at(j)
		switch {
		case u.lang.throws[s] || s == "return" || s == "fail" || s == "if" || s == "=" || u.isWord(j) && u.asserts(j, nil):
			return false
		case loggingCalls()[plain(strings.TrimPrefix(s, "$"))]:
			told++
		case u.isWord(j) && u.at(j+1) == "(":
			return false
		}
	}
	return told > 0 || to-from <= 1
}

var loggingCalls = sync.OnceValue(wordSet("log warn warning error info debug print println printf puts p pp " +
	"writeline echo vardump errorlog printstacktrace eprintln getmessage tostring exception logwarning logerror " +
	"loginformation logdebug logtrace warnf infof debugf notice alert critical fprintf fprintln"))

// namesFailure reports whether a handler names the exception of assertions.
func (u *unit) namesFailure(i int) bool {
	for j := i + 1; j < min(i+10, len(u.tok)) && u.at(j) != "{" && u.at(j) != ":" && u.tok[j].Line == u.tok[i].Line; j++ {
		if w := u.at(j); strings.HasPrefix(w, "Assertion") || w == "XunitException" ||
			strings.HasPrefix(w, "Expectation") || w == "Throwable" || w == "ComparisonFailure" {
			return true
		}
	}
	return false
}

// assertsBefore reports whether the code before the handler at i asserts without a call of fail, and
// whether it begins with a try.
func (u *unit) assertsBefore(i, from int) (asserted, try bool) {
	for j := i - 1; j > max(from, i-400); j-- {
		s := u.at(j)
		if s == "try" || s == "begin" {
			return asserted, true
		}
		if u.isWord(j) && (s == "fail" || s == "Fail" || s == "flunk") {
			return false, false
		}
		asserted = asserted || u.isWord(j) && u.asserts(j, nil)
	}
	return asserted, false
}
