package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// handlerAt returns the handler that begins at i; nil for none.
func (u *unit) handlerAt(i int) *handler {
	h := &handler{Line: u.line(i)}
	if u.lang.shape == braces {
		return u.catchAt(i, h)
	}
	from, to := u.handlerBody(i)
	switch {
	case u.lang.shape == indents:
		h.Broad = from == i+2 || u.at(i+1) == "Exception" || u.at(i+1) == "BaseException" || u.at(i+1) == "AssertionError"
		h.S = u.text(i, min(to, i+12))
	case from < 0: // value rescue nil
		h.Broad, h.Dropped, h.S = true, u.emptyResult(i+1), u.text(i, u.lineEnd(i))
		return h
	default:
		h.Broad = from-i <= 1 || u.at(i+1) == "=>" || u.at(i+1) == "StandardError" || u.at(i+1) == "Exception"
		h.S = u.text(i, min(to+1, len(u.tok), i+12))
	}
	h.Dropped, h.Body = u.dropped(from, to), u.mixed(1, from, to)
	return h
}

// catchAt reads a catch block, or the method catch.
func (u *unit) catchAt(i int, h *handler) *handler {
	j := i + 1
	h.Broad = true
	if u.at(i-1) == "." {
		if u.at(j) != "(" || u.lang.catches == nil {
			return nil
		}
		u.lang.catches(u, h, i)
		return h
	}
	if u.at(j) == "(" {
		for k := j; k < u.closer(j); k++ {
			if w := u.at(k); u.isWord(k) && strings.HasSuffix(w, "Exception") && w != "Exception" || w == ":" {
				h.Broad = u.at(k+1) == "any" || u.at(k+1) == "unknown" || u.at(k+1) == "Exception" || u.at(k+1) == "Throwable"
			}
		}
		j = u.closer(j)
	}
	if u.at(j) == "when" && u.at(j+1) == "(" {
		j = u.closer(j + 1)
	}
	if u.at(j) != "{" {
		return nil
	}
	end := u.closer(j)
	h.S = u.text(i, min(end, i+14))
	h.Dropped, h.Body = u.dropped(j+1, end-1), u.mixed(1, j, end)
	return h
}

// dropped reports whether a handler ignores its error.
func (u *unit) dropped(from, to int) bool {
	if to = u.trimmed(from, to); from >= to {
		return true
	}
	if to-from == 1 {
		s := u.at(from)
		return oneOf(s, "pass", "nil", "null", "return", "continue", "...", "false", "true")
	}
	return u.at(from) == "return" && to-from <= 3 && (u.emptyResult(from+1) || strings.EqualFold(u.at(from+1), "true"))
}

// handlerBody returns the body of the handler at i; -1 when unknown.
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
		return from, u.rescueEnd(from)
	}
	j := i + 1
	if u.at(j) == "(" {
		j = u.closer(j)
	}
	if u.at(j) != "{" || u.at(i-1) == "." {
		return -1, -1
	}
	return j + 1, max(j+1, u.closer(j)-1) // nothing may follow the bracket
}

// guarded returns the code between a try and its handler at i; empty when unknown.
func (u *unit) guarded(i int) (from, to int) {
	if u.at(i-1) == "." { // a promise
		for from = i - 1; from > max(0, i-maxBlock) && u.at(from-1) != ";" && u.at(from-1) != "{" &&
			!(u.tok[from].First && u.at(from) != "."); from-- {
			if u.kindAt(from) == lex.Op && u.at(from) == ")" && u.opener(from) > 0 {
				from = u.opener(from)
			}
		}
		return from, i
	}
	switch u.lang.shape {
	case braces:
		if u.at(i-1) == "}" && u.opener(i-1) > 0 {
			return u.opener(i - 1), i - 1
		}
		return i, i
	case indents, ends:
	}
	for j := i - 1; j > max(0, i-maxBlock); j-- {
		if s := u.at(j); u.tok[j].First && u.tok[j].Col <= u.tok[i].Col && (s == "try" || s == "begin" || s == "def") {
			return j + 1, i
		}
	}
	return i, i
}

// cleansUp reports whether the handler at i guards a single call that closes or removes something.
func (u *unit) cleansUp(i int) bool {
	calls, cleans := 0, false
	for j := i - 1; j > max(0, i-20); j-- {
		switch {
		case u.at(j) == "try" || u.at(j) == "begin":
			return calls == 1 && cleans
		case u.isWord(j) && u.at(j+1) == "(" || u.isWord(j) && u.lang.shape == ends && u.at(j-1) == "." && u.at(j+1) != ".":
			calls++
			cleans = cleanNames()[u.at(j)]
		case u.at(j) == "=" || u.at(j) == "return":
			return false
		}
	}
	return false
}

var cleanNames = sync.OnceValue(wordSet("close Close unlink rmtree rmdir kill terminate shutdown disconnect " +
	"dispose Dispose release destroy unref"))

// fails reports whether anything in [from, to) throws.
func (u *unit) fails(from, to int) bool {
	return anyOf(from, min(to, len(u.tok)), func(j int) bool {
		return u.lang.throws[u.at(j)] || u.at(j) == "error" && u.at(j+1) == "("
	})
}

// expectsAbsence reports whether the handler at i is for an expected absence, end or cancellation.
func (u *unit) expectsAbsence(i int) bool {
	for j := i + 1; j < min(i+14, len(u.tok)) && u.at(j) != "{" && u.tok[j].Line == u.tok[i].Line; j++ {
		if u.isWord(j) && absences().MatchString(u.at(j)) {
			return true
		}
	}
	return false
}

var absences = lazyregexp.New(`(?i)not_?found|no_?such|noent|missing|notexist|doesnotexist|lookup|` +
	`stopiteration|import_?error|key_?error|index_?error|attribute_?error|name_?error|cancel|interrupt|abort|timeout|` +
	`closed|exists|unicode|unsupported|notimplemented|noclassdef|eof|brokenpipe|connectionreset`)

// passesOn reports whether the handler at i throws, and whether it only prints or constructs.
func (u *unit) passesOn(i int) (rethrows, plainly bool) {
	from, to := u.handling(i)
	if from < 0 {
		return false, false
	}
	gives := u.lastGives(from, to)
	plainly = true
	for j := from; j < min(to, len(u.tok)); j++ {
		s := u.at(j)
		if !u.isWord(j) {
			continue
		}
		rethrows = rethrows || u.lang.throws[s] || u.exits(j) ||
			s == "return" && u.makesFailure(j+1, min(u.statementEnd(j), to))
		if u.at(j+1) == "(" && u.at(j-1) != "new" && s != "new" && s != "exit" && !loggingCalls()[plain(s)] &&
			!emptyMakers()[plain(s)] && !(gives && u.at(j-1) == "." && !failingCalls()[plain(s)]) {
			plainly = false
		}
	}
	return rethrows, plainly
}

// makesFailure reports whether [from, to) calls a function that makes a value for a failure:
// Result.error(err), Either.left(err), new ErrorResponse(err).
func (u *unit) makesFailure(from, to int) bool {
	failure := false
	for j := from; j < to; j++ {
		s := strings.ToLower(u.at(j))
		switch {
		case s == "(":
			return failure
		case s == "console" || strings.HasPrefix(s, "log"):
			return false
		case u.isWord(j):
			failure = failure || s == "left" || failureWord(s)
		}
	}
	return false
}

// lastGives reports whether a block ends by returning a value that it constructs.
func (u *unit) lastGives(from, to int) bool {
	for j := from; j < min(to, len(u.tok)); j++ {
		if u.at(j) == "return" && u.isWord(j) {
			s := u.at(j + 1)
			return s == "new" || s == "[" || s == "{" || u.kindAt(j+1) == lex.Number || u.kindAt(j+1) == lex.Text ||
				u.isWord(j+1) && u.at(j+2) != "("
		}
	}
	return false
}

// failingCalls are names of calls that end the program or pass an error on.
var failingCalls = sync.OnceValue(wordSet("fail throw raise abort exit reject error onerror next panic die " +
	"rethrow propagate seterror adderror failure"))

var emptyMakers = sync.OnceValue(wordSet("emptylist emptymap emptyset empty listof mapof setof of dict list set " +
	"array object"))

// readOutcome notes the effects of the handler at i.
func (u *unit) readOutcome(h *handler, i int) {
	from, to := u.handling(i)
	if from < 0 {
		return
	}
	to = min(to, len(u.tok))
	h.Does, h.Told = u.once(appendTelling, u.tok[from:to]), u.readTold(from, to)
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

// handling returns the body of a handler, or the arguments of a promise's catch.
func (u *unit) handling(i int) (from, to int) {
	if u.at(i-1) == "." && u.at(i+1) == "(" {
		return i + 2, u.closer(i+1) - 1
	}
	return u.handlerBody(i)
}
