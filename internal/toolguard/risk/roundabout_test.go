package risk_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/perdure/perdure/agent"
)

// TestRoundabout: the effect of a command line is found behind other programs, variables,
// braces, code in another language and git settings; ordinary commands have no risk.
func TestRoundabout(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/roundabout.json")
	if err != nil {
		t.Fatal(err)
	}
	var lines map[string]string
	if err := json.Unmarshal(raw, &lines); err != nil {
		t.Fatal(err)
	}
	for line, want := range lines {
		if got := patterns(&agent.ToolCall{Kind: agent.ToolExecute, Command: line}); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
