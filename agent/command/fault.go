package command

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/text/resettime"
	"github.com/perdure/perdure/model"
)

// maxWait is the longest wait that is accepted; longer ones are taken for errors.
const maxWait = 60 * 24 * time.Hour

// maxMessage is the longest message of an error; agents print whole bodies.
const maxMessage = 600

// sign is how a kind of failure is recognised in an agent's words: any of the
// messages, in lower case.
type sign struct {
	kind  agent.Kind
	texts []string
}

// signs are asked in this order: what is more certain comes first.
func signs() []sign {
	return []sign{
		{agent.KindSession, []string{
			"no conversation found with session id", "requires a valid session id", "no rollout found", "thread/resume failed",
			"session not found", "invalid session identifier", "error resuming session", "no session found",
		}},
		{agent.KindOverflow, []string{
			"prompt is too long", "prompt_too_long", "context window", "context length", "context_length_exceeded",
			"maximum context",
			"contextoverflow", "context_window_exceeded", "input token count", "request_too_large", "ran out of room",
		}},
		{agent.KindLimit, []string{
			"max_output_tokens", "output token maximum", "error_max_turns", "error_max_budget", "maximum number of turns",
			"max session turns", "reached max turns", "maxsessionturns",
		}},
		{agent.KindQuota, []string{
			"insufficient_quota", "quota exceeded", "exceeded your current quota", "credit balance", "billing",
			"payment required",
			"out of credits", "insufficient credit", "exhausted your daily quota", "terminalquotaerror",
			"out of extra usage", "extra usage is required", "organization has been disabled",
			"organization has disabled", "organisation has been disabled",
		}},
		{agent.KindRateLimit, []string{
			"usage limit", "limit reached", "hit your limit", "rate limit", "rate_limit", "too many requests",
			"resource_exhausted",
			"resource has been exhausted", "ratelimit", "slow down", "status: 429", "status 429",
		}},
		{agent.KindAuth, []string{
			"authentication", "unauthorized", "invalid api key", "invalid_api_key", "incorrect api key", "api key not valid",
			"not logged in",
			"/login", "login required", "please log in", "auth method", "permission_denied", "oauth token", "token has expired",
		}},
		{agent.KindInvalid, []string{
			"model_not_found", "model not found", "modelnotfound", "issue with the selected model",
			"does not exist or you do not have access",
			"unknown model", "no such model", "model is not supported", "unknown option", "unexpected argument",
			"unknown argument",
			"unrecognized subcommand", "cannot be used with root",
		}},
		{agent.KindUnavailable, []string{
			"overloaded", "at capacity", "service unavailable", "bad gateway", "gateway timeout", "internal server error",
			"server_error",
			"econnrefused", "econnreset", "enotfound", "etimedout", "connection error", "connection refused",
			"stream disconnected",
			"fetch failed", "network error", "unable to connect", "error sending request", "could not resolve host",
			"request timed out",
		}},
	}
}

// classify says what kind of failure an agent speaks of. Status is that of its
// provider's answer, 0 when unknown.
func classify(text string, status int, now time.Time) *agent.Error {
	lower := strings.ToLower(text)
	e := &agent.Error{Kind: kindOf(lower, status), Msg: message(text), Until: resettime.In(text, now)}
	if e.Kind == agent.KindQuota && !e.Until.IsZero() {
		e.Kind = agent.KindRateLimit // a quota that comes back by itself
	}
	switch e.Kind {
	case agent.KindRateLimit, agent.KindUnavailable:
	case agent.KindAuth:
		e.Until, e.Hint = time.Time{}, "log in with the agent itself, or give it a key in its environment"
	case agent.KindInvalid:
		e.Until, e.Hint = time.Time{}, "check the name of the model and the options of the agent"
	case agent.KindQuota:
		e.Until, e.Hint = time.Time{}, "waiting does not help: check plan and billing with the agent's provider, or use "+
			"another agent"
	default:
		e.Until = time.Time{}
	}
	return e
}

func kindOf(lower string, status int) agent.Kind {
	said := agent.KindFailed
	list := signs()
	if i := slices.IndexFunc(list, func(s sign) bool { return containsAny(lower, s.texts) }); i >= 0 {
		said = list[i].kind
	} else if reUsed().MatchString(lower) {
		said = agent.KindRateLimit
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if said == agent.KindQuota || said == agent.KindRateLimit {
			return said
		}
		return agent.KindAuth
	case status == http.StatusPaymentRequired:
		return agent.KindQuota
	case status == http.StatusRequestEntityTooLarge:
		return agent.KindOverflow
	case status == http.StatusTooManyRequests:
		if said == agent.KindQuota {
			return said
		}
		return agent.KindRateLimit
	case status >= http.StatusInternalServerError:
		return agent.KindUnavailable
	case said == agent.KindFailed && mentionsModel(lower):
		return agent.KindInvalid
	case said == agent.KindFailed && status == http.StatusNotFound:
		return agent.KindInvalid
	}
	return said
}

// The words of limits of subscriptions: "You've hit your session limit", "your weekly Opus limit", "Opus
// weekly limit reached", "Claude AI usage limit reached".
const (
	usedLimit = `(?:you(?:['’]ve| have)\s+(?:hit|reached|exceeded)\s+your\s+(?:[\w.-]+\s+){0,4}limit\b` +
		`|(?:claude\s+(?:ai\s+)?)?(?:session|weekly|monthly|daily|usage|opus|sonnet|\d+[- ]hour)\s+` +
		`(?:(?:session|weekly|usage)\s+)?limit\s+(?:has been\s+)?reached\b)`
	usedExtra = `you(?:['’]re| are)\s+out\s+of\s+extra\s+usage\b`
)

var (
	reUsed = lazyregexp.New(usedLimit)
	// reLimitLine is a line that says nothing else: other programs speak of limits, too.
	reLimitLine = lazyregexp.New(`(?i)^\W*(?:error:\s*)?(?:` + usedLimit + `|` + usedExtra + `)[^{}]{0,160}$`)
)

// maxLimitLines is how many of the last lines of a plain program are searched for a limit.
const maxLimitLines = 5

// limitLine returns the line with which a vendor's agent reports a used-up limit, of the last lines of
// its output; "" without one.
func limitLine(lines []string) string {
	for _, line := range slices.Backward(lines[max(0, len(lines)-maxLimitLines):]) {
		if line = strings.TrimSpace(stripColour(line)); reLimitLine().MatchString(line) {
			return line
		}
	}
	return ""
}

// mentionsModel recognises "The model `x` does not exist" and the like.
func mentionsModel(lower string) bool {
	return strings.Contains(lower, "model") &&
		containsAny(lower, []string{"does not exist", "not found", "not supported", "no access"})
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// message makes an agent's words fit for an error.
func message(text string) string {
	text, _ = model.Clean(stripColour(text))
	return model.Redact(clip.Bytes(clip.OneLine(text), maxMessage))
}

// stripColour takes out the escape sequences of colours.
func stripColour(text string) string {
	for {
		before, rest, ok := strings.Cut(text, "\x1b[")
		if !ok {
			return text
		}
		end := strings.IndexFunc(rest, func(c rune) bool { return c >= '@' && c <= '~' })
		text = before + rest[end+1:]
	}
}
