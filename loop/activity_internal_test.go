package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
)

// TestActivity: what an agent does is reported with a delay, the latest of it only, and not
// again if nothing changed.
func TestActivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []Activity
		a := &activity{began: time.Now(), now: Activity{Iteration: 2, Agent: "x"}, files: make(map[string]bool),
			stop: make(chan struct{}), done: make(chan struct{}), emit: func(now *Activity) { got = append(got, *now) }}
		go a.run()
		tally := &tally{price: func(string, agent.Usage) (int64, bool) { return 0, false }}
		hear := func(events ...agent.Event) {
			for _, e := range events {
				tally.hear(&e)
				a.hear(&e, tally)
			}
			<-time.After(activityEvery)
			synctest.Wait()
		}
		edit := &agent.ToolCall{Kind: agent.ToolEdit, Title: "Edit", Paths: []string{"a.go"}}
		again := &agent.ToolCall{Kind: agent.ToolEdit, Title: "Edit", Paths: []string{"./a.go", "b.go"}}
		hear(agent.Event{Kind: agent.EventMessage, Text: "I look.\nThen I write."},
			agent.Event{Kind: agent.EventToolCall, Call: edit}, agent.Event{Kind: agent.EventToolResult, Call: edit},
			agent.Event{Kind: agent.EventToolCall, Call: again},
			agent.Event{Kind: agent.EventUsage, CostMicros: new(int64(20_000)),
				Usage: &agent.Usage{InputTokens: 90, OutputTokens: 10, Reported: true}})
		hear(agent.Event{Kind: agent.EventOutput, Text: "noise"})
		hear(agent.Event{Kind: agent.EventToolResult, Call: again},
			agent.Event{Kind: agent.EventRateLimited, Text: "429"})
		hear(agent.Event{Kind: agent.EventToolCall, Call: &agent.ToolCall{Kind: agent.ToolExecute, Command: "go test"}})
		a.close()
		base := Activity{Iteration: 2, Agent: "x", Message: "I look.", Files: 2, Tokens: 100, CostUSD: new(0.02)}
		want := []Activity{base, base, base}
		want[0].Call, want[0].ElapsedMS = "edit ./a.go", 2000
		want[1].Waiting, want[1].ElapsedMS = "429", 6000
		want[2].Call, want[2].ElapsedMS = "go test", 8000
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
