package rlm

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// The kinds of failure of a task, in addition to the codes of perdure's errors.
const (
	// KindModel is a model that refused the request or failed for good.
	KindModel = "model"
	// KindTooLong is a request that is longer than its model reads, and that could
	// not be divided.
	KindTooLong = "too_long"
	// KindUnavailable is a model that could not be reached or asked.
	KindUnavailable = string(perdure.CodeUnavailable)
	// KindFault is a model that answers no request of the run: a wrong key or address, no credit.
	KindFault = "fault"
	// KindBudget is a limit of the tree, its time limit among them.
	KindBudget = string(perdure.CodeBudgetExceeded)
	// KindChildren is a task whose children left nothing to merge.
	KindChildren = "children"
	// KindDiverged is a replayed request that differs from the recorded one.
	KindDiverged = "diverged"
	// KindSchema is a result that is not what the run's schema asks for.
	KindSchema = "schema"
	// KindPlan is a plan that cannot be read or followed.
	KindPlan = "plan"
	// KindNoAnswer is a search whose last reply is not an answer.
	KindNoAnswer = "no_answer"
	// KindEngine is an engine of a REPL that could not start, or was stopped by a limit.
	KindEngine = "engine"
	// KindQuality is an answer that the quality gate did not let pass.
	KindQuality = "quality"
)

// attemptError is an error of an attempt that says how it ends.
type attemptError struct {
	kind  string
	retry bool
	err   error
	// asked is the model that did not answer, and cause why; empty for others. after is how long
	// its provider asked to wait.
	asked string
	cause model.Kind
	after time.Duration
}

func (f *attemptError) Error() string { return f.err.Error() }

func (f *attemptError) Unwrap() error { return f.err }

// Failure returns how the worker ends the attempt.
func (f *attemptError) Failure() perdure.Failure {
	return perdure.Failure{Kind: f.kind, Message: f.err.Error(), Retry: f.retry, After: f.after,
		KeepCalls: !f.byAnswers()}
}

// byAnswers reports whether the attempt failed because of what models had answered: the
// next one asks them again.
func (f *attemptError) byAnswers() bool {
	switch f.kind {
	case KindSchema, KindPlan, KindQuality, KindDiverged, KindNoAnswer:
		return true
	}
	return false
}

func failf(kind, format string, args ...any) *attemptError {
	return &attemptError{kind: kind, err: fmt.Errorf(format, args...)}
}

// errTimeLimit is the cause of a context that ended because the tree's time is
// over.
var errTimeLimit = errors.New("the tree's time limit passed")

// modelFailure says how an attempt ends whose model did not answer.
func modelFailure(name string, err error) *attemptError {
	f := &attemptError{kind: KindModel, err: fmt.Errorf("ask %q: %w", name, err)}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return f
	}
	f.retry, f.asked, f.cause, f.after = e.Retryable() && !e.Permanent, name, e.Kind, e.RetryAfter
	hint := e.Hint
	if e.Kind == model.KindTooLong {
		hint = "what it holds cannot be divided further: shorten the prompt, or choose a model that reads more"
	}
	if hint != "" {
		f.err = fmt.Errorf("%w (%s)", f.err, hint)
	}
	switch e.Kind {
	case model.KindRateLimit, model.KindUnavailable, model.KindCut, model.KindTimeout, model.KindAuth, model.KindNotFound,
		model.KindQuota, model.KindRefused:
		f.kind = KindUnavailable
	case model.KindTooLong:
		f.kind = KindTooLong
	case model.KindInvalid, model.KindEmpty, model.KindThoughts, model.KindTooLarge, model.KindFailed, model.KindCanceled:
	}
	if e.Permanent {
		f.kind = KindFault
	}
	return f
}
