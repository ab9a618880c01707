package e2e

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/modelserver"
)

// background returns the calls with which an agent starts a command that continues after its turn.
func (a *realAgent) background(line string) []modelserver.Reply {
	input := map[string]any{a.member: line, "description": "run it"}
	switch a.name {
	case "claude-code":
		input["run_in_background"] = true
	case "codex":
		input["yield_time_ms"] = 250
	case "gemini":
		input["is_background"] = true
	}
	return []modelserver.Reply{{Tool: a.tool, Input: input}}
}

// TestRealAgentsBackground: the check runs after the work that an agent continues in the background.
// Programs that end with their turn, and their commands with them, are named.
func TestRealAgentsBackground(t *testing.T) {
	t.Parallel()
	for _, a := range realAgents() {
		for _, form := range []string{"", "acp:"} {
			t.Run(form+a.name, func(t *testing.T) {
				s := newAgentLoop(t, &a)
				script := append(a.background("sleep 5; echo two >> work.txt"),
					modelserver.Reply{Text: "It runs in the background."}, modelserver.Reply{Text: "Done."})
				for i := range script {
					script[i].In, script[i].Out = 1000+i, 10
				}
				s.model.Play(script)
				said, status := s.loopWith(t, form+strings.TrimSuffix(a.name, "-code"), "--unattended", "--max-iterations",
					"1", "--permission", "all")
				t.Logf("status %d\n%s", status, said)
				waits := form != "" || a.name == "claude-code"
				if status != 0 && (waits || !strings.Contains(said, "stopped: ")) {
					t.Errorf("the check did not wait")
				}
			})
		}
	}
}
