package model

import (
	"net/http"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/text/resettime"
)

// The words with which servers report permanent faults, in their codes, types and messages. Public
// replies of about forty services and servers were read for them.
var (
	// reQuota matches an account without credit or quota.
	reQuota = lazyregexp.New(`(?i)insufficient[_ ](\w+[_ ])?(quota|balance|credits?|funds)|billing[_ ](hard[_ ]limit|` +
		`not[_ ]active|error)|exceeded[_ ](your[_ ])?current[_ ]quota|exceeded your monthly|` +
		`credit balance|(no|any|out of|more|used all available|enough) credits|credits are depleted|spending limit|` +
		`payment required|recharge|top[ -]?up|plan and billing|account is not active|trial key|` +
		`\b(balance|arrears|arrearage)\b.{0,40}(insufficient|not enough|overdue|good standing)|Arrearage|余额不足|欠费`)
	// reSureQuota matches codes that mean this even with a time to wait.
	reSureQuota = lazyregexp.New(`(?i)^(insufficient_quota|billing_hard_limit_reached|billing_not_active|` +
		`insufficient_balance|exceeded_current_quota_error)$`)
	// reThrottled matches what looks like it and is a limit of requests.
	reThrottled = lazyregexp.New(`(?i)allocat\w*[ .]?quota|throttling|RESOURCE_EXHAUSTED|(requests|tokens)[ -](per|` +
		`/)[ -]?` +
		`(second|minute|hour|day|min)|\b(rpm|tpm|rpd|tpd|qps)\b|rate[ _-]?limit`)
	// reLimited matches a limit of requests in a reply with a status of 403.
	reLimited = lazyregexp.New(`(?i)rate[ _-]?limit|too many requests|userRateLimit`)
	// reUntil matches a limit of an account that ends at the time that the reply names.
	reUntil = lazyregexp.New(`(?i)usage limits?|limit reached|regain access`)
	// reAuth matches a key that is refused, and an account or a place that is not served.
	reAuth = lazyregexp.New(`(?i)API_KEY_INVALID|(invalid|incorrect|expired|missing|no|wrong)[_ ](x-)?api[_ -]?key|` +
		`api[_ -]?key (is )?(not valid|not found|expired|missing|invalid|required)|location is not supported|` +
		`unsupported_country|(organi[sz]ation|account|project|key) (has been|is|was) (disabled|deactivated|suspended|` +
		`blocked)|authentication_error|AuthenticationError`)
	// reNoModel matches a model that the server does not have.
	reNoModel = lazyregexp.New(`(?i)model_?not_?found|(not a valid|invalid|unknown|unsupported|no such|` +
		`non-?existent) model|` +
		`model\b.{0,120}(not found|not exist|n't exist|not a valid|is not supported|not available|not loaded|` +
		`no longer (available|supported)|deprecated|decommissioned)|not found, try pulling|DeploymentNotFound|` +
		`no (models? (loaded|available)|endpoints found)|模型不存在`)
	// reNoPath matches an address without the protocol.
	reNoPath = lazyregexp.New(`(?i)unexpected endpoint|unknown (endpoint|request url|path|route|url)|no route|` +
		`(method|path|route|url|endpoint) (is )?not (allowed|found|supported)|unsupported method|invalid url|` +
		`cannot (post|get) /|HTTP request (was sent )?to an? HTTPS|plain HTTP request was sent`)
	// reAboutText matches a refusal of what the request says: other requests may be answered.
	reAboutText = lazyregexp.New(`(?i)content[_ -]?(filter|policy|management|moderation)|moderation|flagged|` +
		`inappropriate|` +
		`safety|sensitive|data_inspection|responsible ai|prohibited|usage policy`)
	// reMachine matches the codes that are believed with a status of 500 and more.
	reMachine = lazyregexp.New(`(?i)^(invalid_api_key|model_not_found|insufficient(_user)?_quota)$`)
)

// kindBySigns returns the kind of failure that the fault describes in a reply with a status and
// the kind that this means.
func (f Fault) kindBySigns(status int, kind Kind) Kind {
	words := f.Code + "\n" + f.Type + "\n" + f.Message
	switch {
	case status >= http.StatusInternalServerError && !reMachine().MatchString(f.Code):
		return kind // a gateway or a server in trouble
	case kind == KindTooLong, kind == KindUnavailable && status < http.StatusInternalServerError:
		return kind
	case status == http.StatusPaymentRequired:
		return KindQuota
	case status == http.StatusTooManyRequests:
		if f.meansQuota(words) {
			return KindQuota
		}
		return kind
	case f.RetryAfter > 0 && reUntil().MatchString(words):
		return KindRateLimit
	case f.aboutText(kind):
		return KindInvalid
	case status == http.StatusForbidden && reLimited().MatchString(words) && !reSureQuota().MatchString(f.Code):
		return KindRateLimit
	case status == http.StatusForbidden && reNoModel().MatchString(words):
		return KindNotFound
	}
	return f.permanentKind(words, kind)
}

// permanentKind returns the kind of a permanent fault that the words describe, else kind.
func (f Fault) permanentKind(words string, kind Kind) Kind {
	switch {
	case f.RetryAfter == 0 && f.meansQuota(words):
		return KindQuota
	case kind == KindAuth, kind == KindNotFound:
		return kind
	case reAuth().MatchString(words):
		return KindAuth
	case reNoModel().MatchString(words), reNoPath().MatchString(words):
		return KindNotFound
	}
	return kind
}

// meansQuota reports whether the account has no credit or quota. A quota that comes back by itself
// is a limit of requests.
func (f Fault) meansQuota(words string) bool {
	if reSureQuota().MatchString(f.Code) || reSureQuota().MatchString(f.Type) {
		return !strings.Contains(strings.ToLower(f.Message), "allocated quota")
	}
	return f.RetryAfter == 0 && reQuota().MatchString(words) && !reThrottled().MatchString(words)
}

// aboutText reports whether the fault is one of the text of the request.
func (f Fault) aboutText(kind Kind) bool {
	return (kind == KindInvalid || kind == KindAuth) && reAboutText().MatchString(f.Code+"\n"+f.Type+"\n"+f.Message)
}

// NamesModel reports whether the fault is about the name of the model.
func (f Fault) NamesModel() bool {
	return reNoModel().MatchString(f.Code + "\n" + f.Type + "\n" + f.Message)
}

// wait returns how long the message asks to wait, 0 if it does not.
func (f Fault) wait(now time.Time) time.Duration {
	until := resettime.In(f.Message, now)
	if until.IsZero() {
		return 0
	}
	return until.Sub(now)
}
