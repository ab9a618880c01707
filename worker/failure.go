package worker

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure"
)

// The waits between the attempts of a task double from BackoffBase to
// BackoffMax, each varied at random between half and the whole of it.
const (
	BackoffBase = time.Second
	BackoffMax  = 60 * time.Second
)

// The kinds of failure that this package gives itself.
const (
	// KindError is an error that nothing more is known about.
	KindError = "error"
	// KindPanic is a handler that panicked.
	KindPanic = "panic"
	// KindUnsettled is a handler that returned nil without settling its task.
	KindUnsettled = "unsettled"
)

// Failure is an error of a handler that says how the attempt ends. An error of
// another type may do the same with a method
//
//	Failure() perdure.Failure
//
// or say only whether trying again can help, with a method
//
//	Retryable() bool
//
// Anything else is tried again, except an error of the store that cannot get
// better (invalid, not found, conflict, budget exceeded, damaged).
type Failure struct { //nolint:errname // it says how an attempt ends; the error is its cause
	// Kind is a word for programs; empty means KindError.
	Kind string
	// Retry asks for another attempt, while the task has any left.
	Retry bool
	// After is the time until then; 0 means the usual wait.
	After time.Duration
	// Err is the cause.
	Err error
}

// Error returns the text of the cause.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.kind()
	}
	return f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Failure returns how the attempt ends.
func (f *Failure) Failure() perdure.Failure {
	return perdure.Failure{Kind: f.kind(), Message: f.Error(), Retry: f.Retry, After: f.After}
}

func (f *Failure) kind() string { return cmp.Or(f.Kind, KindError) }

// failureOf decides what an error of a handler means for the attempt.
func failureOf(err error) perdure.Failure {
	var whole interface{ Failure() perdure.Failure }
	if errors.As(err, &whole) {
		return whole.Failure()
	}
	f := perdure.Failure{Kind: KindError, Message: err.Error(), Retry: true}
	var retryable interface{ Retryable() bool }
	if errors.As(err, &retryable) {
		f.Retry = retryable.Retryable()
		return f
	}
	if own, ok := errors.AsType[*perdure.Error](err); ok {
		f.Kind, f.Retry = string(own.Code), mayImprove(own.Code)
	}
	return f
}

// mayImprove reports whether an operation the store refused may succeed later.
func mayImprove(code perdure.Code) bool {
	switch code {
	case perdure.CodeUnavailable, perdure.CodeInternal, perdure.CodeCanceled:
		return true
	case perdure.CodeInvalid, perdure.CodeNotFound, perdure.CodeConflict, perdure.CodeLeaseLost,
		perdure.CodeBudgetExceeded, perdure.CodeDamaged:
		return false
	}
	return true
}

// backoff is the wait after the attempt of this number, from 1.
func backoff(attempt int) time.Duration {
	d := BackoffMax
	if shift := max(attempt, 1) - 1; shift < 6 {
		d = min(BackoffBase<<shift, BackoffMax)
	}
	half := d / 2
	return half + time.Duration(rand.Int64N(int64(half)+1))
}

// within shortens a wait that would go past the tree's time limit: the attempt
// after it then ends at the limit and not long after.
func within(t *perdure.Tree, now time.Time, wait time.Duration) time.Duration {
	deadline := t.Deadline()
	if deadline.IsZero() {
		return wait
	}
	return min(wait, max(deadline.Sub(now), time.Millisecond))
}
