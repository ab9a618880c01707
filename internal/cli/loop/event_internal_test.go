package loop

import (
	"testing"
	"time"
)

// TestEventTexts: a denied call, a wait of the agent and a diagnosis in one line each.
func TestEventTexts(t *testing.T) {
	t.Parallel()
	until := "2026-11-25T12:00:40Z"
	tests := []struct {
		got, want string
	}{
		{denied(&eventData{Iteration: 1, Target: "go vet ./...", Hint: "do so"}),
			"iteration 1: denied by the agent's permissions: go vet ./... (do so)"},
		{denied(&eventData{Iteration: 2, Target: "curl x"}), "iteration 2: denied by the agent's permissions: curl x"},
		{agentWaits(&eventData{Iteration: 1, Agent: "claude", Attempt: 2, Of: 3, Until: until, Message: "overloaded"}),
			"iteration 1: claude waits until " + localDay(until, time.Now()) + ", retry 2 of 3: overloaded"},
		{agentWaits(&eventData{Iteration: 1, Agent: "gemini", Attempt: 2, Message: "429"}),
			"iteration 1: gemini waits, retry 2: 429"},
		{diagnosed(&eventData{Iteration: 3, Diagnosis: "reward_hacking", Why: "1 test removed"}),
			"iteration 3: diagnosis: reward_hacking (the check was weakened instead of passed)"},
		{diagnosed(&eventData{Iteration: 3, Diagnosis: "specification_ambiguity", Why: "the agent asks: which?"}),
			"iteration 3: diagnosis: specification_ambiguity (the agent asks: which?)"},
		{agentWaits(&eventData{Iteration: 1, Agent: "a", Message: "429"}), "iteration 1: a waits: 429"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
