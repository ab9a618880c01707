package agent_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
)

func TestGauge(t *testing.T) {
	t.Parallel()
	g := agent.NewGauge(1000, strings.Repeat("x", 400))
	if used, source := g.Used(); used != 0.1 || source != agent.SourceEstimated {
		t.Errorf("after the prompt: %v, %s", used, source)
	}
	g.Hear(&agent.Event{Kind: agent.EventMessage, Text: strings.Repeat("x", 3600)})
	if _, ok := g.Crosses(0.75, 0.9); !ok {
		t.Error("an estimate of 1 crosses nothing")
	}
	if _, again := g.Crosses(0.75, 0.9); again {
		t.Error("it is crossed once")
	}
	g.Hear(&agent.Event{Kind: agent.EventUsage,
		Context: &agent.Context{Used: 800, Size: 1000, Source: agent.SourceReported}})
	if used, source := g.Used(); used != 0.8 || source != agent.SourceReported {
		t.Errorf("a report counts more than an estimate: %v, %s", used, source)
	}
	if _, ok := g.Crosses(0.75, 0.9); ok {
		t.Error("falling crosses nothing")
	}
	// of the window that is set
	g.Hear(&agent.Event{Kind: agent.EventUsage, Context: &agent.Context{Used: 950, Source: agent.SourceReported}})
	if at, ok := g.Crosses(0.75, 0.9); !ok || at != 0.9 {
		t.Errorf("it rose again: %v, %v", at, ok)
	}
	g.Hear(&agent.Event{Kind: agent.EventCompaction})
	g.Hear(&agent.Event{Kind: agent.EventUsage, Context: &agent.Context{Used: 760, Source: agent.SourceReported}})
	if at, ok := g.Crosses(0.75, 0.9); !ok || at != 0.75 {
		t.Errorf("after a compaction it counts anew: %v, %v", at, ok)
	}
}

func TestGaugeByMessages(t *testing.T) {
	t.Parallel()
	g := agent.NewGauge(1000, "")
	for range 3 {
		g.Hear(&agent.Event{Kind: agent.EventToolCall})
	}
	if used, _ := g.Used(); used != 1 {
		t.Errorf("three calls of which no text is seen: %v", used)
	}
}
