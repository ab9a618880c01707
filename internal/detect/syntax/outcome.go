package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// readOutcome notes the effects of the handler at i.
func (u *unit) readOutcome(h *handler, i int) {
	from, to := u.handling(i)
	if from < 0 {
		return
	}
	to = min(to, len(u.tok))
	h.Fails = h.Rethrows
	for j := from; j < to && !h.Fails; j++ {
		h.Fails = u.isWord(j) && (u.exits(j) || u.at(j) == "return" && u.failingValue(j+1, min(u.statementEnd(j), to)))
	}
	for j := from; j < to; j++ {
		if s := u.at(j); u.kindAt(j) == lex.Op && s == "(" {
			j = u.closer(j) - 1
		} else {
			h.Sets = h.Sets || u.kindAt(j) == lex.Op && s == "="
		}
	}
	h.Called, h.Does, h.Told = u.calledIn(from, to), u.once(appendTelling, u.tok[from:to]), u.readTold(from, to)
	h.Hands = u.handsError(i, from, to)
	begin, end := u.lastValue(from, to)
	tryFrom, tryTo := u.guarded(i)
	was, wasEnd := u.lastValue(tryFrom, tryTo)
	if was < 0 || emptyNames()[u.at(was)] {
		return
	}
	same := func(begin, end int) bool {
		return begin >= 0 && wasEnd-was == end-begin && u.mixed(1, was, wasEnd) == u.mixed(1, begin, end)
	}
	h.Alike = same(begin, end)
	for j := from; j < to && !h.Alike; j++ { // under a condition
		h.Alike = u.at(j) == "return" && u.isWord(j) && same(j+1, min(j+1+wasEnd-was, to)) && u.statementEnd(j) <= j+2+
			wasEnd-was
	}
}

// calledIn returns the names called in [from, to) other than conversions and logging, each once.
func (u *unit) calledIn(from, to int) multiset.Hashes {
	u.scratch = u.scratch[:0]
	for i := from; i < to; i++ {
		if u.called(i) && !harmless(u.at(i)) {
			u.scratch = append(u.scratch, u.tok[i].Hash)
		}
	}
	return u.sortedOnce()
}

// handsError reports whether the handler at i with the body [from, to) passes its error to a call
// other than logging or formatting.
func (u *unit) handsError(i, from, to int) bool {
	name := u.errorName(i, from)
	if name == "" {
		return false
	}
	for j := from; j < to; j++ {
		if u.at(j) != name || !u.isWord(j) {
			continue
		}
		for k := j - 1; k >= from; k-- {
			s := u.at(k)
			if u.kindAt(k) != lex.Op || s == ")" && u.opener(k) >= from {
				if s == ")" {
					k = u.opener(k)
				}
				continue
			}
			if s == ";" || s == "{" || s == "}" {
				break
			}
			if s == "(" && u.isWord(k-1) && k > from {
				if w := u.at(k - 1); (!harmless(w) || collects()[plain(w)]) && w != "captureException" && w != "if" &&
					w != "while" && w != "switch" {
					return true
				}
			}
		}
	}
	return false
}

// collects are calls that store their argument.
var collects = sync.OnceValue(wordSet("append push pushback add addall put insert set"))

// errorName returns the error variable of the handler at i with a body at from; empty for none.
func (u *unit) errorName(i, from int) string {
	if u.at(i+1) == "(" && u.isWord(i+2) && u.at(i+3) == ":" { // catch (e: E)
		return u.at(i + 2)
	}
	for j := min(from, i+14) - 1; j > i; j-- {
		if u.isWord(j) && !connectives()[u.at(j)] {
			return u.at(j)
		}
	}
	if u.at(i-1) == "." { // (err) => ...
		for j := i + 2; j < i+5; j++ {
			if u.isWord(j) && (u.at(j+1) == "=>" || u.at(j+1) == ")" && u.at(j+2) == "=>") {
				return u.at(j)
			}
		}
	}
	return ""
}

// lastValue returns the short constant that is the result of a block; -1 for none.
func (u *unit) lastValue(from, to int) (begin, end int) {
	for to > from && (u.at(to-1) == ";" || u.at(to-1) == "}") {
		to--
	}
	begin = to - 1
	for begin > from && !u.tok[begin].First {
		begin--
	}
	if begin < from || begin >= to {
		return -1, -1
	}
	if u.at(begin) == "return" {
		begin++
	} else if !u.givesLast() {
		return -1, -1
	}
	if to <= begin || to-begin > maxConstant || !u.namesValue(begin, to) {
		return -1, -1
	}
	return begin, to
}

// handling returns the body of a handler, or the arguments of a promise's catch.
func (u *unit) handling(i int) (from, to int) {
	if u.at(i-1) == "." && u.at(i+1) == "(" {
		return i + 2, u.closer(i+1) - 1
	}
	return u.handlerBody(i)
}

// emptyNames are empty values.
var emptyNames = sync.OnceValue(wordSet("null nil None undefined NULL"))

// maxConstant is the maximum length in tokens of a value that is compared.
const maxConstant = 6

// givesLast reports whether the last expression of a block is its result.
func (u *unit) givesLast() bool {
	return u.lang.Name == "ruby" || u.lang.Name == "kotlin" || u.lang.Name == "rust"
}

// namesValue reports whether [from, to) is a name or a literal.
func (u *unit) namesValue(from, to int) bool {
	for j := from; j < to; j++ {
		if s := u.at(j); u.kindAt(j) == lex.Op && s != "." && s != "::" && s != "-" && s != ":" {
			return false
		}
	}
	last := u.at(to - 1)
	return to-from == 1 && (u.kindAt(from) != lex.Word || strings.EqualFold(last, "true") ||
		strings.EqualFold(last, "false") || strings.ToUpper(last) == last) ||
		to-from > 1 && (u.at(from) == ":" || u.at(from) == "-" || u.at(to-2) == "." || u.at(to-2) == "::")
}

// failingValue reports whether the value [from, to) is a failure: false, a number other than zero,
// or a name or text with a word for it.
func (u *unit) failingValue(from, to int) bool {
	for to > from && u.at(to-1) == ";" {
		to--
	}
	if to <= from || to-from > maxConstant {
		return false
	}
	if u.at(from) == "-" {
		from++
	}
	switch s := u.at(from); {
	case to-from == 1 && u.kindAt(from) == lex.Number:
		return strings.Trim(s, "0.") != ""
	case to-from == 1 && strings.EqualFold(s, "false"):
		return true
	}
	if !u.namesValue(from, to) {
		return false
	}
	return failureWord(strings.ToLower(u.at(to - 1)))
}

// failureWord reports whether a name in lower case says that something failed.
func failureWord(s string) bool {
	return containsAny(s, "fail", "err", "invalid", "reject", "denied", "unavailable")
}

// exits reports whether the word at i ends the process with an error code, or sets it.
func (u *unit) exits(i int) bool {
	switch u.at(i) {
	case "exit", "Exit", "exitProcess", "_exit":
		if u.at(i+1) == "(" {
			return u.at(i+2) != "0" && u.at(i+2) != ")"
		}
		return u.lang.shape == ends && u.at(i-1) != "." && u.kindAt(i+1) == lex.Number && u.at(i+1) != "0"
	case "exitCode", "ExitCode":
		return u.at(i+1) == "=" && u.kindAt(i+2) == lex.Number && u.at(i+2) != "0"
	}
	return false
}

// callsAny reports whether anything is called in [from, to).
func (u *unit) callsAny(from, to int) bool {
	return anyOf(from, to, func(j int) bool {
		return u.isWord(j) && u.at(j+1) == "(" || u.at(j) == "=>" || u.at(j) == "throw"
	})
}
