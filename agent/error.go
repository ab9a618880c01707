package agent

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Kind says what kind of failure an [Error] is. It decides what is done next.
type Kind string

// The kinds of failure.
const (
	// KindFailed: the agent ended without doing its turn, and nothing more is
	// known (an exit status, a refusal, output that ends in the middle).
	KindFailed Kind = "failed"
	// KindLimit: the agent stopped at a limit of its own for turns, money or
	// length of an answer.
	KindLimit Kind = "limit"
	// KindOverflow: the agent's context is full.
	KindOverflow Kind = "context_overflow"
	// KindIdle: nothing was heard for [Turn].IdleTimeout.
	KindIdle Kind = "idle"
	// KindTimeout: the deadline of the turn passed.
	KindTimeout Kind = "timeout"
	// KindRateLimit: too many requests or too many tokens for now.
	KindRateLimit Kind = "rate_limit"
	// KindUnavailable: the agent's provider cannot answer now.
	KindUnavailable Kind = "unavailable"
	// KindSession: the session cannot be continued; a fresh one can be begun.
	KindSession Kind = "session"
	// KindNotFound: there is no such program, or it cannot be run.
	KindNotFound Kind = "not_found"
	// KindAuth: the agent is not logged in, or may not do this.
	KindAuth Kind = "auth"
	// KindInvalid: the agent was started in a way it does not understand, or
	// speaks another protocol.
	KindInvalid Kind = "invalid"
	// KindQuota: money or quota is used up; waiting does not help.
	KindQuota Kind = "quota"
	// KindGuardLost: the guard process that ends what the agent starts was killed,
	// most probably by the agent or a program that it started. A loop reverts the
	// iteration and asks a person.
	KindGuardLost Kind = "guard_lost"
	// KindCanceled: the caller's context ended; the error wraps ctx.Err().
	KindCanceled Kind = "canceled"
)

// Class says whose fault a failure is: what is done about it follows from that.
type Class string

// The classes of failures.
const (
	// ClassAgent: the agent's own; it spends a retry.
	ClassAgent Class = "agent"
	// ClassWait: no agent's fault; the same turn is requested again later.
	ClassWait Class = "wait"
	// ClassFresh: no agent's fault; a fresh session continues from a handoff.
	ClassFresh Class = "fresh"
	// ClassSetup: of what is installed or configured; a person has to act.
	ClassSetup Class = "setup"
	// ClassCanceled: the caller cancelled the turn.
	ClassCanceled Class = "canceled"
)

// Error is the reason why a turn failed.
//
// Recognised secrets are removed from its text; see
// [github.com/perdure/perdure/model.Redact] for what implementations do.
type Error struct {
	Kind Kind
	// Exit is the exit status of the agent's program; -1 when a signal ended it,
	// 0 when it did not end by itself or exited with 0.
	Exit int
	// Until is when a rate limit ends; zero when the agent does not say.
	Until time.Time
	// Msg says what went wrong, for people.
	Msg string
	// Hint says what the user can do about it; may be empty.
	Hint string
	// Detail is the output of the agent, for example the end of its standard
	// error; may be empty, may have many lines.
	Detail string
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
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Class returns whose fault the failure is.
func (e *Error) Class() Class {
	switch e.Kind {
	case KindRateLimit, KindUnavailable:
		return ClassWait
	case KindOverflow, KindSession:
		return ClassFresh
	case KindNotFound, KindAuth, KindInvalid, KindQuota:
		return ClassSetup
	case KindCanceled:
		return ClassCanceled
	case KindFailed, KindLimit, KindIdle, KindTimeout, KindGuardLost:
		return ClassAgent
	}
	return ClassAgent
}

// Stopped returns the error of a turn whose context ended: [KindTimeout] when
// its deadline passed, else [KindCanceled]. It wraps ctx.Err() and, when it says
// more, the context's cause.
func Stopped(ctx context.Context) *Error {
	err := ctx.Err()
	kind, msg := KindCanceled, "turn stopped"
	if err == context.DeadlineExceeded { //nolint:errorlint // contexts return exactly this
		kind, msg = KindTimeout, "the limit for the turn passed"
	}
	if cause := context.Cause(ctx); cause != nil && cause != err { //nolint:errorlint // asks whether the cause is anything but err itself
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &Error{Kind: kind, Msg: msg, Err: err}
}
