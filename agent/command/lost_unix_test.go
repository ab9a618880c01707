//go:build unix

package command_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/internal/process/guard"
)

// TestAgentKillsItsGuard: such a turn has a failure of its own kind, also when it was
// stopped for another reason.
func TestAgentKillsItsGuard(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"at once": `echo partial; kill -9 $PPID; sleep 1000`,
		"when it is stopped": `trap 'kill -9 $PPID; sleep 1000' TERM; echo partial
while :; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turn := newTurn(t)
			if name == "when it is stopped" {
				turn.Observe = func(agent.Event) { cancel() }
			}
			cfg := command.Config{Program: "sh", Args: []string{"-c", script}, Grace: time.Minute}
			res, err := newAgent(t, cfg).Run(ctx, turn)
			if e := wantKind(t, err, agent.KindGuardLost); !errors.Is(e, guard.ErrGuardLost) || res.Text != "partial\n" {
				t.Errorf("error %v, result %+v", e, res)
			}
		})
	}
}
