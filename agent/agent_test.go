package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
)

// Every kind of failure has a class that says what is done about it.
func TestClass(t *testing.T) {
	t.Parallel()
	for kind, want := range map[agent.Kind]agent.Class{
		agent.KindFailed: agent.ClassAgent, agent.KindLimit: agent.ClassAgent, agent.KindIdle: agent.ClassAgent,
		agent.KindTimeout: agent.ClassAgent, agent.KindRateLimit: agent.ClassWait, agent.KindUnavailable: agent.ClassWait,
		agent.KindOverflow: agent.ClassFresh, agent.KindSession: agent.ClassFresh, agent.KindNotFound: agent.ClassSetup,
		agent.KindAuth: agent.ClassSetup, agent.KindInvalid: agent.ClassSetup, agent.KindQuota: agent.ClassSetup,
		agent.KindCanceled: agent.ClassCanceled, agent.KindGuardLost: agent.ClassAgent,
	} {
		if got := (&agent.Error{Kind: kind}).Class(); got != want {
			t.Errorf("%s is of class %q, want %q", kind, got, want)
		}
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	cause := errors.New("user pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := agent.Stopped(ctx); err.Kind != agent.KindCanceled || !errors.Is(err, context.Canceled) ||
		!errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if err := agent.Stopped(late); err.Kind != agent.KindTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
