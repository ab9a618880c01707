package loop_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop/record"
)

// TestDocumentHasCalls: the state of a loop lists risky calls and the last calls with tool, target,
// risk, time, verdict and snapshot, and repeats the last risky one.
func TestDocumentHasCalls(t *testing.T) {
	t.Parallel()
	c := scene{t, "Fix the tests"}
	in := c.input()
	test := policy.Risky{At: when(3), Tool: "edit", Target: "a_test.go", Pattern: risk.WriteTest, Level: risk.High,
		Answer: risk.Warn, Snapshot: "before-the-call"}
	reset := policy.Risky{At: when(4), Tool: "bash", Target: "git reset --hard", Pattern: risk.DiscardWork,
		Level: risk.Critical, Answer: risk.Block}
	in.Iterations = append(in.Iterations[:1:1], []record.Iteration{
		c.iteration(1, 50, func(o *state.Outcome) { o.Risky, o.Calls = []policy.Risky{test}, []policy.Risky{test} }),
		c.iteration(2, 60, func(o *state.Outcome) {
			o.Risky, o.Calls = []policy.Risky{reset}, []policy.Risky{{At: when(4), Tool: "bash", Target: "make"}, reset}
		}),
	}...)
	in.Loop.Iteration, in.Gates = 2, nil
	raw, err := json.Marshal(loopview.Document(in))
	if err != nil {
		t.Fatal(err)
	}
	valid(t, "persistence-extension", json.RawMessage(raw))
	var doc struct {
		Risky []map[string]any `json:"risky_actions"`
		Last  map[string]any   `json:"last_risky_action"`
		Calls []map[string]any `json:"tool_call_history"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	first := map[string]any{"tool": "edit", "target": "a_test.go", "risk_level": "high", "risk_pattern": "write_test",
		"timestamp": doc.Risky[0]["timestamp"], "iteration": 1.0, "verdict": "WARN", "snapshot_path": "before-the-call"}
	if diff := cmp.Diff(first, doc.Risky[0]); diff != "" || first["timestamp"] == nil {
		t.Errorf("the first risky call (-want +got):\n%s", diff)
	}
	if len(doc.Risky) != 2 || doc.Last["target"] != "git reset --hard" || doc.Last["verdict"] != "BLOCK" ||
		doc.Last["risk_level"] != "critical" || doc.Last["iteration"] != 2.0 {
		t.Errorf("%d risky calls, the last is %v", len(doc.Risky), doc.Last)
	}
	if len(doc.Calls) != 3 || doc.Calls[1]["target"] != "make" || doc.Calls[1]["risk_level"] != nil {
		t.Errorf("calls: %v", doc.Calls)
	}
}
