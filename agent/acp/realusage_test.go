//go:build unix

package acp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
	"github.com/perdure/perdure/internal/testing/modelserver"
)

// adapters are real agents with a model that answers Anthropic's protocol, too.
func adapters() []client {
	claude := client{
		preset: "claude", program: "claude-agent-acp",
		env: func(home, url string) []string {
			return []string{"CLAUDE_CONFIG_DIR=" + home, "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=x",
				"ANTHROPIC_AUTH_TOKEN=", "ANTHROPIC_MODEL=scripted", "ANTHROPIC_SMALL_FAST_MODEL=scripted",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1", "DISABLE_TELEMETRY=1",
				"DISABLE_ERROR_REPORTING=1", "IS_SANDBOX=1", "CLAUDE_CODE_EXECUTABLE=" +
					filepath.Join(os.Getenv("PERDURE_TEST_AGENTS"), "node_modules", ".bin", "claude")}
		},
		write: func(path string) step {
			return step{tool: "Write", args: obj{"file_path": path, "content": "hello\n"}}
		},
		shell: func(command string) step {
			return step{tool: "Bash", args: obj{"command": command, "description": "run it"}}
		},
	}
	return append(clients(), claude)
}

// reply makes an answer of the shared model server.
func reply(s step, in, cached, out int) modelserver.Reply {
	return modelserver.Reply{Text: s.text, Tool: s.tool, Input: s.args, In: in, Cached: cached, Out: out}
}

// TestRealUsage: the tokens of all answers of a turn are reported, while it goes on, with
// the model; a cost is one that the agent knows.
func TestRealUsage(t *testing.T) {
	t.Parallel()
	for _, c := range adapters() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			m := &modelserver.Server{}
			server := httptest.NewServer(m)
			t.Cleanup(server.Close)
			a, tr := installed(t, c, server.URL)
			tr.IdleTimeout = 3 * time.Minute
			m.Play([]modelserver.Reply{reply(c.shell("echo one"), 1000, 400, 10), reply(c.shell("echo two"), 1100, 900, 20),
				reply(step{text: "Done."}, 1200, 1000, 30)})
			var live []string
			tr.Observe = func(e agent.Event) {
				if e.Kind == agent.EventUsage {
					live = append(live, fmt.Sprintf("%s %s", e.Model, show(e.Usage)))
				}
				t.Logf("%s %s %.1500s", e.Kind, e.Text, e.Raw)
			}
			got, err := a.Run(t.Context(), tr)
			t.Logf("%s\n%s, %v", strings.Join(live, "\n"), show(got), err)
			if err != nil {
				t.Fatal(detail(err))
			}
			u, cached := got.Usage, int64(2300)
			if c.preset == "gemini" { // it does not report them
				cached = 0
			}
			if !u.Reported || u.InputTokens != 3300 || u.OutputTokens != 60 || u.CachedTokens != cached {
				t.Errorf("usage %+v, want 3300, 60 and %d", u, cached)
			}
			if got.Model == "" {
				t.Error("the model is not known")
			}
			if reports, _ := a.Priced(); (c.preset == "opencode") != (got.CostMicros != nil) {
				t.Errorf("cost %v, reports %v", show(got.CostMicros), reports)
			}
		})
	}
}

// TestRealPermission: with the permission for edits, a client edits files, runs the commands
// that its rules or the answers to its questions allow, and no others.
func TestRealPermission(t *testing.T) {
	t.Parallel()
	for _, c := range adapters() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			m := &modelserver.Server{}
			server := httptest.NewServer(m)
			t.Cleanup(server.Close)
			a, tr := installed(t, c, server.URL, func(cfg *acp.Config) {
				cfg.Ask, cfg.Permission = false, agent.PermissionEdits
			})
			tr.IdleTimeout = 3 * time.Minute
			tr.Commands = []agent.CommandRule{{Line: "touch yes", More: true}}
			path := filepath.Join(tr.Dir, "a.txt")
			m.Play([]modelserver.Reply{reply(c.write(path), 1000, 0, 1), reply(c.shell("touch yes yes2"), 1001, 0, 1),
				reply(c.shell("touch yes && rm -f a.txt"), 1002, 0, 1), reply(step{text: "Done."}, 1003, 0, 1)})
			tr.Decide = func(_ context.Context, call agent.ToolCall) agent.Decision {
				t.Logf("asked: %s", show(call))
				return agent.Decision{Allow: call.Kind == agent.ToolEdit || call.Command == "touch yes yes2"}
			}
			denied := 0
			tr.Observe = func(e agent.Event) {
				if e.Kind == agent.EventToolResult && e.Call.Status == agent.ToolDenied {
					denied++
				}
				t.Logf("%s %s %.1500s", e.Kind, e.Text, e.Raw)
			}
			got, err := a.Run(t.Context(), tr)
			t.Logf("%s, %v", show(got), err)
			if err != nil {
				t.Fatal(detail(err))
			}
			for _, name := range []string{"a.txt", "yes", "yes2"} {
				if _, err := os.Stat(filepath.Join(tr.Dir, name)); err != nil {
					t.Error(err)
				}
			}
			// Gemini does not report the end of a denied call.
			if want := map[bool]int{true: 1}[c.preset != "gemini"]; denied != want {
				t.Errorf("%d denied calls, want %d", denied, want)
			}
		})
	}
}
