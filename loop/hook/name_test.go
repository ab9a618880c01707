package hook_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/loop/hook"
)

func TestTable(t *testing.T) {
	t.Parallel()
	want := []hook.Name{
		"loop_start", "pre_iteration", "pre_tool_call", "post_tool_call", "post_iteration", "regression_detected", "on_error",
		"stuck_loop_detected", "reinforcement_escalation", "loop_complete",
		"rate_limited", "budget_warning", "gate_opened", "gate_answered", "loop_paused", "checkpoint_written",
	}
	if diff := cmp.Diff(want, hook.Names()); diff != "" {
		t.Error(diff)
	}
	types := []string{"string", "integer", "number", "boolean", "object", "array"}
	for _, row := range hook.Table() {
		if row.When == "" || len(row.Inputs) == 0 {
			t.Errorf("%s: nothing is said of it", row.Hook)
		}
		seen := make(map[string]bool)
		for _, in := range row.Inputs {
			if in.Name == "" || in.What == "" || !slices.Contains(types, in.Type) || seen[in.Name] {
				t.Errorf("%s: input %+v", row.Hook, in)
			}
			seen[in.Name] = true
		}
	}
}

// The defaults without configuration are part of the promise.
func TestDefaultsOfHooks(t *testing.T) {
	t.Parallel()
	type rule struct {
		Timeout     time.Duration
		OnFault     hook.OnFault
		Destructive bool
	}
	ordinary := rule{5 * time.Second, hook.FaultContinues, false}
	special := map[hook.Name]rule{
		hook.PreToolCall:        {2 * time.Second, hook.FaultBlocks, true},
		hook.RegressionDetected: {10 * time.Second, hook.FaultBlocks, false},
		hook.StuckLoopDetected:  {hook.NoTimeout, hook.FaultBlocks, false},
	}
	for _, row := range hook.Table() {
		want, ok := special[row.Hook]
		if !ok {
			want = ordinary
		}
		if got := (rule{row.Timeout, row.OnFault, row.Destructive}); got != want {
			t.Errorf("%s: %+v, want %+v", row.Hook, got, want)
		}
	}
}
