package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

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

// givesBack are checks that return their argument, so that they may be part of an expression.
var givesBack = sync.OnceValue(wordSet("requireNonNull checkNotNull requireNotNull checkNotNullParameter"))

// refusals are names of responses that reject a request.
var refusals = sync.OnceValue(wordSet("StatusUnauthorized StatusForbidden StatusBadRequest StatusNotFound " +
	"StatusUnprocessableEntity StatusConflict StatusTooManyRequests StatusMethodNotAllowed UNAUTHORIZED FORBIDDEN " +
	"BAD_REQUEST UNPROCESSABLE_ENTITY HTTP_400_BAD_REQUEST HTTP_401_UNAUTHORIZED HTTP_403_FORBIDDEN Unauthorized " +
	"Forbid BadRequest"))

// zeroResult reports whether a return at i has the value 0, "" or default.
func (u *unit) zeroResult(i int) bool {
	if next := u.at(i + 1); next != ";" && next != "}" && i+1 < len(u.tok) && !u.tok[i+1].First {
		return false
	}
	switch s := u.at(i); u.kindAt(i) {
	case lex.Number:
		return strings.Trim(s, "0.") == ""
	case lex.Text:
		return lex.Unquote(s) == ""
	default:
		return s == "default"
	}
}
