//go:build unix

package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// scripted makes an agent of this binary that follows a script, as a process.
func scripted(t *testing.T, script string, change func(*acp.Config)) *acp.Agent {
	t.Helper()
	cfg := acp.Config{Command: []string{os.Args[0], agentArg, script}, Grace: time.Minute}
	if change != nil {
		change(&cfg)
	}
	a, err := acp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTurnOfAProcess(t *testing.T) {
	t.Parallel()
	var seen []agent.Event
	var asked []agent.ToolCall
	tr := turn(t)
	tr.Observe = func(e agent.Event) { seen = append(seen, e) }
	tr.Decide = func(_ context.Context, call agent.ToolCall) agent.Decision {
		asked = append(asked, call)
		return agent.Decision{Allow: true}
	}
	got, err := scripted(t, "echo", nil).Run(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	cost := int64(12300)
	want := &agent.Result{
		Text: "Done.", Session: "s-1", StopReason: "end_turn", CostMicros: &cost, Messages: 3,
		Usage:   agent.Usage{InputTokens: 120, OutputTokens: 10, CachedTokens: 15, CacheWriteTokens: 5, Reported: true},
		Context: &agent.Context{Used: 1200, Size: 8000, Source: agent.SourceReported},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(asked) != 1 || asked[0].ID != "c-1" || asked[0].Kind != agent.ToolEdit ||
		asked[0].Title != "Write a.txt?" || !cmp.Equal(asked[0].Paths, []string{"/w/a.txt"}) {
		t.Errorf("asked for %+v", asked)
	}
	wantEvents(t, seen, "session ", "thought let me see", "message I will ", "message write.", "tool_call pending",
		"tool_call pending", `tool_result completed {"outcome":{"outcome":"selected","optionId":"once"}}`, "usage ",
		"message Done.", "usage ")
	for _, e := range seen {
		if len(e.Raw) == 0 || e.Raw[0] != '{' {
			t.Errorf("event %s has no frame: %q", e.Kind, e.Raw)
		}
	}
}

func TestWhatAProcessIsGiven(t *testing.T) {
	t.Parallel()
	tr := turn(t)
	dir, err := filepath.EvalSymlinks(tr.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tr.Dir, tr.Env = dir, []string{"GIVEN=by the turn"}
	a := scripted(t, "where", func(c *acp.Config) { c.Env = []string{"GIVEN=by the configuration"} })
	got, err := a.Run(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	want := dir + ` <nil> by the turn {"prompt":[{"text":"do it","type":"text"}],"sessionId":"s-1"}`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Error(diff)
	}
}

// TestAgentEnvironment: an agent gets the variables of the allow-list, of its own vendor and
// those that the turn names, and no others.
func TestAgentEnvironment(t *testing.T) {
	names := []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DATABASE_URL", "PERDURE_STORE", "SSH_AUTH_SOCK",
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "COPILOT_GITHUB_TOKEN", "NODE_ENV"}
	for _, name := range names {
		t.Setenv(name, "planted")
	}
	for preset, want := range map[string][]string{"": {}, "claude": {"ANTHROPIC_API_KEY"}, "codex": {"OPENAI_API_KEY"},
		"gemini": {"GEMINI_API_KEY"}, "copilot": {"COPILOT_GITHUB_TOKEN"}, "cursor": {}, "kimi": {}, "qwen": {}} {
		tr := turn(t)
		tr.Inherit = []string{"DATABASE_*"}
		got, err := scripted(t, "environment", func(c *acp.Config) { c.Preset = preset }).Run(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(got.Text, "\n")
		for _, name := range names {
			passed := slices.Contains(lines, name+"=planted")
			if wanted := slices.Contains(append(want, "NODE_ENV", "DATABASE_URL"), name); passed != wanted {
				t.Errorf("%q gets %s: %v", preset, name, passed)
			}
		}
	}
}

func TestDeaths(t *testing.T) {
	t.Parallel()
	tests := []struct {
		script string
		kind   agent.Kind
		exit   int
		text   string
		detail string
	}{
		{"dies at once", agent.KindInvalid, 2, "usage: agent", "usage: agent [options]\n"},
		{"dies in the middle", agent.KindFailed, 7, "in the middle", "panic: key [redacted]\n"},
		{"dies of its provider", agent.KindRateLimit, 1, "429", "Error: 429 Too Many Requests\n"},
		{"no such script", agent.KindInvalid, 1, "no such script", "no such script: no such script\n"},
		{"cat", agent.KindInvalid, 0, "initialize", ""},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			var seen []agent.Event
			tr := turn(t)
			tr.Observe = func(e agent.Event) { seen = append(seen, e) }
			got, err := scripted(t, tt.script, nil).Run(t.Context(), tr)
			e := wantKind(t, err, tt.kind)
			if e.Exit != tt.exit || !strings.Contains(e.Error(), tt.text) || e.Detail != tt.detail {
				t.Errorf("error %q, exit %d, detail %q", e, e.Exit, e.Detail)
			}
			if tt.script != "dies in the middle" {
				return
			}
			if got == nil || got.Text != "I begin" || got.Session != "s-1" {
				t.Errorf("result %+v", got)
			}
			if all := strings.Join(brief(seen), "\n"); !strings.Contains(all, "output {\"jsonrpc\"") ||
				!strings.Contains(all, "stderr panic: key [redacted]") {
				t.Errorf("events:\n%s", all)
			}
		})
	}
}

func TestProgramsThatAreNone(t *testing.T) {
	t.Parallel()
	_, err := acp.New(acp.Config{Command: []string{"no-such-program-here"}})
	if e := wantKind(t, err, agent.KindNotFound); e.Hint == "" {
		t.Error("no hint")
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := acp.New(acp.Config{Command: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = a.Run(t.Context(), turn(t))
	wantKind(t, err, agent.KindNotFound)
}

func TestSilentProcess(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"hangs", "ignores everything"} {
		tr := turn(t)
		tr.IdleTimeout = 50 * time.Millisecond
		_, err := scripted(t, script, func(c *acp.Config) { c.Grace = -1 }).Run(t.Context(), tr)
		wantKind(t, err, agent.KindIdle)
	}
}

func TestCancelledProcessIsKilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := turn(t)
	tr.Observe = func(e agent.Event) {
		if e.Kind == agent.EventMessage {
			cancel()
		}
	}
	got, err := scripted(t, "hangs", func(c *acp.Config) { c.Grace = time.Millisecond }).Run(ctx, tr)
	if e := wantKind(t, err, agent.KindCanceled); !errors.Is(e, context.Canceled) || e.Exit != 0 {
		t.Errorf("error %v, exit %d", e, e.Exit)
	}
	if got.Text != "wait" {
		t.Errorf("result %+v", got)
	}
}

func TestProcessWithoutOutputIsStopped(t *testing.T) {
	t.Parallel()
	_, err := scripted(t, "closes its output", func(c *acp.Config) { c.Grace = time.Millisecond }).Run(t.Context(),
		turn(t))
	if e := wantKind(t, err, agent.KindFailed); !strings.Contains(e.Error(), "in the middle") {
		t.Error(e)
	}
}

func TestProcessThatStaysIsStopped(t *testing.T) {
	t.Parallel()
	got, err := scripted(t, "stays", func(c *acp.Config) { c.Grace = time.Millisecond }).Run(t.Context(), turn(t))
	if err != nil || got.StopReason != "end_turn" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestProcessKillsItsGuard: the turn has failed, whatever the agent reported.
func TestProcessKillsItsGuard(t *testing.T) {
	t.Parallel()
	_, err := scripted(t, "kills its guard", nil).Run(t.Context(), turn(t))
	wantKind(t, err, agent.KindGuardLost)
}

func TestDeadlineOfAProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := scripted(t, "hangs", func(c *acp.Config) { c.Grace = -1 }).Run(ctx, turn(t))
	if e := wantKind(t, err, agent.KindTimeout); !errors.Is(e, context.DeadlineExceeded) {
		t.Error(e)
	}
}

// TestFlood takes many megabytes of messages and holds none of them;
// PERDURE_TEST_FLOOD is another number of megabytes.
func TestFlood(t *testing.T) { //nolint:paralleltest // it looks at the memory of the process
	megabytes := 40
	if s := os.Getenv("PERDURE_TEST_FLOOD"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		megabytes = n
	}
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	most, chunks := uint64(0), 0
	tr := turn(t)
	tr.Env = []string{"MEGABYTES=" + strconv.Itoa(megabytes)}
	tr.Observe = func(e agent.Event) {
		if e.Kind != agent.EventMessage {
			return
		}
		if chunks++; chunks%8 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&during)
			most = max(most, during.HeapAlloc)
		}
	}
	got, err := scripted(t, "floods", nil).Run(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	if chunks != megabytes || len(got.Text) != agent.MaxTextBytes || len(got.Notes) != 1 {
		t.Errorf("%d chunks, %d bytes kept, notes %q", chunks, len(got.Text), got.Notes)
	}
	if most > before.HeapAlloc+16<<20 {
		t.Errorf("held %d bytes, %d before", most, before.HeapAlloc)
	}
}

func TestAgentThatAsksWithoutReading(t *testing.T) {
	t.Parallel()
	_, err := scripted(t, "asks and does not read", nil).Run(t.Context(), turn(t))
	if e := wantKind(t, err, agent.KindFailed); !strings.Contains(e.Error(), "without reading") {
		t.Error(e)
	}
}

func TestManyTurnsAtOnce(t *testing.T) {
	t.Parallel()
	a := scripted(t, "echo", nil)
	var turns sync.WaitGroup
	for range 8 {
		tr := turn(t)
		turns.Go(func() {
			got, err := a.Run(t.Context(), tr)
			if err != nil || got.Text != "Done." || got.CostMicros == nil || *got.CostMicros != 12300 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	turns.Wait()
}
