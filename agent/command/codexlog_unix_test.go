//go:build unix

package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
)

// codexCount is a line of a thread's log.
func codexCount(year, in, out int) string {
	return fmt.Sprintf(`{"timestamp":"%d-01-01T00:00:00Z","type":"event_msg","payload":{"type":"token_count","info":{`+
		`"total_token_usage":{"input_tokens":%d,"output_tokens":%d},"last_token_usage":{"input_tokens":300,`+
		`"output_tokens":5},`+
		`"model_context_window":1000},"rate_limits":{"primary":{"used_percent":100,"resets_at":4000000000}}}}`, year, in, out)
}

// codexRecord is the line that Codex writes with an answer.
func codexRecord(year, in, out int) string {
	return fmt.Sprintf(`{"timestamp":"%d-01-01T00:00:00Z","type":"token_usage_record","payload":{`+
		`"usage":{"input_tokens":300,"output_tokens":5},"thread_token_usage":{"input_tokens":%d,"output_tokens":%d}}}`,
		year, in, out)
}

// The log of a thread tells what the stream does not.
func TestCodexLog(t *testing.T) {
	t.Parallel()
	const (
		began  = `out:{"type":"thread.started","thread_id":"t1"}`
		failed = `out:{"type":"turn.failed","error":{"message":"usage limit"}}`
		past   = 2020
		future = 2999 // of the turn
	)
	compacted := strings.Repeat(fmt.Sprintf(`{"timestamp":"%d-01-01T00:00:00Z","type":"compacted","payload":{}}`+"\n",
		future), 6)
	tests := []struct {
		name, session string
		todo, log     []string
		kind          agent.Kind
		usage         agent.Usage
		after         string
	}{
		{"a turn that failed", "t1#100.10.0.0.0", []string{began, failed, "exit:1"},
			[]string{codexCount(past, 100, 10), "garbage", codexCount(future, 250, 15), codexCount(future, 400, 20)},
			agent.KindRateLimit, agent.Usage{InputTokens: 300, OutputTokens: 10, Reported: true}, "t1#400.20.0.0.0"},
		{"a session given by itself", "t1", []string{began, failed, "exit:1"},
			[]string{codexCount(past, 100, 10), codexCount(future, 400, 20)},
			agent.KindRateLimit, agent.Usage{InputTokens: 300, OutputTokens: 10, Reported: true}, "t1#400.20.0.0.0"},
		{"an answer whose calls are not made yet", "t1#100.10.0.0.0", []string{began, failed, "exit:1"},
			[]string{codexCount(future, 250, 15), codexRecord(future, 400, 20)},
			agent.KindRateLimit, agent.Usage{InputTokens: 300, OutputTokens: 10, Reported: true}, "t1#400.20.0.0.0"},
		{"a livelock", "", []string{began, "hang"}, []string{codexCount(future, 400, 20), compacted},
			agent.KindOverflow, agent.Usage{InputTokens: 400, OutputTokens: 20, Reported: true}, "t1#400.20.0.0.0"},
		{"no log", "", []string{began, failed, "exit:1"}, nil, agent.KindRateLimit, agent.Usage{}, "t1#0.0.0.0.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if tt.log != nil {
				dir := filepath.Join(home, "sessions", "2026", "11", "20")
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "rollout-x-t1.jsonl"), []byte(strings.Join(tt.log, "\n")+"\n"),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg := actor(t, "codex", tt.todo...)
			cfg.Env = append(cfg.Env, "CODEX_HOME=elsewhere", "CODEX_HOME="+home)
			turn := newTurn(t)
			turn.Session = tt.session
			res, err := newAgent(t, cfg).Run(t.Context(), turn)
			e := wantKind(t, err, tt.kind)
			if diff := cmp.Diff(tt.usage, res.Usage); diff != "" || res.Session != tt.after {
				t.Errorf("session %q\n%s", res.Session, diff)
			}
			if tt.log == nil {
				return
			}
			if diff := cmp.Diff(&agent.Context{Used: 305, Size: 1000, Source: agent.SourceReported}, res.Context); diff != "" {
				t.Error(diff)
			}
			if e.Kind == agent.KindRateLimit && e.Until.Unix() != 4000000000 {
				t.Errorf("until %v", e.Until)
			}
		})
	}
}
