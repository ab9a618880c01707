package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
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

// readIgnored notes a Go call whose error only ends a loop round, or the function without an error.
func (u *unit) readIgnored(f *Function, i int, condition, body [2]int) {
	if u.lang.Name != "go" {
		return
	}
	from, to := condition[0], condition[1]
	if !u.endsRound(body[0], body[1]) &&
		!(u.plainFailure(from, to) && (u.returnsNoError(body[0], body[1]) || u.onlyAssigns(body[0], body[1]))) {
		return
	}
	for j := from; j < to; j++ {
		if strings.HasPrefix(u.at(j), "err") && u.at(j+1) == "!=" && u.at(j+2) == "nil" {
			if at := u.failedCall(i, from, to); at >= 0 && !cleanNames()[u.at(at)] {
				f.Ignored = multiset.Sum(f.Ignored, multiset.Hashes{Hash(u.at(at))})
			}
			return
		}
	}
}

// plainFailure reports whether a condition is just err != nil.
func (u *unit) plainFailure(from, to int) bool {
	return !anyOf(from, to, func(j int) bool { return u.at(j) == "&&" })
}

// endsRound reports whether a block only ends a loop round.
func (u *unit) endsRound(from, to int) bool {
	return to-from <= 2 && (u.at(from) == "continue" || u.at(from) == "break")
}

// returnsNoError reports whether a Go block returns a nil error.
func (u *unit) returnsNoError(from, to int) bool {
	for j := from; j < to; j++ {
		if u.at(j) == "return" && u.isWord(j) {
			end := min(u.statementEnd(j), to)
			return end-j > 3 && u.at(end-1) == "nil" && u.at(end-2) == "," && !u.fails(from, to)
		}
	}
	return false
}

// onlyAssigns reports whether a Go block only assigns variables.
func (u *unit) onlyAssigns(from, to int) bool {
	return to-from >= 3 && u.isWord(from) && u.at(from+1) == "=" && !anyOf(from, to, func(j int) bool {
		s := u.at(j)
		return u.isWord(j) && (oneOf(s, "return", "if", "for", "goto") || strings.HasPrefix(strings.ToLower(s), "err"))
	})
}

// countTries counts where a Rust or Go function propagates errors and where it does not.
func (u *unit) countTries(f *Function, d *decl) {
	if u.lang.Name != "rust" {
		return
	}
	for j := d.body; j < d.end; j++ {
		switch s := u.at(j); {
		case s == "?" && (u.at(j-1) == ")" || u.isWord(j-1)):
			f.Tries++
		case s == "map_err" && u.at(j+1) == "(" && u.at(u.closer(j+1)) != "?":
			f.Tries++ // it is returned
		case s == "Ok" && u.at(j+1) == "(" && u.at(u.closer(j+1)) != "=>" && u.at(u.closer(j+1)) != "=":
		case s == "unwrap_or_default", s == "unwrap_or_else" && u.replacesError(j+1), s == "ok" && u.at(j-1) == "." &&
			u.at(j+3) == ";",
			s == "_" && u.at(j-1) == "let" && u.at(j+1) == "=", s == "let" && u.at(j+1) == "Ok" && u.at(j+2) == "(" &&
				u.skipsFailure(j), s == "Err" && u.at(j+2) == "_" && (u.at(j+4) == "=>" || u.at(j+4) == "if" && u.armGoesOn(j+4)):
			f.Swallows++
		}
	}
}

// armGoesOn reports whether the arm of a match whose condition begins at i only continues.
func (u *unit) armGoesOn(i int) bool {
	for j := i; j < min(i+maxTypes, len(u.tok)); j++ {
		if u.at(j) == "=>" {
			s, next := u.at(j+1), u.at(j+2)
			return s == "continue" || s == "{" && (next == "}" || next == "continue") || s == "(" && next == ")" ||
				s == "None" || s == "Ok"
		}
	}
	return false
}

// skipsFailure reports whether the let Ok(..) of Rust at i ignores a failure: an if without an
// else, or an else that continues.
func (u *unit) skipsFailure(i int) bool {
	for j := i + 2; j < min(i+80, len(u.tok)); j++ {
		switch s := u.at(j); {
		case u.kindAt(j) == lex.Op && (s == "(" || s == "["):
			j = u.closer(j) - 1
		case s == "else" && u.at(j+1) == "{":
			return u.goesOnElse(j)
		case s == "{" && u.at(i-1) == "if":
			end := u.closer(j)
			return u.at(end) != "else" || u.at(end+1) == "{" && u.goesOnElse(end)
		case s == ";":
			return false
		}
	}
	return false
}

// goesOnElse reports whether the short block of the else at i never fails.
func (u *unit) goesOnElse(i int) bool {
	end := u.closer(i + 1)
	return !u.fails(i+2, end) && end-i <= 6
}

// replacesError reports whether the Rust closure in the parentheses at open replaces an error by a
// value, and does not end the process.
func (u *unit) replacesError(open int) bool {
	if u.at(open) != "(" || u.at(open+1) != "|" {
		return false
	}
	return !anyOf(open+2, u.closer(open), func(j int) bool {
		return oneOf(u.at(j), "panic", "exit", "return", "unreachable", "abort")
	})
}
