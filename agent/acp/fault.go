package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/resettime"
	"github.com/perdure/perdure/model"
)

// wordsOf lists how agents describe a kind of failure.
type wordsOf struct {
	kind  agent.Kind
	words *regexp.Regexp
}

// failureWords are the words with which agents report most of their failures, in the
// order in which they are tried: messages about quotas often mention rates too. They
// are compiled at the first failure, not at every start of the program.
var failureWords = sync.OnceValue(func() []wordsOf {
	return []wordsOf{
		{agent.KindQuota, regexp.MustCompile(
			`(?i)insufficient[_ ](quota|credit)|quota (has been )?exceeded|exceeded your (current|daily|monthly) quota|` +
				`exhausted your daily quota|terminalquotaerror|billing[ _-](error|details|limit|hard|issue)|credit balance|` +
				`payment required|out of credits|out of extra usage|extra usage is required|` +
				`organi[sz]ation has (been )?disabled`)},
		{agent.KindOverflow, regexp.MustCompile(
			`(?i)context[ _](window|length)|ran out of room|contextwindowexceeded|context_exhausted|prompt is too long|` +
				`maximum context|too many tokens|exceeds the (maximum|limit).{0,30}tokens`)},
		{agent.KindRateLimit, regexp.MustCompile(
			`(?i)rate[ _-]?limit|usage[ _]limit|usageLimit|limit (has been )?reached|` +
				`(hit|reached|exceeded) your ([\w.-]+ ){0,4}limit\b|too many requests|\b429\b|resource_?exhausted`)},
		{agent.KindAuth, regexp.MustCompile(
			`(?i)unauthori[sz]ed|authentication|not logged in|log ?in (is )?required|please (log|sign) in|invalid api key|` +
				`incorrect api key|api key (is )?(missing|not (valid|found|set))|\b401\b|permission denied.{0,20}api`)},
		{agent.KindLimit, regexp.MustCompile(
			`(?i)max_output_tokens|output token maximum|max(imum number of)?[ _](session )?turns`)},
		{agent.KindInvalid, regexp.MustCompile(
			`(?i)model[ _]?not[ _]?found|(unknown|no such) model|model is not (found|supported)|issue with the selected ` +
				`model|does not exist or you do not have access`)},
		{agent.KindUnavailable, regexp.MustCompile(
			`(?i)overloaded|unavailable|bad gateway|gateway time-?out|internal server error|\b50[0234]\b|\b529\b|` +
				`econn(refused|reset)|etimedout|enotfound|fetch failed|connection (refused|reset|error|lost)|network error|` +
				`stream disconnected`)},
	}
})

// kindOfText returns the kind of failure that a message describes; empty when
// they do not say.
func kindOfText(text string) agent.Kind {
	for _, k := range failureWords() {
		if k.words.MatchString(text) {
			return k.kind
		}
	}
	return ""
}

// waitOf finds how long an agent says to wait; 0 when it does not.
func waitOf(text string) time.Duration {
	now := time.Now()
	until := resettime.In(text, now)
	if until.IsZero() {
		return 0
	}
	return until.Sub(now)
}

// kindOfWord translates the names vendors have for kinds of failures in an
// error's data; empty for those that say nothing.
func kindOfWord(word string) agent.Kind {
	switch word {
	// a plan's limits come back
	case "rate_limit", "rate_limited", "rateLimitExceeded", "usageLimitExceeded", "quota_exhausted":
		return agent.KindRateLimit
	case "overloaded", "server_error", "serverOverloaded", "transport_lost", "httpConnectionFailed",
		"responseStreamConnectionFailed", "responseStreamDisconnected", "responseTooManyFailedAttempts",
		"internalServerError":
		return agent.KindUnavailable
	case "authentication_failed", "auth_required", "unauthorized", "oauth_org_not_allowed":
		return agent.KindAuth
	case "billing_error", "insufficient_quota":
		return agent.KindQuota
	case "context_exhausted", "contextWindowExceeded", "ContextOverflowError":
		return agent.KindOverflow
	case "max_output_tokens", "budget_exhausted", "sessionBudgetExceeded":
		return agent.KindLimit
	case "model_not_found", "invalid_request":
		return agent.KindInvalid
	}
	return ""
}

// errorData is the data of an error in addition to its message.
type errorData struct {
	ErrorKind string          `json:"errorKind"`
	ErrorName string          `json:"errorName"`
	Category  string          `json:"category"`
	CodexInfo json.RawMessage `json:"codexErrorInfo"`
	Details   string          `json:"details"`
	Message   string          `json:"message"`
	More      string          `json:"additionalDetails"`
	Status    count           `json:"statusCode"`
}

// words returns the names for the kind of failure in the data.
func (d *errorData) words() []string {
	words := []string{d.ErrorKind, d.ErrorName, d.Category}
	var word string
	var nested map[string]json.RawMessage
	if json.Unmarshal(d.CodexInfo, &word) == nil {
		words = append(words, word)
	} else if json.Unmarshal(d.CodexInfo, &nested) == nil {
		for word = range nested {
			words = append(words, word)
		}
	}
	return words
}

// kindOfStatus translates the status of HTTP that some agents use as code.
func kindOfStatus(status int64) agent.Kind {
	switch status {
	case 401, 403:
		return agent.KindAuth
	case 402:
		return agent.KindQuota
	case 404:
		return agent.KindInvalid
	case 413:
		return agent.KindOverflow
	case 429:
		return agent.KindRateLimit
	case 502, 503, 504, 529:
		return agent.KindUnavailable
	}
	return ""
}

// replyError makes the error of a turn of an error that the agent answered to
// a request with. What says most counts first: a message about a quota, names in the
// data, other words, then codes.
func replyError(method string, e *jsonrpc.Error, now time.Time) *agent.Error {
	var data errorData
	_ = jsonrpc.Lenient(e.Data, &data) // data of another form says nothing
	text := strings.Join([]string{e.Message, data.Details, data.Message, data.More}, "\n")
	said := clip.Prefix(clip.FirstLine(e.Message), 500)
	if details := clip.Prefix(clip.FirstLine(data.Details), 500); strings.EqualFold(said, "internal error") &&
		details != "" {
		said = details
	}
	failure := &agent.Error{
		Kind: kindOfReply(method, e, &data, text),
		Msg:  fmt.Sprintf("agent refused %q: %s", method, model.Redact(clean(said))),
	}
	if jsonrpc.Present(e.Data) {
		failure.Detail = model.Redact(clip.Prefix(clean(string(e.Data)), 8<<10))
	}
	finish(failure, text, now)
	return failure
}

// spokenError makes the error of a turn of the message in which an agent says
// why it failed.
func spokenError(text string, now time.Time) *agent.Error {
	failure := &agent.Error{Kind: cmp.Or(kindOfText(text), agent.KindFailed),
		Msg: "agent failed: " + model.Redact(clip.Prefix(clip.FirstLine(text), 500))}
	finish(failure, text, now)
	return failure
}

// finish adds what follows from the kind of a failure. A quota that comes back
// by itself is waited for.
func finish(failure *agent.Error, text string, now time.Time) {
	if failure.Kind == agent.KindRateLimit || failure.Kind == agent.KindQuota {
		if wait := waitOf(text); wait > 0 {
			failure.Kind, failure.Until = agent.KindRateLimit, now.Add(wait)
		}
	}
	failure.Hint = hintFor(failure.Kind)
}

func kindOfReply(method string, e *jsonrpc.Error, data *errorData, text string) agent.Kind {
	textKind := kindOfText(text)
	if textKind == agent.KindQuota { // vendors name it as a rate limit
		return textKind
	}
	for _, word := range data.words() {
		if kind := kindOfWord(word); kind != "" {
			return kind
		}
	}
	if textKind == agent.KindOverflow || textKind == agent.KindRateLimit {
		return textKind // a text may also mention the other kinds in passing
	}
	for _, status := range []int64{e.Code, int64(data.Status)} {
		if kind := kindOfStatus(status); kind != "" {
			return kind
		}
	}
	switch {
	case e.Code == jsonrpc.CodeAuthRequired:
		return agent.KindAuth
	case method == methodLoad || method == methodResume:
		return cmp.Or(textKind, agent.KindSession)
	case e.Code == jsonrpc.CodeNotFound && method == methodPrompt:
		return agent.KindSession
	case e.Code == jsonrpc.CodeNoMethod, e.Code == jsonrpc.CodeInvalidParams && method != methodPrompt:
		return agent.KindInvalid
	}
	return cmp.Or(textKind, agent.KindFailed)
}

// hintFor says what a person can do.
func hintFor(kind agent.Kind) string {
	switch kind {
	case agent.KindAuth:
		return "log in with the agent's own command, or give it the key it wants; see also the setting for the method to " +
			"log in"
	case agent.KindQuota:
		return "the agent's account is used up: raise its limit, or use another agent"
	case agent.KindInvalid:
		return "check the agent's command, mode and model, and that its version speaks the Agent Client Protocol, version 1"
	case agent.KindNotFound:
		return "check the spelling, that the program is installed, that it may be executed, and that its folder is in PATH"
	default:
		return ""
	}
}

// startError says why an agent could not be started.
func startError(name string, err error) *agent.Error {
	e := &agent.Error{Kind: agent.KindFailed, Msg: fmt.Sprintf("start agent %q", name), Err: model.RedactError(err)}
	switch {
	case errors.Is(err, guard.ErrGuardLost):
		return lostError()
	case guard.Missing(err):
		e.Kind, e.Hint = agent.KindNotFound, hintFor(agent.KindNotFound)
	case errors.Is(err, guard.ErrNotEntered):
		e.Hint = "this is an error in the program that uses the perdure library"
	}
	return e
}

// lostError is the error of a turn whose guard was killed.
func lostError() *agent.Error {
	return &agent.Error{Kind: agent.KindGuardLost, Msg: "agent stopped", Err: guard.ErrGuardLost}
}

// Statuses with which a program that starts others says that there is none.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
)

// deathError says why an agent that ended too early did. greeted is whether it
// had answered at all.
func deathError(waited error, cause error, greeted bool, stderr string) *agent.Error {
	e := &agent.Error{Kind: agent.KindFailed, Msg: "agent ended in the middle of the turn", Detail: stderr, Err: cause}
	if exit, ok := errors.AsType[*guard.ExitError](waited); ok {
		e.Exit, e.Err = exit.Code, exit
	} else if waited != nil {
		e.Err = waited
	}
	switch kind := kindOfText(lastLines(stderr)); {
	case errors.Is(cause, ErrFrameTooLarge), errors.Is(cause, jsonrpc.ErrNotReading):
		e.Msg, e.Err = "agent was stopped", cause
		if errors.Is(cause, ErrFrameTooLarge) {
			e.Hint = "raise the limit for messages of agents"
		}
		return e
	case e.Exit == statusNotFound || e.Exit == statusNotExecutable:
		e.Kind = agent.KindNotFound
	case kind != "":
		e.Kind = kind
	case !greeted && e.Exit >= 0:
		e.Kind, e.Msg = agent.KindInvalid, "agent ended without answering"
	}
	e.Hint = hintFor(e.Kind)
	if last := clip.LastLine(stderr); last != "" {
		e.Msg += ": " + clip.Prefix(last, 500)
	}
	return e
}

// lastLines are those in which a program says why it ends.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// stopError says what a stop reason means for the turn; nil when it was done.
func (r *run) stopError(reason string) *agent.Error {
	switch reason {
	case "refusal":
		return &agent.Error{Kind: agent.KindFailed, Msg: "agent refuses to continue",
			Hint: "the request is against the rules of the agent's model"}
	case "max_turn_requests":
		return &agent.Error{Kind: agent.KindLimit, Msg: "agent reached its limit of requests for a turn"}
	case "max_tokens":
		if r.a.preset.OverflowIsMaxTokens {
			return &agent.Error{Kind: agent.KindOverflow, Msg: "the agent's context is full"}
		}
		return &agent.Error{Kind: agent.KindLimit, Msg: "agent reached its limit of tokens"}
	case "cancelled":
		if !r.denied.Load() {
			return &agent.Error{Kind: agent.KindFailed, Msg: "the agent reports a cancelled turn that was not cancelled"}
		}
		r.note("the agent ended the turn after a denied call")
	}
	return nil
}
