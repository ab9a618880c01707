package acp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// serverEvents are events as opencode 1.18.33 writes them: two steps, of which one is
// reported twice, and a retry.
const serverEvents = `{"payload":{"type":"server.connected","properties":{}}}
{"payload":{"type":"message.part.updated","properties":{"sessionID":"s","part":{"id":"p1","type":"step-finish",` +
	`"reason":"tool-calls","cost":0.001,"tokens":{"input":600,"output":10,"reasoning":5,"cache":{"read":400,"write":0}}}}}}
not JSON
{"payload":{"type":"message.part.updated","properties":{"sessionID":"s","part":{"id":"p1","type":"step-finish",` +
	`"cost":0.001,"tokens":{"input":600,"output":10,"reasoning":5,"cache":{"read":400,"write":0}}}}}}
{"payload":{"type":"session.status","properties":{"sessionID":"s","status":{"type":"retry","attempt":2,` +
	`"message":"overloaded","next":1795600000000}}}}
{"payload":{"type":"message.part.updated","properties":{"sessionID":"child","part":{"id":"p2","type":"step-finish",` +
	`"cost":0.002,"tokens":{"input":200,"output":20,"reasoning":0,"cache":{"read":1000,"write":50}}}}}}
{"payload":{"type":"session.idle","properties":{"sessionID":"other"}}}
{"payload":{"type":"session.idle","properties":{"sessionID":"s"}}}
`

// TestOpencodeEvents: each answer counts once, those of subagents too, and retries are reported.
func TestOpencodeEvents(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "opencode" || password == "" || r.URL.Path != "/global/event" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		for _, line := range strings.Split(strings.TrimSpace(serverEvents), "\n") {
			fmt.Fprintf(w, "data: %s\n\n", line)
		}
	})
	var got []string
	usage, err := acp.OpencodeEvents(t.Context(), handler, "s", func(e agent.Event) {
		if e.Kind == agent.EventUsage {
			got = append(got, fmt.Sprintf("%d+%d %d", e.Usage.InputTokens, e.Usage.OutputTokens, *e.CostMicros))
		} else {
			got = append(got, fmt.Sprintf("%s %d %s %s", e.Kind, e.Attempt, e.Text, e.Until.Format(time.RFC3339)))
		}
	})
	want := agent.Usage{InputTokens: 2250, OutputTokens: 35, CachedTokens: 1400, CacheWriteTokens: 50, Reported: true}
	if diff := cmp.Diff(want, usage); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	events := []string{"1000+15 1000", "rate_limited 2 overloaded 2026-11-25T09:46:40Z", "2250+35 3000"}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Error(diff)
	}
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) })
	if usage, err := acp.OpencodeEvents(t.Context(), refusing, "s", nil); err == nil || usage.Reported {
		t.Errorf("without events: %+v, %v", usage, err)
	}
}

// TestMadeUpCost: a cost of a model whose price the Claude adapter cannot know, and a cost of 0,
// are unknown.
func TestMadeUpCost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		preset, model, amount string
		want                  int64 // -1 unknown
	}{{"claude", "scripted", "0.5", -1}, {"claude", "opus", "0.5", 500_000},
		{"claude", "claude-sonnet-4-5", "0.5", 500_000}, {"claude", "opus[1m]", "0.5", 500_000},
		{"opencode", "local/m", "0.5", 500_000}, {"opencode", "local/m", "0", -1}} {
		if got := acp.CostOf(tt.preset, tt.model, tt.amount); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}
