package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/modelserver"
)

// subagent returns the call with which an agent starts a subagent; false for one without.
func (a *realAgent) subagent() (modelserver.Reply, bool) {
	input := map[string]any{"description": "look", "prompt": "Look around."}
	switch a.name {
	case "claude-code":
		input["subagent_type"] = "general-purpose"
		return modelserver.Reply{Tool: "Agent", Input: input}, true
	case "opencode":
		input["subagent_type"] = "general"
		return modelserver.Reply{Tool: "task", Input: input}, true
	case "gemini":
		return modelserver.Reply{Tool: "codebase_investigator", Input: map[string]any{"objective": "Look around."}}, true
	case "codex":
		return modelserver.Reply{Tool: "spawn_agent", Input: map[string]any{"task_name": "look",
			"message": "Look around."}}, true
	}
	return modelserver.Reply{}, false
}

var reTokens = regexp.MustCompile(`budget exhausted: ([0-9,]+) of 3,500 tokens`)

// TestRealAgentsBudgets: in both forms of each agent a budget in tokens counts the requests of
// subagents and for titles, so that no more than one answer is served beyond it.
func TestRealAgentsBudgets(t *testing.T) {
	t.Parallel()
	for _, a := range realAgents() {
		for _, form := range []string{"", "acp:"} {
			t.Run(form+a.name, func(t *testing.T) {
				s := newAgentLoop(t, &a)
				sub, _ := a.subagent()
				list := s.reply(s.dir, "list")
				script := []modelserver.Reply{sub, list, list, list, list, list, list, list, list, {Text: "Done."}}
				for i := range script {
					script[i].In, script[i].Out = 1000, 10
				}
				s.model.Play(script)
				said, status := s.loopWith(t, form+strings.TrimSuffix(a.name, "-code"), "--unattended", "--budget-tokens", "3500")
				served := s.model.Served()
				t.Logf("served %d tokens, status %d\n%s", served, status, said)
				shown := reTokens.FindStringSubmatch(said)
				if status != 1 || shown == nil || served > 3500+2*1010 {
					t.Fatalf("not stopped at its budget")
				}
			})
		}
	}
}
