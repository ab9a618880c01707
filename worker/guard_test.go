package worker_test

import (
	"strings"
	"testing"

	agentcommand "github.com/perdure/perdure/agent/command"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/command"
)

// This test binary does not call EnterGuard; programs of the example module
// examples/outside do.
func TestProgramsNeedEnterGuard(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	wantNamed := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "call worker.EnterGuard first in main") {
			t.Errorf("%s without EnterGuard: %v, want an error that names it", what, err)
		}
	}
	m, err := command.New(command.Config{Command: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(ctx, &model.Request{Prompt: "x"})
	wantNamed("exec model", err)
	a, err := agentcommand.New(agentcommand.Config{Program: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Run(ctx, &agent.Turn{Prompt: "x", Dir: t.TempDir()})
	wantNamed("command agent", err)
	_, err = loop.New(t.Context(), loop.EngineConfig{Store: openStore(t), Agents: noAgents{}, Dir: t.TempDir()})
	wantNamed("loop engine", err)
}

type noAgents struct{}

func (noAgents) Agent(loop.AgentSpec) (agent.Agent, error) { return nil, nil }
