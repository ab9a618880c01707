package model

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind says what kind of failure an [Error] is. It decides whether asking
// again can help.
type Kind string

// The kinds of failure.
const (
	// KindInvalid: the model refuses this request; asking again changes
	// nothing (HTTP 4xx other than those below).
	KindInvalid Kind = "invalid"
	// KindTooLong: the request is longer than the model reads; a shorter one may
	// do (HTTP 413, and 400 where the server says so).
	KindTooLong Kind = "too_long"
	// KindAuth: the key is missing, wrong or not allowed to do this (401, 403, 407, 451).
	KindAuth Kind = "auth"
	// KindNotFound: no such model, address or program (404, 405, 410, 501, and what is no server of
	// the protocol).
	KindNotFound Kind = "not_found"
	// KindQuota: the account has no credit or quota left; waiting does not help (402, and other
	// statuses where the server says so).
	KindQuota Kind = "quota"
	// KindRefused: no connection can be made: it is refused, or the name is not resolved.
	KindRefused Kind = "refused"
	// KindRateLimit: too many requests; everybody has to wait (429).
	KindRateLimit Kind = "rate_limit"
	// KindUnavailable: the model cannot answer now (408, 409, 5xx, connection reset).
	KindUnavailable Kind = "unavailable"
	// KindCut: the answer began and broke off.
	KindCut Kind = "cut"
	// KindTimeout: the limit for one call passed.
	KindTimeout Kind = "timeout"
	// KindEmpty: the model returned nothing.
	KindEmpty Kind = "empty"
	// KindThoughts: the reply holds only thoughts and no answer. [Guarded] asks once more.
	KindThoughts Kind = "thoughts"
	// KindTooLarge: the answer is over the limit.
	KindTooLarge Kind = "too_large"
	// KindFailed: a program exited with a status other than zero, or a model
	// failed in a way nothing more is known about.
	KindFailed Kind = "failed"
	// KindCanceled: the caller's context ended; the error wraps ctx.Err().
	KindCanceled Kind = "canceled"
)

// Error is why a model did not answer.
//
// Its text holds no secrets as far as they can be recognised: what looks like
// a key, a bearer token or a password in an address is masked. A provider that
// knows its key masks it with [Redact] and [RedactError] before.
type Error struct {
	Kind Kind
	// Status is the HTTP status or, for KindFailed, the exit status of the
	// program; 0 when there is none.
	Status int
	// RetryAfter is how long the provider asked to wait; 0 when it did not.
	RetryAfter time.Duration
	// Permanent is set if all requests of the run to this model fail so; see [Faults].
	Permanent bool
	// Tries is how many requests were sent; 0 means one, by a Model that does
	// not retry.
	Tries int
	// Usage is what the last request took although it failed, as far as the provider
	// reported it.
	Usage Usage
	// Limit is what the server says of the limit that a request of KindTooLong passes; zero when it
	// does not.
	Limit TokenLimit
	// Msg says what went wrong, for people.
	Msg string
	// Hint says what a person can do about it; may be empty.
	Hint string
	// Detail is what the model or program said itself, for example the end of
	// its standard error; may be empty, may have many lines.
	Detail string
	// Thoughts are what the model thought before it failed; may be empty.
	Thoughts string
	// AboutText is set if the text of the request is refused: other requests may be answered.
	AboutText bool
	// Foreign is set if the reply is not one of the protocol.
	Foreign bool
	// Err is the cause; may be nil.
	Err error
}

// Error returns the kind, the message and the cause in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	if e.Msg != "" {
		b.WriteString(": " + e.Msg)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Tries > 1 {
		fmt.Fprintf(&b, " (%d tries)", e.Tries)
	}
	return Redact(strings.ReplaceAll(b.String(), "\n", " "))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed when it is sent
// again.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case KindRateLimit, KindUnavailable, KindCut, KindTimeout, KindEmpty:
		return true
	case KindInvalid, KindTooLong, KindAuth, KindNotFound, KindQuota, KindRefused, KindThoughts, KindTooLarge, KindFailed,
		KindCanceled:
		return false
	}
	return false
}

// KindOfStatus returns the kind of failure that an HTTP status means.
func KindOfStatus(status int) Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired,
		status == http.StatusUnavailableForLegalReasons:
		return KindAuth
	case status == http.StatusPaymentRequired:
		return KindQuota
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusGone,
		status == http.StatusNotImplemented:
		return KindNotFound
	case status == http.StatusRequestEntityTooLarge:
		return KindTooLong
	case status == http.StatusTooManyRequests:
		return KindRateLimit
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return KindUnavailable
	}
	return KindInvalid
}

// Stopped returns the error of a call that [Request.OnSend] or [Request.OnFailed] stopped
// after so many requests.
func Stopped(err error, tries int) *Error {
	return &Error{Kind: KindCanceled, Msg: "call stopped", Err: err, Tries: tries}
}

// Canceled returns the error of a call whose context ended. It wraps ctx.Err()
// and, when it says more, the context's cause.
func Canceled(ctx context.Context) *Error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != nil && cause != err { //nolint:errorlint // asks whether the cause is anything but err itself
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &Error{Kind: KindCanceled, Msg: "call stopped", Err: err}
}
