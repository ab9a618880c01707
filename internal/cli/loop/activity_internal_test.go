package loop

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/loop"
)

// TestActivityLine: the line names the call, the files, the usage and the beginning of the turn.
func TestActivityLine(t *testing.T) {
	t.Parallel()
	c := &commands{&env.Env{Err: &env.Stream{}}}
	now := time.Now()
	for want, a := range map[string]loop.Activity{
		"iteration 1: claude: is working": {Iteration: 1, Agent: "claude"},
		"iteration 1: claude: go test · 2 files · 12.3k tokens · $0.0400": {Iteration: 1, Agent: "claude", Call: "go test",
			Message: "hm", Files: 2, Tokens: 12_300, CostUSD: new(0.04)},
		"iteration 1: gemini: waiting: 429, until 10:00:00": {Iteration: 1, Agent: "gemini", Call: "ls",
			Waiting: "429, until 10:00:00"},
	} {
		a.ElapsedMS = 5000
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		e := perdure.Event{Kind: loop.EventActivity, Time: now, Data: data}
		text, since, ok := c.activity(&e, now)
		if text != want || !ok || now.Sub(since) != 5*time.Second {
			t.Errorf("%q since %s, want %q", text, now.Sub(since), want)
		}
		if _, _, ok := c.activity(&e, now.Add(time.Second)); ok {
			t.Error("an event from before the command is shown")
		}
		e.Time = now.Add(-2 * staleActivity)
		if _, _, ok := c.activity(&e, time.Time{}); ok {
			t.Error("an old event is shown")
		}
	}
}
