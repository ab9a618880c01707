package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

// hint says what a person can do about a refusal.
func (m *Model) hint(kind model.Kind, said model.Fault) string {
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
		if strings.Contains(said.Code+said.Type, "quota") {
			return "the account's quota is used up: look at the provider's billing page"
		}
		return "the provider limits requests: use less concurrency, or wait"
	case model.KindTooLong:
		return model.HintTooLong
	case model.KindInvalid, model.KindUnavailable: // there is nothing else to do, or it is tried again
	case model.KindCut, model.KindTimeout, model.KindEmpty, model.KindTooLarge, model.KindFailed, model.KindCanceled:
		// No status stands for these.
	}
	return ""
}

// readError says why a reply that began is no answer.
func (m *Model) readError(ctx context.Context, a *answer, err error) *model.Error {
	var e *model.Error
	var said *saidError
	switch {
	case ctx.Err() != nil:
		return model.Canceled(ctx)
	case errors.As(err, &e):
		return e
	case errors.As(err, &said):
		return m.streamError(said.data)
	case errors.Is(err, errNoChoice) || errors.Is(err, wire.ErrNotAnswer):
		return m.end.Unexpected("OpenAI", err)
	}
	return m.end.BrokeOff(a.text.Len(), err)
}

// streamError is an error that came in place of an answer, after a status of
// 200. Asking again is right unless it says otherwise.
func (m *Model) streamError(data []byte) *model.Error {
	said, ok := model.ParseFault(data)
	if !ok {
		said.Message = string(data)
	}
	kind := model.KindCut
	if status, err := strconv.Atoi(said.Code); err == nil && status >= http.StatusBadRequest {
		kind = said.Kind(status)
	} else if words := said.Type + " " + said.Code; strings.Contains(words, "rate_limit") {
		kind = model.KindRateLimit
	} else if bad := said.Kind(http.StatusBadRequest); bad == model.KindTooLong ||
		strings.Contains(words, "invalid_request") {
		kind = bad
	}
	return &model.Error{
		Kind: kind, Msg: m.end.Where() + " broke off: " + m.end.Redact(said.Text()), Hint: m.hint(kind, said),
	}
}
