package openai

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/perdure/perdure/model"
)

// hint says what a person can do about a refusal.
func (m *Model) hint(kind model.Kind, fault model.Fault) string {
	switch kind {
	case model.KindAuth:
		if m.cfg.APIKey == "" {
			return "this server needs a key: set OPENAI_API_KEY"
		}
		return "check OPENAI_API_KEY: the key is wrong, expired, or may not use this model"
	case model.KindNotFound:
		return fmt.Sprintf("check the model's name %q and the base URL, which mostly ends in /v1 (OPENAI_BASE_URL)",
			m.cfg.Model)
	case model.KindRateLimit:
		if strings.Contains(fault.Code+fault.Type, "quota") {
			return "the account's quota is used up: check the provider's billing page"
		}
		return "the provider limits requests: use less concurrency, or wait"
	case model.KindTooLong:
		return model.HintTooLong
	case model.KindInvalid, model.KindUnavailable: // there is nothing else to do, or it is tried again
	case model.KindCut, model.KindTimeout, model.KindEmpty, model.KindTooLarge, model.KindFailed, model.KindCanceled:
		// No status means these.
	}
	return ""
}

// serverErrorKind returns the kind of an error that came in place of an answer, after a
// status of 200. Asking again is right unless it says otherwise.
func serverErrorKind(fault model.Fault) model.Kind {
	if status, err := strconv.Atoi(fault.Code); err == nil && status >= http.StatusBadRequest {
		return fault.Kind(status)
	}
	words := fault.Type + " " + fault.Code
	if strings.Contains(words, "rate_limit") {
		return model.KindRateLimit
	}
	bad := fault.Kind(http.StatusBadRequest)
	if bad == model.KindTooLong || strings.Contains(words, "invalid_request") {
		return bad
	}
	return model.KindCut
}
