package source

import (
	"strings"
	"sync"
)

// losesFailure tells whether the word at i is why failures of assertions go
// nowhere, though no handler drops them: one that only prints them, a call that
// catches what its block throws, a promise that nobody waits for.
func (u *unit) losesFailure(i, from int) bool {
	s := u.at(i)
	switch u.lang.Name {
	case "javascript", "typescript":
		if s == "expect" && u.unawaited(i) {
			return true
		}
	case "csharp":
		if (s == "ThrowsAsync" || s == "ThrowsAnyAsync") && u.at(i-2) == "Assert" && u.at(i-3) == "=" && u.at(i-4) == "_" {
			return true // NUnit's waits by itself, so that a bare call is none
		}
	case "kotlin":
		return s == "runCatching" && u.at(i+1) == "{" && u.statementBegins(i) && u.at(u.closer(i+1)) != "." && u.assertsWithin(i+1, u.closer(i+1))
	case "rust":
		return s == "catch_unwind" && u.at(i+1) == "(" && u.discarded(i) && u.assertsWithin(i+1, u.closer(i+1))
	}
	return u.lang.handlers[s] && u.onlyTells(i) && u.guardsAsserts(i, from)
}

// unawaited tells of expect(...).rejects and .resolves of which nobody waits for
// the end: a statement that begins with it, or with void.
func (u *unit) unawaited(i int) bool {
	end := u.closer(i + 1)
	if u.at(i+1) != "(" || u.at(end) != "." || u.at(end+1) != "rejects" && u.at(end+1) != "resolves" {
		return false
	}
	return u.at(i-1) == "void" || u.tok[i].First && (u.at(i-1) == ";" || u.at(i-1) == "{" || u.at(i-1) == "}")
}

// discards tells whether what begins after i is given to _, or is a statement.
func (u *unit) discards(i int) bool {
	return u.at(i) == "=" && u.at(i-1) == "_" || u.at(i) == ";" || u.at(i) == "{" || u.at(i) == "}"
}

// discarded tells of let _ = std::panic::catch_unwind(...).
func (u *unit) discarded(i int) bool {
	for i > 1 && u.at(i-1) == "::" {
		i -= 2
	}
	return u.discards(i - 1)
}

func (u *unit) assertsWithin(from, to int) bool {
	for j := from; j < to; j++ {
		if u.isWord(j) && u.asserts(j, nil) {
			return true
		}
	}
	return false
}

// onlyTells tells of a handler for failures of assertions that prints them at most.
func (u *unit) onlyTells(i int) bool {
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
		case tellingCalls()[plain(strings.TrimPrefix(s, "$"))]:
			told++
		case u.isWord(j) && u.at(j+1) == "(":
			return false
		}
	}
	return told > 0 || to-from <= 1
}

var tellingCalls = sync.OnceValue(func() set {
	return words("log warn warning error info debug print println printf puts p pp writeline echo vardump errorlog printstacktrace eprintln getmessage tostring")
})

// namesFailure tells whether a handler names what assertions throw.
func (u *unit) namesFailure(i int) bool {
	for j := i + 1; j < min(i+10, len(u.tok)) && u.at(j) != "{" && u.at(j) != ":" && u.tok[j].Line == u.tok[i].Line; j++ {
		if w := u.at(j); strings.HasPrefix(w, "Assertion") || w == "XunitException" || strings.HasPrefix(w, "Expectation") || w == "Throwable" || w == "ComparisonFailure" {
			return true
		}
	}
	return false
}

// handlerBody is what stands in the handler at i; -1 when that cannot be told.
func (u *unit) handlerBody(i int) (from, to int) {
	switch u.lang.shape {
	case indents:
		colon := u.colon(i+1, len(u.tok))
		return colon, u.indentedEnd(i, colon, len(u.tok))
	case ends:
		if !u.tok[i].First {
			return -1, -1
		}
		from = u.lineEnd(i)
		for to = from; to < min(len(u.tok), from+maxBlock) && u.at(to) != "end" && u.at(to) != "ensure" && u.at(to) != "rescue"; {
			to++
		}
		return from, to
	}
	j := i + 1
	if u.at(j) == "(" {
		j = u.closer(j)
	}
	if u.at(j) != "{" || u.at(i-1) == "." {
		return -1, -1
	}
	return j + 1, u.closer(j) - 1
}

// guardsAsserts tells whether what the handler at i guards asserts, and does not
// end with a failure that says that an error was expected. A block of Ruby needs no
// begin.
func (u *unit) guardsAsserts(i, from int) bool {
	asserted := false
	for j := i - 1; j > max(from, i-400); j-- {
		s := u.at(j)
		if s == "try" || s == "begin" {
			return asserted
		}
		if !u.isWord(j) {
			continue
		}
		if s == "fail" || s == "Fail" || s == "flunk" {
			return false
		}
		asserted = asserted || u.asserts(j, nil)
	}
	return asserted && u.lang.shape == ends
}
