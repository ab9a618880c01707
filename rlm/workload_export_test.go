package rlm

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// SharePython has REPLs started by an engine that other executors use as well: each asks the
// interpreter where it is, which takes as long as a start.
func (e *Executor) SharePython(engine *python.Engine) { e.python = engine }

// PlannedWork returns the work that a launch plans.
func (e *Executor) PlannedWork(ctx context.Context, t *testing.T, prompt, contextID string, config any) *perdure.Work {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.newPlanning(&LaunchRequest{Prompt: prompt, ContextID: contextID, Config: raw}, e.cfg.Resolver)
	if err != nil {
		t.Fatal(err)
	}
	var spec *perdure.TreeSpec
	err = p.plan(ctx, func(root *node) (err error) {
		spec, err = p.treeSpec(root)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return spec.Root.Work
}
