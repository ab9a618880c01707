package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

type ownError struct{ error }

func (ownError) Failure() perdure.Failure {
	return perdure.Failure{Kind: "own", Message: "mine", Retry: true, After: time.Minute}
}

func TestFailureOf(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	tests := []struct {
		name string
		err  error
		want perdure.Failure
	}{
		{"unknown error is tried again", cause, perdure.Failure{Kind: "error", Message: "cause", Retry: true}},
		{"Failure", &Failure{Kind: "model", After: time.Second, Retry: true, Err: cause},
			perdure.Failure{Kind: "model", Message: "cause", Retry: true, After: time.Second}},
		{"Failure without a kind", fmt.Errorf("wrapped: %w", &Failure{Err: cause}),
			perdure.Failure{Kind: "error", Message: "cause"}},
		{"method Failure", fmt.Errorf("wrapped: %w", ownError{cause}),
			perdure.Failure{Kind: "own", Message: "mine", Retry: true, After: time.Minute}},
		{"model that may answer later", &model.Error{Kind: model.KindUnavailable},
			perdure.Failure{Kind: "error", Message: "unavailable", Retry: true}},
		{"model that will not", &model.Error{Kind: model.KindAuth}, perdure.Failure{Kind: "error", Message: "auth"}},
		{"store unavailable", &perdure.Error{Code: perdure.CodeUnavailable, Msg: "busy"},
			perdure.Failure{Kind: "unavailable", Message: "busy", Retry: true}},
		{"budget", &perdure.Error{Code: perdure.CodeBudgetExceeded, Msg: "tokens"},
			perdure.Failure{Kind: "budget_exceeded", Message: "tokens"}},
		{"invalid", &perdure.Error{Code: perdure.CodeInvalid, Msg: "no"}, perdure.Failure{Kind: "invalid", Message: "no"}},
		{"panic", &panicError{value: "boom"}, perdure.Failure{Kind: "panic", Message: "handler panicked: boom", Retry: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, failureOf(tt.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for attempt, whole := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second,
		7: time.Minute, 8: time.Minute, 100: time.Minute,
	} {
		different := make(map[time.Duration]bool)
		for range 200 {
			d := backoff(attempt)
			if d < whole/2 || d > whole {
				t.Errorf("attempt %d waits %s, want %s to %s", attempt, d, whole/2, whole)
			}
			different[d] = true
		}
		if len(different) < 100 {
			t.Errorf("attempt %d has only %d different waits of 200", attempt, len(different))
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	tree := func(limit, age time.Duration) *perdure.Tree {
		return &perdure.Tree{CreatedAt: now.Add(-age), Limits: perdure.Limits{WallTime: limit}}
	}
	tests := []struct {
		name       string
		tree       *perdure.Tree
		wait, want time.Duration
	}{
		{"no limit", tree(0, time.Hour), time.Minute, time.Minute},
		{"limit far away", tree(time.Hour, time.Minute), time.Minute, time.Minute},
		{"limit before the next attempt", tree(time.Minute, 50*time.Second), time.Minute, 10 * time.Second},
		{"limit passed", tree(time.Minute, time.Hour), time.Minute, time.Millisecond},
	}
	for _, tt := range tests {
		if got := within(tt.tree, now, tt.wait); got != tt.want {
			t.Errorf("%s: waits %s, want %s", tt.name, got, tt.want)
		}
	}
}
