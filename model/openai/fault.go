package openai

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/perdure/perdure/model"
)

// hint says what a person can do about a refusal.
func (m *Model) hint(kind model.Kind, fault model.Fault) string {
	switch kind {
	case model.KindAuth, model.KindNotFound, model.KindQuota:
		return m.caller.End.Hint(kind, fault)
	case model.KindRateLimit:
		return "the provider limits requests: use less concurrency, or wait"
	case model.KindTooLong:
		return model.HintTooLong
	case model.KindInvalid, model.KindUnavailable: // there is nothing else to do, or it is tried again
	case model.KindRefused, model.KindCut, model.KindTimeout, model.KindEmpty, model.KindTooLarge, model.KindFailed,
		model.KindCanceled:
		// No status means these.
	}
	return ""
}

// serverErrorKind returns the kind of an error that came in place of an answer, after a
// status of 200. Asking again is right unless it says otherwise.
func serverErrorKind(fault model.Fault) model.Kind {
	if status, err := strconv.Atoi(fault.Code); err == nil && status >= http.StatusBadRequest && status < 600 {
		return fault.Kind(status)
	}
	words := fault.Type + " " + fault.Code
	if strings.Contains(words, "rate_limit") {
		return model.KindRateLimit
	}
	bad := fault.Kind(http.StatusBadRequest)
	if bad != model.KindInvalid || strings.Contains(words, "invalid_request") {
		return bad
	}
	return model.KindCut
}
