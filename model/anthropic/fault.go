package anthropic

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/perdure/perdure/model"
)

// hint returns what the user can do about a refusal.
func (m *Model) hint(kind model.Kind, fault model.Fault) string {
	text := strings.ToLower(fault.Message)
	switch kind {
	case model.KindAuth:
		if m.cfg.APIKey == "" {
			return "this server needs a key: set ANTHROPIC_API_KEY"
		}
		return "check ANTHROPIC_API_KEY: the key is wrong, expired, or may not use this model"
	case model.KindNotFound:
		return fmt.Sprintf("check the model's name %q and the base URL, which has no /v1 at its end (ANTHROPIC_BASE_URL)",
			m.cfg.Model)
	case model.KindRateLimit:
		return "the provider limits requests: use less concurrency, or wait"
	case model.KindUnavailable:
		if fault.Type == "overloaded_error" {
			return "the provider is overloaded: wait, or name a second model after a comma (--model a,b)"
		}
	case model.KindTooLong:
		return model.HintTooLong
	case model.KindInvalid:
		switch {
		case strings.Contains(text, "credit balance"):
			return "the account has no credit left: check the provider's billing page"
		case strings.Contains(text, "max_tokens"):
			return "the model cannot write answers of this length: set a lower limit for answers"
		}
	case model.KindCut, model.KindTimeout, model.KindEmpty, model.KindTooLarge, model.KindFailed, model.KindCanceled:
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
	return model.KindCut
}
