package anthropic

import (
	"net/http"
	"strings"

	"github.com/perdure/perdure/model"
)

// hint returns what the user can do about a refusal.
func (m *Model) hint(kind model.Kind, fault model.Fault) string {
	text := strings.ToLower(fault.Message)
	switch kind {
	case model.KindAuth, model.KindNotFound, model.KindQuota:
		return m.caller.End.Hint(kind, fault)
	case model.KindRateLimit:
		return "the provider limits requests: use less concurrency, or wait"
	case model.KindUnavailable:
		if fault.Type == "overloaded_error" {
			return "the provider is overloaded: wait, or name a second model after a comma (--model a,b)"
		}
	case model.KindTooLong:
		return model.HintTooLong
	case model.KindInvalid:
		if strings.Contains(text, "max_tokens") {
			return "the model cannot write answers of this length: set a lower limit for answers"
		}
	case model.KindRefused, model.KindCut, model.KindTimeout, model.KindEmpty, model.KindTooLarge, model.KindFailed,
		model.KindCanceled:
		// No status means these.
	}
	return ""
}

// serverErrorKind returns the kind of an error that came in place of an answer, after a
// status of 200. Asking again is right unless it says otherwise.
func serverErrorKind(fault model.Fault) model.Kind {
	switch fault.Type {
	case "overloaded_error", "api_error", "timeout_error":
		return model.KindUnavailable
	case "rate_limit_error":
		return model.KindRateLimit
	case "invalid_request_error", "request_too_large", "billing_error":
		return fault.Kind(http.StatusBadRequest)
	case "authentication_error", "permission_error":
		return model.KindAuth
	case "not_found_error":
		return model.KindNotFound
	}
	if kind := fault.Kind(http.StatusBadRequest); kind != model.KindInvalid {
		return kind
	}
	return model.KindCut
}
