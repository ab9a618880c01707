package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

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
